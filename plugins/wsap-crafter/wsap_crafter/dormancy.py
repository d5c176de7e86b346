"""Steps of the world while the agent is away and the body dormant."""

from __future__ import annotations

from dataclasses import dataclass

from wsap_core.protocol import Event
from wsap_crafter.perception.narration import tell_wounds
from wsap_crafter.simulation.engine import CrafterEngine


@dataclass(frozen=True)
class Sleep:
    """The outcome of a sleep."""

    steps: int
    """Steps that passed."""
    wounds: tuple[Event, ...] = ()
    """Wounds of the body, in order."""


def sleep_through(engine: CrafterEngine, steps: int) -> Sleep:
    """Let steps pass while the body sleeps, but not to the end of the episode, and return the outcome.

    Each step is the game's `sleep`, so by the game's rules the body is awake while rested, gets hungry, and can be
    attacked and die, which ends the sleep. Achievements do not change (the game would count waking up). A living body
    is awake afterwards.
    """
    limit = min(steps, engine.length - 1 - engine.steps) if engine.length else steps
    player, start = engine.player, engine.steps
    earned = dict(player.achievements)
    wounds: list[Event] = []
    while engine.steps - start < limit and not engine.dead:
        report = engine.step("sleep")
        wounds += tell_wounds(report, player, engine.steps)
    slept = engine.steps - start
    if slept:
        engine.unlock_only(earned)
        player.sleeping = False
    return Sleep(slept, tuple(wounds))
