"""The passing of time: bodies walk and rest, creatures attack, dawn renews the world."""

from __future__ import annotations

import math

from wsap_tes3mp.engines.simulated.acting import BLOW, speed
from wsap_tes3mp.engines.simulated.definitions import definitions
from wsap_tes3mp.engines.simulated.seeding import renew
from wsap_tes3mp.engines.simulated.state import GAME_SECONDS, REACH, Body, Thing, World, distance

BEAT = 1.0
"""Seconds per step while creatures are near bodies."""
_HOUR = 3600 / GAME_SECONDS
"""Seconds per hour of the world's day."""
_HEALING = 0.25
"""Health per second of rest outside; twice that inside."""
_NOTICES, _AT_NIGHT = 9.0, 13.5
"""Metres within which creatures attack."""


def advance(world: World, seconds: float, resting: Body | None = None) -> None:
    """Let time pass; stops early only if a resting body is hurt or dies."""
    left = seconds
    while left > 1e-6:
        # In small steps while a creature may attack within the next hour.
        danger = any(
            body.goal is not None or distance(body, foe) <= _AT_NIGHT
            for body in world.bodies.values()
            if body.presence == "awake" and body.health > 0
            for foe in world.foes(body.cell)
        )
        step = min(left, BEAT if danger else _HOUR - math.fmod(world.time, _HOUR) + 1e-3)
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
            way = math.hypot(body.goal[0] - body.x, body.goal[1] - body.y)
            _approach(body, *body.goal, min(1.0, speed(world, body) * seconds / way) if way else 1.0)
            world.version += 1
    _creatures_act(world, seconds)
    if world.day > world.dawns:
        world.dawns = world.day
        renew(world)
    if before != _shown(world):
        world.version += 1


def _shown(world: World) -> tuple[object, ...]:
    """Return the parts of perceptions that change with time alone."""
    return world.time_of_day, world.weather, int(world.hour), [body.fighting(world) for body in world.bodies.values()]


def _approach(one: Body | Thing, x: float, y: float, share: float) -> None:
    one.x, one.y = round(one.x + (x - one.x) * share, 2), round(one.y + (y - one.y) * share, 2)


def _creatures_act(world: World, seconds: float) -> None:
    """Let living creatures approach nearby bodies and strike."""
    notices = _AT_NIGHT if world.time_of_day == "night" else _NOTICES
    for body in world.bodies.values():
        if body.presence != "awake":
            continue
        for foe in world.foes(body.cell):
            away = distance(body, foe)
            if body.health <= 0 or away > notices:
                continue
            world.version += 1
            if away > REACH:
                way = definitions().creatures[foe.base].speed * seconds
                _approach(foe, body.x, body.y, min(way, away - 1.0) / away)
            elif world.roll().random() < seconds / BLOW * 0.6:
                _strike(world, foe, body)


def _strike(world: World, foe: Thing, body: Body) -> None:
    damage = definitions().creatures[foe.base].damage
    protection = sum(world.item(item).power for item in body.equipped if world.item(item).kind == "armour")
    dealt = max(1, world.roll().randint(math.ceil(damage / 2), damage + 2) - protection)
    dealt = max(1, dealt * body.harm // 100)
    body.health = max(0, body.health - (dealt // 2 if body.guard else dealt))
    body.fought_at = world.time
    body.be_silent()


def rest(world: World, body: Body, seconds: float) -> None:
    """Heal a resting body."""
    body.rested += seconds * _HEALING * (2 if definitions().cells[body.cell].inside else 1)
    whole = int(body.rested)
    body.rested = round(body.rested - whole, 4)
    if whole and 0 < body.health < body.max_health:
        body.health = min(body.max_health, body.health + whole)
        world.version += 1
