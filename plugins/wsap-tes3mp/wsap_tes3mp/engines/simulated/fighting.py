"""Combat: what agents do in it, and what creatures do by themselves."""

from __future__ import annotations

import math

from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.engines.simulated.definitions import definitions
from wsap_tes3mp.engines.simulated.state import (
    COMBAT_SECONDS,
    REACH,
    Body,
    Plan,
    Refused,
    Thing,
    World,
    distance,
    reached,
    thing_near,
)

BLOW = 2.0
"""Seconds that a blow takes, of agents and of creatures."""
_NOTICES, _AT_NIGHT = 9.0, 13.5
"""Metres within which creatures attack."""
ACTIONS = ("attack", "block", "flee")


def begin(world: World, body: Body, action: str, target_id: str) -> Plan:
    """Carry out an action of combat."""
    if action not in ACTIONS:
        raise Refused("UNKNOWN_ACTION", f"Actions of combat are {', '.join(ACTIONS)}.")
    if action == "flee":
        thing_near(world, body, target_id)
        yield BLOW
        return _flee(world, body, target_id)
    _foe(world, body, target_id)
    body.guard = action == "block"
    yield BLOW
    if body.guard:
        return Done("confirmed", "You stood behind your guard.")
    return _attack(world, body, _foe(world, body, target_id))


def _foe(world: World, body: Body, target_id: str) -> Thing:
    target = reached(world, body, target_id)
    if not isinstance(target, Thing) or target.kind not in ("creature", "npc"):
        raise Refused("NO_FOE", f"{target.name} is nothing to fight with.")
    if target.health <= 0:
        raise Refused("DEAD_FOE", f"{target.name} is dead.")
    return target


def _attack(world: World, body: Body, target: Thing) -> Done:
    if target.kind == "npc":
        body.dispositions[target.id] = max(0, body.dispositions[target.id] - 30)
        body.be_silent()
        raise Refused("NO_FOE", f"{target.name} wards off the blow and will not forget it.")
    body.fought_at = world.time
    chance = world.roll()
    if chance.random() > 0.7 + 0.2 * body.skill:
        return Done("confirmed", f"You miss {target.name}.", data={"hit": False})
    power = max((world.item(item).power for item in body.equipped if world.item(item).kind == "weapon"), default=2)
    target.health = max(0, target.health - chance.randint(math.ceil(power / 2), power + 2))
    data = {"hit": True, "killed": target.health == 0}
    if target.health:
        return Done("confirmed", f"You hit {target.name}.", data=data)
    target.name = f"Dead {target.name}"
    return Done("confirmed", f"{target.name}: you have won.", data=data)


def _flee(world: World, body: Body, target_id: str) -> Done:
    foe = thing_near(world, body, target_id)
    if world.roll().random() < 0.3:
        raise Refused("NO_ESCAPE", "There was no way past; try again.")
    away = distance(body, foe) or 1.0
    width, depth = definitions().cells[body.cell].size
    body.x = round(min(width, max(0, body.x + (body.x - foe.x) / away * 14)), 2)
    body.y = round(min(depth, max(0, body.y + (body.y - foe.y) / away * 14)), 2)
    body.fought_at = world.time - COMBAT_SECONDS
    return Done("confirmed", f"You get away from {foe.name}.")


def danger(world: World) -> bool:
    """Whether a creature may go for a body within the next hour: then time goes on in small steps."""
    return any(
        body.goal is not None or distance(body, foe) <= _AT_NIGHT
        for body in world.bodies.values()
        if body.presence == "awake" and body.health > 0
        for foe in world.foes(body.cell)
    )


def creatures_act(world: World, seconds: float) -> None:
    """Let the living creatures go for bodies near them, and strike."""
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
                _approach(foe, body, away, definitions().creatures[foe.base].speed * seconds)
            elif world.roll().random() < seconds / BLOW * 0.6:
                _strike(world, foe, body)


def _approach(foe: Thing, body: Body, away: float, way: float) -> None:
    share = min(way, away - 1.0) / away
    foe.x, foe.y = round(foe.x + (body.x - foe.x) * share, 2), round(foe.y + (body.y - foe.y) * share, 2)


def _strike(world: World, foe: Thing, body: Body) -> None:
    damage = definitions().creatures[foe.base].damage
    protection = sum(world.item(item).power for item in body.equipped if world.item(item).kind == "armour")
    dealt = max(1, world.roll().randint(math.ceil(damage / 2), damage + 2) - protection)
    body.health = max(0, body.health - (dealt // 2 if body.guard else dealt))
    body.fought_at = world.time
    body.be_silent()
