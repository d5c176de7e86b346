"""The hooks of this package."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import AdapterSpec, AgentSpec, OptionDef, ScoreMetric, Timing

_SEATS = ("row", "column")
_GAMES = ("prisoners-dilemma", "matching-pennies", "rock-paper-scissors")
_VOCABULARY = (
    *("cooperate", "defect", "prisoner", "dilemma", "head"),
    *("tail", "rock", "paper", "scissors", "penny", "matrix"),
)

ROUNDS = OptionDef("rounds", "Rounds of an episode.", "10", "1 or more")


def _matrix(name: str, timing: Timing, summary: str) -> AdapterSpec:
    return AdapterSpec(
        name,
        summary,
        f"wsap_matrix.game:create_{timing}",
        title="Repeated matrix game",
        abilities=("seed", "snapshot", "render", "multi-seat", "messages"),
        variant="wsap_matrix.game:with_bounds",
        seats=(2, 2),
        seat_names=_SEATS,
        timing=timing,
        deadline=30.0,
        default_agent="random",
        objective="Your goal is to collect as much as you can.",
        vocabulary=_VOCABULARY,
        score_metrics=(
            ScoreMetric(
                "mean_payoff",
                "Mean payoff per round and seat",
                "wsap_matrix.game:mean_payoff",
            ),
        ),
        genre="matrix game",
        dimensions="text",
        options=(
            OptionDef(
                "game", "The payoffs.", "prisoners-dilemma", "prisoners-dilemma|matching-pennies|rock-paper-scissors"
            ),
            ROUNDS,
        ),
    )


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Register the repeated matrix game with three timings."""
    return [
        _matrix("matrix", "simultaneous", "Two players choose at the same time, repeatedly."),
        _matrix("matrix-turns", "alternating", "Two players choose in turn; the second sees the first's choice."),
        _matrix("matrix-free", "free", "Two players choose at any time, against the other's last choice."),
    ]


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Register classic strategies of the matrix game."""
    return [
        AgentSpec(
            "tit-for-tat",
            "Starts with the first choice, then copies the other's last one.",
            "wsap_matrix.agents:TitForTat",
            abilities=("seed", "snapshot"),
            games=("matrix", "matrix-turns", "matrix-free"),
        ),
        AgentSpec(
            "grudger",
            "Makes the first choice until the other deviates from it, then always the second.",
            "wsap_matrix.agents:Grudger",
            abilities=("seed", "snapshot"),
            games=("matrix", "matrix-turns", "matrix-free"),
        ),
    ]
