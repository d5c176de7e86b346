"""Commands of agents: each is checked, takes its time, and then takes effect."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.engines.simulated import talking
from wsap_tes3mp.engines.simulated.definitions import definitions
from wsap_tes3mp.engines.simulated.state import CAPACITY, Body, Kind, Plan, Refused, Thing, World, distance, move_items
from wsap_tes3mp.protocol.commands import CombatAction, Dialogue, Interact, MoveTo, UseItem, Wait
from wsap_tes3mp.protocol.perception import Payload

SPEED = 4.0
"""Walking speed in metres per second; two thirds of it in rain and thunder."""
BLOW = 2.0
"""Seconds that a blow takes agents and creatures."""
ACTIONS = ("attack", "block", "flee")
"""Combat actions."""
_USING, _DROPPING = 2.0, 1.0
"""Seconds."""
_ALIASES = {"loot": "open", "search": "open", "examine": "read", "go": "enter", "pick_up": "take"}


def begin(world: World, body: Body, params: Payload) -> Plan:
    """Start a command."""
    if body.health <= 0:
        raise Refused("DEAD", "You are dead; ask for a respawn.")
    body.guard, body.goal = False, None
    if (plan := _PLANS.get(type(params))) is None:
        raise Refused("UNKNOWN_COMMAND", "This engine does not know that command.")
    return plan(world, body, params)


def _wait(world: World, body: Body, params: Wait) -> Plan:
    yield params.duration_seconds
    return Done("confirmed", "Time passes.")


# --- walking --------------------------------------------------------------------------------------


def _can_walk(world: World, body: Body) -> None:
    if world.load(body) > CAPACITY:
        raise Refused("OVERLOADED", "You carry too much to walk; drop something (interact, interaction_type drop).")


def _move(world: World, body: Body, params: MoveTo) -> Plan:
    _can_walk(world, body)
    cells = definitions().cells
    here, there = cells[body.cell], "You are there."
    if params.target_entity_id is not None:
        target = world.near(body, params.target_entity_id)
        way = distance(body, target)
        share = max(0.0, way - 1.0) / way if way else 0.0
        x, y = body.x + (target.x - body.x) * share, body.y + (target.y - body.y) * share
    else:
        if params.target_cell not in (None, here.name):
            known = params.target_cell in {cell.name for cell in cells.values()}
            code, advice = ("OTHER_CELL", "go through doors") if known else ("UNKNOWN_CELL", "doors name their cells")
            raise Refused(code, f"You are in {here.name}, and only walk within it; {advice} (interact).")
        if params.target_x is None or params.target_y is None:
            yield 0.0
            return Done("confirmed", f"You are in {here.name} already.")
        x = min(max(params.target_x, 0.0), here.size[0])
        y = min(max(params.target_y, 0.0), here.size[1])
        if (x, y) != (params.target_x, params.target_y):
            there = f"You are at the edge of {here.name}, which goes from 0, 0 to {here.size[0]}, {here.size[1]}."
    body.goal = (round(x, 2), round(y, 2))
    body.be_silent()
    yield round(math.hypot(x - body.x, y - body.y) / speed(world, body), 2)
    if body.goal is None:
        raise Refused("STOPPED", "You did not get there.")
    (body.x, body.y), body.goal = body.goal, None
    return Done("confirmed", there)


def speed(world: World, body: Body) -> float:
    """Return the walking speed of a body in metres per second."""
    outside = not definitions().cells[body.cell].inside
    return SPEED / 1.5 if outside and world.weather in ("rain", "thunder") else SPEED


# --- touching things ------------------------------------------------------------------------------


def _interact(world: World, body: Body, params: Interact) -> Plan:
    word = _ALIASES.get(params.interaction_type, params.interaction_type)
    if word not in (words := ("activate", *_DEEDS, "drop")):
        raise Refused("UNKNOWN_INTERACTION", f"Interactions are {', '.join(words)}; activate fits everything.")
    if word == "drop":
        return (yield from _drop(world, body, params.entity_id))
    target = world.reached(body, params.entity_id)
    if not isinstance(target, Thing):
        raise Refused("NOT_FOR_AGENTS", "Agents are given things (use_item), and hear each other outside this world.")
    if word == "activate":
        word = next(fitting for fitting, (_, kinds, _) in _DEEDS.items() if target.kind in kinds)
    seconds, kinds, deed = _DEEDS[word]
    if target.kind not in kinds:
        raise Refused("DOES_NOT_FIT", f"You can't {word} that; activate does what fits.")
    if word == "enter":
        _may_enter(world, body, target)
    yield seconds
    world.reached(body, target.id)
    return Done("confirmed", deed(world, body, target))


def _drop(world: World, body: Body, item_id: str) -> Plan:
    _carried(body, item_id)
    yield _DROPPING
    _carried(body, item_id)
    pile = world.lay(item_id, 0, (body.cell, body.x, body.y))
    pile.items = {}
    move_items(body.items, pile.items, item_id)
    body.put_away(item_id)
    return Done("confirmed", f"You drop {pile.name}.")


def _take(world: World, body: Body, pile: Thing) -> str:
    for item, count in list(pile.items.items()):
        move_items(pile.items, body.items, item, count)
    del world.things[pile.id]
    return f"You take {pile.name}."


def _open(world: World, body: Body, holder: Thing) -> str:
    if holder.health > 0:
        raise Refused("ALIVE", f"{holder.name} is alive.")
    told = talking.use(world, body, "", holder)
    taken = [f"{count} {world.item(item).name}" for item, count in sorted(holder.items.items())]
    for item, count in list(holder.items.items()):
        move_items(holder.items, body.items, item, count)
    return told or (f"You take {', '.join(taken)}." if taken else f"{holder.name}: nothing more for you.")


def _may_enter(world: World, body: Body, door: Thing) -> None:
    cell = definitions().cells[door.base]
    _can_walk(world, body)
    if door.key and door.key not in body.items:
        raise Refused("LOCKED", f"It is locked; the {world.item(door.key).name} opens it.")
    if not cell.opens <= world.hour < cell.closes:
        raise Refused("CLOSED", f"It is closed from {cell.closes} to {cell.opens} o'clock; come by day.")


def _enter(world: World, body: Body, door: Thing) -> str:
    _may_enter(world, body, door)
    other = world.things[door.partner]
    body.cell, body.x, body.y = other.cell, other.x, other.y
    body.be_silent()
    return f"You are in {definitions().cells[body.cell].name}."


_DEEDS: Mapping[str, tuple[float, tuple[Kind, ...], Callable[[World, Body, Thing], str]]] = {
    "talk": (2.0, ("npc",), talking.greet),
    "take": (1.0, ("item",), _take),
    "open": (2.0, ("container", "creature"), _open),
    "read": (4.0, ("container",), _open),
    "enter": (2.0, ("door",), _enter),
}
"""Interaction -> seconds, kinds of targets, and effect; the first that fits a target is its default."""


# --- using items ----------------------------------------------------------------------------------


def _carried(body: Body, item_id: str) -> None:
    if item_id not in body.items:
        raise Refused("NOT_CARRIED", "You carry nothing with that id; ids are in the inventory.")


def _use(world: World, body: Body, params: UseItem) -> Plan:
    item_id, target_id = params.item_id, params.target_entity_id
    _carried(body, item_id)
    if target_id is not None:
        world.reached(body, target_id)
    yield _USING
    _carried(body, item_id)
    if target_id is None:
        message = _use_alone(world, body, item_id)
    else:
        message = _use_on(world, body, item_id, world.reached(body, target_id))
    body.put_away(item_id)
    return Done("confirmed", message)


def _use_alone(world: World, body: Body, item_id: str) -> str:
    item = world.item(item_id)
    if item.kind in ("weapon", "armour"):
        if item_id in body.equipped:
            body.equipped.remove(item_id)
            return f"You put {item.name} away."
        world.equip(body, item_id)
        return f"You have {item.name} ready."
    if item.kind in ("food", "potion") or item_id == "draught":
        move_items(body.items, world.spent, item_id)
        body.health = min(body.max_health, body.health + item.power)
        return f"{item.name} does you good." if item.power else f"You drink {item.name}. It was not meant for you."
    raise Refused("NO_USE", f"{item.name} has no use by itself.")


def _use_on(world: World, body: Body, item_id: str, target: Thing | Body) -> str:
    name = world.item(item_id).name
    if isinstance(target, Body):
        move_items(body.items, target.items, item_id)
        return f"You give {name} away."
    if told := talking.use(world, body, item_id, target):
        return told
    if target.kind == "npc":
        return talking.gift(world, body, item_id, target)
    if target.kind == "container" and not definitions().containers[target.base].fixed:
        move_items(body.items, target.items, item_id)
        return f"You put {name} into it."
    raise Refused("NO_USE", f"{name} does nothing there now.")


# --- combat ---------------------------------------------------------------------------------------


def _fight(world: World, body: Body, params: CombatAction) -> Plan:
    action, target_id = params.action_type, params.target_entity_id
    if action not in ACTIONS:
        raise Refused("UNKNOWN_ACTION", f"Actions of combat are {', '.join(ACTIONS)}.")
    if action == "flee":
        world.near(body, target_id)
        yield BLOW
        return _flee(world, body, world.near(body, target_id))
    _foe(world, body, target_id)
    body.guard = action == "block"
    yield BLOW
    if body.guard:
        return Done("confirmed", "You stood behind your guard.")
    return _attack(world, body, _foe(world, body, target_id))


def _foe(world: World, body: Body, target_id: str) -> Thing:
    target = world.reached(body, target_id)
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
    if chance.random() > 0.7:
        return Done("confirmed", f"You miss {target.name}.", data={"hit": False})
    power = max((world.item(item).power for item in body.equipped if world.item(item).kind == "weapon"), default=2)
    target.health = max(0, target.health - chance.randint(math.ceil(power / 2), power + 2))
    data = {"hit": True, "killed": target.health == 0}
    if target.health:
        return Done("confirmed", f"You hit {target.name}.", data=data)
    target.name = f"Dead {target.name}"
    return Done("confirmed", f"{target.name}: you have won.", data=data)


def _flee(world: World, body: Body, foe: Thing | Body) -> Done:
    if world.roll().random() < 0.3:
        raise Refused("NO_ESCAPE", "There was no way past; try again.")
    away = distance(body, foe) or 1.0
    width, depth = definitions().cells[body.cell].size
    body.x = round(min(width, max(0, body.x + (body.x - foe.x) / away * 14)), 2)
    body.y = round(min(depth, max(0, body.y + (body.y - foe.y) / away * 14)), 2)
    body.escape(world)
    return Done("confirmed", f"You get away from {foe.name}.")


# Any: each takes the parameters of its command.
_PLANS: Mapping[type[Payload], Callable[[World, Body, Any], Plan]] = {
    MoveTo: _move, Interact: _interact, UseItem: _use, Wait: _wait, CombatAction: _fight, Dialogue: talking.begin
}  # fmt: skip
