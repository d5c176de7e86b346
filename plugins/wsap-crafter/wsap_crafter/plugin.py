"""The hooks of this package, which import neither the game nor numpy."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import AdapterSpec, AgentSpec, OptionDef, ScoreMetric
from wsap_crafter.catalogue import ACHIEVEMENTS, SKILLS, TRANSFER_RULES, VOCABULARY

OPTIONS = (
    OptionDef("length", "Steps of an episode; 0 for no limit.", "10000", "0 or more"),
    OptionDef("frame_size", "Width and height of frames in pixels; 0 for no frames.", "360", "0-4096"),
    OptionDef("longest_sleep", "Maximum steps that pass while the agent is away.", "300", "0-10000"),
)

_SCORE = ScoreMetric(
    "score",
    "Crafter's official score: the geometric mean of success rates over 22 achievements",
    "wsap_crafter.scores:official_score",
    "%",
    0.0,
    100.0,
    of_set=True,
)
_PROGRESSION = ScoreMetric(
    "progression",
    "BALROG's progression: the share of the 22 achievements unlocked, mean over episodes",
    "wsap_crafter.scores:progression",
    "%",
    0.0,
    100.0,
)


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Register Crafter."""
    return [
        AdapterSpec(
            "crafter",
            "Survive in Crafter: gather, craft, eat, sleep and fight in an open 2D world.",
            "wsap_crafter.adapter:CrafterAdapter",
            title="Crafter",
            brief="You are alone in a wild land of grass, woods, water and caves. Gather, craft, eat, drink and sleep.",
            vocabulary=VOCABULARY,
            abilities=("seed", "snapshot", "render", "avatars", "transit"),
            seats=(1, 1),
            default_agent="crafter-survivor",
            score_metrics=(_SCORE, _PROGRESSION),
            achievements=ACHIEVEMENTS,
            meters=dict.fromkeys(("health", "food", "drink", "energy"), 9),
            wire_types=("wsap_crafter.perception.observation:CrafterObservation",),
            skills=SKILLS,
            transfer_rules=TRANSFER_RULES,
            genre="survival",
            dimensions="2D",
            options=OPTIONS,
        )
    ]


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Register the rule-based agent."""
    return [
        AgentSpec(
            "crafter-survivor",
            "Plays Crafter by rules: gathers, crafts, eats, sleeps sheltered and fights.",
            "wsap_crafter.survivor:create",
            abilities=("seed", "snapshot"),
            games=("crafter",),
        )
    ]
