"""Time for a dormant body: the world goes on while its agent is away."""

from __future__ import annotations

from dataclasses import dataclass

from wsap_core.protocol import Event
from wsap_crafter.daytime import DAY
from wsap_crafter.engine import CrafterEngine
from wsap_crafter.narration import tell_wounds

LONGEST_SLEEP = DAY
"""Default limit of steps for which a world goes on without its agent."""


@dataclass(frozen=True)
class Sleep:
    """The outcome of a sleep."""

    steps: int
    """Steps for which the world went on."""
    wounds: tuple[Event, ...] = ()
    """Wounds of the body, in order."""


def sleep_through(engine: CrafterEngine, steps: int) -> Sleep:
    """Let the world go on while the body sleeps, and return the outcome.

    The body does nothing but the game's own `sleep`, so by the game's rules it lies awake while it is
    rested, hungers, can be found by zombies, and can die, which ends it. The world never goes on to the
    end of the episode. What a body does without its agent
    earns nothing: achievements stay as they were (the game would count waking up). A living body is
    awake afterwards.
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
