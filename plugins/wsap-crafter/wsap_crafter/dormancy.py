"""What happens to a body that its agent left asleep, until the agent comes back."""

from __future__ import annotations

from dataclasses import dataclass

from wsap_core.protocol import Event
from wsap_crafter.daytime import DAY
from wsap_crafter.engine import CrafterEngine
from wsap_crafter.narration import tell_wounds

LONGEST_SLEEP = DAY
"""Most steps for which a world goes on without its agent, however long that is away, unless it is told otherwise."""


@dataclass(frozen=True)
class Sleep:
    """What a sleep came to."""

    steps: int
    """For how many the world went on."""
    wounds: tuple[Event, ...] = ()
    """What hurt the body meanwhile, in order."""


def sleep_through(engine: CrafterEngine, steps: int) -> Sleep:
    """Let the world go on while the body sleeps, and return what came of it.

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
