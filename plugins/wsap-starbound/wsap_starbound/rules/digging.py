"""Digging tiles and placing them."""

from __future__ import annotations

from collections import Counter

from wsap_starbound.data import items
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.place import AIR, NAMES, NUMBER, SOLID, TILES, Cell, Place
from wsap_starbound.engine.universe import Universe
from wsap_starbound.rules.base import ARM, Outcome, Params, called, near, refused, slot_item, spend, until_still, whole

_FURNITURE = frozenset({"bench", "furnace", "chest", "bed", "flag"})
_DEEDS = {"trunk": "cut_tree", "iron_ore": "dig_iron", "crystal": "dig_crystal"}


def power(being: Being) -> int:
    """Return the power of the best pick; 0 for bare hands."""
    tool = being.best("tool")
    return items()[tool].power if tool else 0


def cell_at(world: Universe, being: Being, params: Params) -> Cell:
    """Return the cell that `dx` and `dy` name, from the feet; without them, the one in front."""
    place = world.where(being)
    x = being.x + whole(params, "dx", being.facing)
    return (place.wrap(x) if place.planet else x), being.y + whole(params, "dy", 0)


def why_not_dig(world: Universe, being: Being, cell: Cell) -> str:
    """Return why a tile can't be dug now; empty if it can."""
    place = world.where(being)
    x, y = cell
    if not place.inside(x, y) or not near(place, being, x, y, ARM):
        return "that is out of your reach"
    tile = TILES[place.at(x, y)]
    if not tile.drop:
        return f"there is only {tile.word}" if tile.tier < 9 else f"the {tile.word} can't be dug"
    if tile.tier > power(being):
        return f"the {tile.word} needs a better pick"
    if tile.solid and all(SOLID[place.at(x + ax, y + ay)] for ax, ay in ((0, 1), (0, -1), (1, 0), (-1, 0))):
        return "it is behind other tiles"
    if place.contents.get(cell):
        return f"the {tile.word} is not empty"
    if not being.room_for(tile.drop):
        return f"you can't carry more {called(tile.drop)}"
    return ""


def diggable(world: Universe, being: Being) -> list[Cell]:
    """Return the offsets of the tiles that can be dug now, by the rules of `why_not_dig`."""
    place, strength, found = world.where(being), power(being), []
    at = place.at
    for dy in range(-ARM - 1, ARM + 1):
        y = being.y + dy
        if not 0 <= y < place.height:
            continue
        for dx in range(-ARM, ARM + 1):
            x = being.x + dx
            tile = TILES[at(x, y)]
            if not tile.drop or tile.tier > strength or not being.room_for(tile.drop):
                continue
            if (
                tile.solid
                and SOLID[at(x, y - 1)]
                and SOLID[at(x - 1, y)]
                and SOLID[at(x + 1, y)]
                and SOLID[at(x, y + 1)]
            ):
                continue
            if place.contents.get((place.wrap(x), y)) is None or not place.contents[place.wrap(x), y]:
                found.append((dx, dy))
    return found


def dig(world: Universe, being: Being, params: Params) -> Outcome:
    """Dig one tile, and take what it gives; a trunk is cut with all that stands on it."""
    place, cell = world.where(being), cell_at(world, being, params)
    if why := why_not_dig(world, being, cell):
        return refused(why)
    name = NAMES[place.at(*cell)]
    tile = TILES[place.at(*cell)]
    beats = max(1, tile.beats * 2 // (1 + power(being)))
    spend(world, being, beats)
    if not being.alive or place.at(*cell) != NUMBER[name]:
        return Outcome(False, "You were interrupted.")
    gained = Counter[str]()
    for x, y in _tree(place, cell) if name == "trunk" else [cell]:
        drop = TILES[place.at(x, y)].drop
        if being.gain(drop):
            gained[drop] += 1
            place.put(x, y, AIR)
            place.contents.pop((x, y), None)
    until_still(world, being)
    told = ", ".join(f"{count} {called(item)}" for item, count in gained.items())
    deeds = [_DEEDS[name]] if name in _DEEDS else []
    return Outcome(True, f"You dug {tile.word} and got {told}.", deeds)


def _tree(place: Place, cell: Cell) -> list[Cell]:
    """Return a trunk from a cell upwards, and the leaves around it."""
    x, y = cell
    found = []
    while place.at(x, y) == NUMBER["trunk"]:
        found.append((x, y))
        y -= 1
    leaves = NUMBER["leaves"]
    around = [(place.wrap(x + ax), y + ay) for ax in (-1, 0, 1) for ay in (-1, 0, 1)]
    found += [one for one in around if place.at(*one) == leaves]
    return found


def why_not_place(world: Universe, being: Being, item: str, cell: Cell) -> str:
    """Return why an item can't be placed in a cell now; empty if it can."""
    if not item:
        return "that slot is empty"
    kind = items()[item]
    if not kind.tile:
        return f"{kind.name} can't be placed"
    place, (x, y) = world.where(being), cell
    if not place.planet:
        return "the ship is no place to build"
    if not place.inside(x, y) or y < 1 or not near(place, being, x, y, ARM):
        return "that is out of your reach"
    there, tile = TILES[place.at(x, y)], TILES[NUMBER[kind.tile]]
    if place.at(x, y) != AIR and not (there.flow in ("water", "lava") and tile.solid):
        return f"there is {there.word} already"
    bodies = {part for b in world.present(place.id) for part in b.cells} | {(c.x, c.y) for c in place.creatures}
    if tile.solid and cell in bodies:
        return "somebody is there"
    if all(place.at(x + ax, y + ay) == AIR for ax, ay in ((0, 1), (0, -1), (1, 0), (-1, 0))):
        return "nothing is beside it to hold it"
    if kind.tile in _FURNITURE and not place.solid(x, y + 1):
        return f"a {kind.name} needs firm ground below it"
    return ""


def place_item(world: Universe, being: Being, params: Params) -> Outcome:
    """Place the item of a slot."""
    return put_down(world, being, slot_item(being, params), cell_at(world, being, params))


def put_down(world: Universe, being: Being, item: str, cell: Cell) -> Outcome:
    """Place an item in a cell; a flag and a bed are where the body can come back to life."""
    if why := why_not_place(world, being, item, cell):
        return refused(why)
    place, kind = world.where(being), items()[item]
    spend(world, being, 1)
    if not being.alive or why_not_place(world, being, item, cell):
        return Outcome(False, "You were interrupted.")
    being.lose(item)
    place.put(*cell, NUMBER[kind.tile])
    until_still(world, being)
    if item == "chest":
        place.contents[cell] = Counter()
    if item == "flag":
        being.flag = (place.id, *cell)
    deeds = {"bench": ["place_bench"], "torch": ["place_torch"], "flag": ["plant_flag"], "ladder": ["build_ladder"]}
    return Outcome(True, f"You placed {kind.name}.", deeds.get(item, []))
