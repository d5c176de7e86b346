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
"""Name of a player without a run -> the agent that plays the same."""
KEPT = ("tool_calls", "watch", "own_summaries")
"""Options of a run that do not belong to the game; the new run keeps them."""


def seating(agent: str | None, seats: Mapping[int, str], model: str | None) -> list[str]:
    """Return the seating as arguments of `wsap play`.

    Args:
        agent: who takes the seats that are not named; the scripted player where there is no model either.
        seats: player -> an agent, or a model's address.
        model: the address of a model that plays for all who are not named.

    Raises:
        UsageError: an agent is named beside the model, and asks none.
    """
    from wsap_core.errors import UsageError

    if model is not None and agent in AGENTS:
        raise UsageError(
            f"--model plays for all who are not named with --seat, and so does --agent {agent}; choose one."
        )
    who = agent if agent is not None or model is not None else "scripted"
    told = [] if who is None else ["--fill", AGENTS.get(who, who)]
    told += [] if model is None else ["--model", model]
    for player, name in seats.items():
        told += ["--seat", f"player-{player + 1}={AGENTS.get(name, name)}"]
    return told


def play_on(start: Start, before: Mapping[str, Any], told: Sequence[str]) -> None:
    """Continue a game as a new run.

    Args:
        start: where it parts from the other game.
        before: the options of the run that it is forked off; empty where it was none.
        told: what else `wsap play` is told.

    Raises:
        MissingServiceError: the runtime is not installed.
        UsageError: the game is over there, or `wsap play` refuses what it is told.
        ConfigError: the players have names that a run can't have.
    """
    play = runtime_command("play", "Agents, models and people play by the runtime")
    history = start.history()
    options = {"past": history.to_option(), **{name: before[name] for name in KEPT if name in before}}
    arguments = ["tossim"]
    for name, value in options.items():
        arguments += ["--option", f"{name}={value if name == 'past' else json.dumps(value)}"]
    with play.make_context("play", [*arguments, *told], parent=click.get_current_context().find_root()) as context:
        play.invoke(context)
