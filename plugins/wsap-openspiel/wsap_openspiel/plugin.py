"""The family of games; OpenSpiel is not imported here."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import AdapterSpec, OptionDef, ScoreMetric

DEFAULT = "kuhn_poker"
"""The game that is played if none is named."""
MOST_SEATS = 20
"""Maximum number of players."""


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Offer `openspiel:NAME`."""
    return [
        AdapterSpec(
            "openspiel",
            "More than a hundred games of OpenSpiel: openspiel:kuhn_poker, openspiel:hex(board_size=5).",
            "wsap_openspiel.game:create",
            title="OpenSpiel",
            abilities=("seed", "snapshot", "multi-seat"),
            seats=(1, MOST_SEATS),
            timing="alternating",
            variant="wsap_openspiel.game:variant",
            family="game",
            members="wsap_openspiel.catalogue:games",
            default_agent="random-legal",
            objective="Your goal is to end the game with the highest return that you can get.",
            score_metrics=(
                ScoreMetric("return", "Mean return of a seat.", "wsap_nexus.doors.foreign:mean_return", of_set=True),
            ),
            wire_types=("wsap_nexus.doors.foreign:TextObservation",),
            genre="foreign",
            dimensions="text",
            options=(
                OptionDef(
                    "game", "The game, with its parameters in parentheses: hex(board_size=5).", DEFAULT, names="program"
                ),
            ),
        )
    ]
