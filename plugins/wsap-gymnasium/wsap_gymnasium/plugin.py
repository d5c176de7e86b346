"""The families of games; neither Gymnasium nor numpy is imported here."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import AdapterSpec, OptionDef, ScoreMetric

DEFAULT = "FrozenLake-v1"
"""The environment that is played if none is named."""
ZOO_DEFAULT = "classic/tictactoe-v3"
"""The same of PettingZoo."""
MOST_SEATS = 20
"""Maximum number of agents of an environment."""
_SCORES = (
    ScoreMetric("return", "Mean sum of rewards of an episode.", "wsap_nexus.doors.foreign:mean_return", of_set=True),
)
_KWARGS = OptionDef("kwargs", "Arguments of the environment, as a JSON object.", "{}", "JSON", names="program")


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Offer `gymnasium:ID` and `pettingzoo:ID`."""
    return [
        AdapterSpec(
            "gymnasium",
            "Any Gymnasium environment that can be told in words or few numbers: gymnasium:FrozenLake-v1.",
            "wsap_gymnasium.games:create",
            title="Gymnasium",
            abilities=("seed", "snapshot"),
            variant="wsap_gymnasium.games:variant",
            family="id",
            default_agent="random-legal",
            score_metrics=_SCORES,
            wire_types=("wsap_nexus.doors.foreign:TextObservation",),
            genre="foreign",
            dimensions="text",
            options=(
                OptionDef("id", "The environment, such as Taxi-v4 or a_package:My-v0.", DEFAULT, names="program"),
                _KWARGS,
            ),
        ),
        AdapterSpec(
            "pettingzoo",
            "PettingZoo's environments that can be told in words: pettingzoo:classic/connect_four-v3.",
            "wsap_gymnasium.zoo_games:create",
            title="PettingZoo",
            abilities=("seed", "snapshot", "multi-seat"),
            seats=(1, MOST_SEATS),
            timing="alternating",
            variant="wsap_gymnasium.zoo_games:variant",
            family="id",
            members="wsap_gymnasium.zoo_games:environments",
            default_agent="random-legal",
            score_metrics=_SCORES,
            wire_types=("wsap_nexus.doors.foreign:TextObservation",),
            genre="foreign",
            dimensions="text",
            options=(
                OptionDef("id", "The environment, or the `module:function` of one.", ZOO_DEFAULT, names="program"),
                _KWARGS,
            ),
        ),
    ]
