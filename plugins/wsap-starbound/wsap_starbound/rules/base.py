"""What the rules of all actions share: outcomes, and what is within reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wsap_core.protocol.values import JsonValue
from wsap_starbound.data import creatures, items
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.fauna import hostile
from wsap_starbound.engine.physics import standing
from wsap_starbound.engine.place import NAMES, TILES, Cell, Creature, Place
from wsap_starbound.engine.universe import Universe

REACH, ARM = 3, 4
"""How far a body reaches to use things, and to dig and place, in tiles."""
Params = Mapping[str, JsonValue]
Choices = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Outcome:
    """What came of an action."""

    success: bool
    message: str
    deeds: Sequence[str] = ()
    """Achievements, if they are new."""
    stages: Sequence[str] = ()
    """Stages of quests, if they are new."""
    quests: Sequence[str] = ()
    """Quests that are finished now."""


def refused(reason: str) -> Outcome:
    """Return an outcome of an action that was not carried out: nothing has changed."""
    return Outcome(False, f"That does not work: {reason}.")


def spend(world: Universe, being: Being, beats: int) -> bool:
    """Let beats pass for a body; stop and return False once it is hurt or dead."""
    health = being.health
    for _ in range(beats):
        world.pass_beat(being)
        if being.health < health:
            return False
        health = being.health
    return True


def until_still(world: Universe, being: Being, most: int = 60) -> None:
    """Let beats pass until the body stands, swims or holds on to something."""
    for _ in range(most):
        if not being.alive or (not being.rise and standing(world.where(being), being)):
            return
        world.pass_beat(being)


def near(place: Place, being: Being, x: int, y: int, reach: int = REACH) -> bool:
    """Whether a cell is within reach of the body."""
    rows = min(abs(y - being.y), abs(y - being.y + 1))
    return max(abs(place.apart(being.x, x)), rows) <= reach


def objects(world: Universe, being: Being, reach: int = REACH) -> list[tuple[str, Cell]]:
    """Return the things to use within reach, nearest first: word and cell."""
    place, found = world.where(being), []
    for y in range(being.y - reach - 1, being.y + reach + 1):
        for x in range(being.x - reach, being.x + reach + 1):
            tile = place.at(x, y)
            if TILES[tile].object and near(place, being, x, y, reach):
                found.append((abs(x - being.x) + abs(y - being.y), NAMES[tile], (place.wrap(x), y)))
    return [(name, cell) for _, name, cell in sorted(found)]


def station_near(world: Universe, being: Being, station: str) -> bool:
    """Whether a station is within reach."""
    return any(name == station for name, _ in objects(world, being))


def people(world: Universe, being: Being, reach: int = REACH) -> list[Creature]:
    """Return the people of the settlement within reach."""
    place = world.where(being)
    return [c for c in place.creatures if is_person(c) and near(place, being, c.x, c.y, reach)]


def is_person(creature: Creature) -> bool:
    """Whether a creature is one of the people of the settlement."""
    return creatures()[creature.kind].temper == "people"


def companions(world: Universe, being: Being, reach: int = REACH) -> list[Being]:
    """Return other living bodies within reach."""
    place = world.where(being)
    return [b for b in world.present(being.place) if b is not being and near(place, being, b.x, b.y, reach)]


def enemies(world: Universe, being: Being, reach: int) -> list[Creature]:
    """Return the creatures that would attack now, within so many tiles of the body."""
    place, found = world.where(being), []
    for c in place.creatures:
        dark = world.night(place) or not place.open_sky(c.x, c.y)
        if hostile(c.kind, dark=dark) and abs(place.apart(being.x, c.x)) + abs(c.y - being.y) <= reach:
            found.append(c)
    return found


def called(item: str) -> str:
    """Return an item's name for people."""
    return items()[item].name


def slot_item(being: Being, params: Params) -> str:
    """Return the item in the slot that the parameters name; empty if there is none."""
    return being.slots[int(str(params["slot"])) - 1]


def whole(params: Params, name: str, default: int) -> int:
    """Return a whole number of the parameters."""
    given = params.get(name)
    return default if given is None else int(str(given))


def filled_slots(being: Being) -> list[str]:
    """Return the numbers of slots with an item, as words."""
    return [str(number) for number, item in enumerate(being.slots, 1) if item]
