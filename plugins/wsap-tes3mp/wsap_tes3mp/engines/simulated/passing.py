"""How time passes: bodies walk, creatures act, dawn renews the world."""

from __future__ import annotations

import math

from wsap_tes3mp.engines.simulated.acting import speed
from wsap_tes3mp.engines.simulated.definitions import definitions
from wsap_tes3mp.engines.simulated.fighting import creatures_act, danger
from wsap_tes3mp.engines.simulated.seeding import renew
from wsap_tes3mp.engines.simulated.state import GAME_SECONDS, Body, World

BEAT = 1.0
"""Seconds of a step where creatures are near bodies."""
_HOUR = 3600 / GAME_SECONDS
"""Seconds of an hour of the world's day."""
_HEALING = 0.25
"""Health that a second of rest gives outside; inside twice that."""


def advance(world: World, seconds: float, resting: Body | None = None) -> None:
    """Let time pass: less only if a resting body is hurt or dies."""
    left = seconds
    while left > 1e-6:
        step = min(left, BEAT if danger(world) else _HOUR - math.fmod(world.time, _HOUR) + 1e-3)
        health = resting.health if resting is not None else 0
        _pass(world, step)
        left -= step
        if resting is not None:
            if resting.health < health:
                break
            rest(world, resting, step)


def _pass(world: World, seconds: float) -> None:
    before = _shown(world)
    world.time = round(world.time + seconds, 4)
    for body in world.bodies.values():
        if body.goal is not None and body.health > 0:
            _walk(world, body, seconds)
    creatures_act(world, seconds)
    if world.day > world.dawns:
        world.dawns = world.day
        renew(world)
    if before != _shown(world):
        world.version += 1


def _shown(world: World) -> tuple[object, ...]:
    """Return what perceptions show that changes with time alone."""
    return world.time_of_day, world.weather, int(world.hour), [body.fighting(world) for body in world.bodies.values()]


def _walk(world: World, body: Body, seconds: float) -> None:
    assert body.goal is not None
    x, y = body.goal
    way = math.hypot(x - body.x, y - body.y)
    share = min(1.0, speed(world, body) * seconds / way) if way else 1.0
    body.x, body.y = round(body.x + (x - body.x) * share, 2), round(body.y + (y - body.y) * share, 2)
    world.version += 1


def rest(world: World, body: Body, seconds: float) -> None:
    """Let a body heal that rests for some seconds."""
    body.rested += seconds * _HEALING * (2 if definitions().cells[body.cell].inside else 1)
    whole = int(body.rested)
    body.rested = round(body.rested - whole, 4)
    if whole and 0 < body.health < body.max_health:
        body.health = min(body.max_health, body.health + whole)
        world.version += 1
