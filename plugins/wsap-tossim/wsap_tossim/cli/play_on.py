"""Continue a forked game as a run of `wsap play`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from wsap_tossim.cli.sources import runtime_command

if TYPE_CHECKING:
    from wsap_tossim.fork import Start

AGENTS = {"scripted": "tossim-player", "random": "tossim-random"}
"""Built-in player -> the agent that plays the same way."""
KEPT = ("tool_calls", "watch", "own_summaries")
"""Options of the run, not of the game; the new run keeps them."""


def seating(agent: str | None, seats: Mapping[int, str], model: str | None) -> list[str]:
    """Return the arguments of `wsap play` that seat agents, given agents or model addresses by player.

    Without `agent` and `model`, the scripted player takes the other seats.

    Raises:
        UsageError: both a model and a built-in player are given.
    """
    from wsap_core.errors import UsageError

    if model is not None and agent in AGENTS:
        raise UsageError(f"--model and --agent {agent} both play for all players not named with --seat; choose one.")
    who = agent if agent is not None or model is not None else "scripted"
    told = [] if who is None else ["--fill", AGENTS.get(who, who)]
    told += [] if model is None else ["--model", model]
    for player, name in seats.items():
        told += ["--seat", f"player-{player + 1}={AGENTS.get(name, name)}"]
    return told


def play_on(start: Start, before: Mapping[str, Any], told: Sequence[str]) -> None:
    """Continue a game as a new run.

    Args:
        start: the fork.
        before: options of the run that is forked; empty if it was no run.
        told: further arguments for `wsap play`.

    Raises:
        MissingServiceError: the runtime is not installed.
        UsageError: the game is over at the fork, or `wsap play` refuses its arguments.
        ConfigError: a run can't have the players' names.
    """
    play = runtime_command("play", "Agents, models and people need the runtime")
    history = start.history()
    options = {"past": history.to_option(), **{name: before[name] for name in KEPT if name in before}}
    arguments = ["tossim"]
    for name, value in options.items():
        arguments += ["--option", f"{name}={value if name == 'past' else json.dumps(value)}"]
    with play.make_context("play", [*arguments, *told], parent=click.get_current_context().find_root()) as context:
        play.invoke(context)
