"""The family of games; TextArena is not imported here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wsap_core.hookspecs import hookimpl
from wsap_core.protocol import Achievement
from wsap_core.specs import AdapterSpec, EpisodeSummary, OptionDef, ScoreMetric

DEFAULT = "TicTacToe-v0"
"""The game that is played if none is named."""
MOST_SEATS = 15
"""Maximum number of players."""
FORFEITED = "forfeited"
"""The achievement of a seat that was out for moves that are not possible."""
BY_FORFEIT = "ended-by-forfeit"
"""The same of the other seats."""


def mean_return(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the mean return of the episodes that nobody forfeited; 0 without any."""
    played = [episode for episode in episodes if not {FORFEITED, BY_FORFEIT} & set(episode.achievements)]
    return sum(episode.reward for episode in played) / len(played) if played else 0.0


def forfeits(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the share of episodes that the seat forfeited, in per cent; 0 without any."""
    lost = [episode for episode in episodes if FORFEITED in episode.achievements]
    return 100.0 * len(lost) / len(episodes) if episodes else 0.0


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Offer `textarena:ID`."""
    return [
        AdapterSpec(
            "textarena",
            "TextArena's games of words, for models and persons: textarena:TicTacToe-v0. Random words forfeit.",
            "wsap_textarena.game:create",
            title="TextArena",
            abilities=("seed", "snapshot", "multi-seat"),
            seats=(1, MOST_SEATS),
            timing="alternating",
            variant="wsap_textarena.game:variant",
            family="id",
            members="wsap_textarena.catalogue:games",
            default_agent="random",
            score_metrics=(
                ScoreMetric(
                    "return",
                    "Mean return of a seat in the episodes that nobody forfeited.",
                    "wsap_textarena.plugin:mean_return",
                    of_set=True,
                ),
                ScoreMetric(
                    "forfeits",
                    "Episodes that the seat forfeited by moves that are not possible.",
                    "wsap_textarena.plugin:forfeits",
                    "%",
                    low=0.0,
                    high=100.0,
                    of_set=True,
                    better="lower",
                ),
            ),
            achievements=(
                Achievement(FORFEITED, "Made too many moves that are not possible, which is no loss in play."),
                Achievement(BY_FORFEIT, "Another player made too many moves that are not possible."),
            ),
            wire_types=("wsap_nexus.doors.foreign:TextObservation",),
            genre="foreign",
            dimensions="text",
            options=(
                OptionDef("id", "The game, such as Poker-v0.", DEFAULT, names="program"),
                OptionDef("players", "The number of players.", "2, or the fewest", "1-15"),
            ),
        )
    ]
