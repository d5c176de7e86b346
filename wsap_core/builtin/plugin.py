"""What the kernel itself registers."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.commands import KERNEL_COMMANDS
from wsap_core.hookspecs import hookimpl
from wsap_core.models import Action
from wsap_core.specs import AdapterSpec, AgentSpec, BackendSpec, CommandSpec, MemorySpec, ScoreMetric, Timing, ToolSpec

_SEATS = ("row", "column")


def _matrix(name: str, timing: Timing, summary: str) -> AdapterSpec:
    return AdapterSpec(
        name,
        summary,
        f"wsap_core.builtin.matrix:create_{timing}",
        title="Repeated matrix game",
        abilities=("seed", "snapshot", "render", "multi-seat", "messages"),
        seats=(2, 2),
        seat_names=_SEATS,
        timing=timing,
        deadline=30.0,
        default_agent="random",
        score_metrics=(
            ScoreMetric(
                "mean_payoff",
                "Payoff a round, mean over seats and rounds",
                "wsap_core.builtin.matrix:mean_payoff",
            ),
        ),
        genre="matrix game",
        dimensions="text",
    )


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Offer the echo world and the repeated matrix game, in its three kinds of time."""
    return [
        AdapterSpec(
            "echo",
            "A room that repeats what you say; for trying things out.",
            "wsap_core.builtin.echo:EchoWorld",
            title="Echo",
            abilities=("seed", "snapshot", "render"),
            default_action=Action("wait"),
            genre="sandbox",
            dimensions="text",
        ),
        _matrix("matrix", "simultaneous", "Two players choose at the same time, again and again."),
        _matrix("matrix-turns", "alternating", "Two players choose in turn; the second sees the first's choice."),
        _matrix("matrix-free", "free", "Two players choose whenever they like, against the other's last choice."),
    ]


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Offer the baselines, and the classic strategies of the matrix game."""
    games = ("matrix", "matrix-turns", "matrix-free")
    return [
        AgentSpec(
            "random",
            "Picks any declared action with equal chance.",
            "wsap_core.builtin.agents:create_random",
            abilities=("seed", "snapshot"),
        ),
        AgentSpec(
            "random-legal",
            "Picks any action that is possible now with equal chance.",
            "wsap_core.builtin.agents:create_random_legal",
            abilities=("seed", "snapshot"),
        ),
        AgentSpec(
            "always",
            "Does the same thing every time: the option `action`, or the first there is.",
            "wsap_core.builtin.agents:create_always",
            abilities=("seed", "snapshot"),
        ),
        AgentSpec(
            "tit-for-tat",
            "Begins with the first choice, then copies the other's last one.",
            "wsap_core.builtin.agents:create_tit_for_tat",
            abilities=("seed", "snapshot"),
            games=games,
        ),
    ]


@hookimpl
def wsap_memories() -> Iterable[MemorySpec]:
    """Offer what agents can remember with."""
    home = "wsap_core.builtin.memories"
    return [
        MemorySpec("none", "Remembers nothing.", f"{home}.nothing:create"),
        MemorySpec("fifo", "The last steps in detail, and a running summary of all before.", f"{home}.fifo:create"),
        MemorySpec("facts", "Facts, plans and history.", f"{home}.facts:create"),
        MemorySpec(
            "fulltext",
            "Everything lived through, found by relevance, recency and importance; across runs in a file.",
            f"{home}.fulltext:create",
        ),
    ]


@hookimpl
def wsap_tools() -> Iterable[ToolSpec]:
    """Offer what agents can use while they think."""
    home = "wsap_core.builtin.tools"
    return [
        ToolSpec("calculator", "Works out arithmetic.", f"{home}.calculator:create"),
        ToolSpec("notes", "An agent's own notes, by title.", f"{home}.notes:create"),
        ToolSpec("recall", "Searches the agent's memory.", f"{home}.recall:create"),
    ]


@hookimpl
def wsap_backends() -> Iterable[BackendSpec]:
    """Offer the backend that says what it is told to say."""
    return [
        BackendSpec(
            "scripted",
            "Always gives the reply in the option `reply`; for trying things out and for tests.",
            "wsap_core.llm.scripted:create",
            models="wsap_core.llm.scripted:listing",
        )
    ]


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Offer the commands that need no runtime."""
    return [CommandSpec(name, summary, factory) for name, (summary, factory) in KERNEL_COMMANDS.items()]
