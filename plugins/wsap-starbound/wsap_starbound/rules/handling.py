"""Using, wearing, taking, dropping and giving things, and talking."""

from __future__ import annotations

from collections import Counter

from wsap_core.untrusted import sanitize
from wsap_starbound.data import items, planets
from wsap_starbound.engine.being import MOST_HEALTH, Being
from wsap_starbound.engine.place import AIR, NAMES, NUMBER, TILES, Cell
from wsap_starbound.engine.universe import Universe
from wsap_starbound.rules.base import (
    Outcome,
    Params,
    called,
    companions,
    objects,
    people,
    refused,
    slot_item,
    spend,
)
from wsap_starbound.rules.digging import cell_at, dig, put_down, why_not_dig, why_not_place
from wsap_starbound.rules.fighting import hit, targets
from wsap_starbound.rules.making import PRICES

_STORES = ("chest", "locker", "pack")
_SAYINGS = {
    "elder": "Three lenses made the old lantern speak. The green one lies deep to the west of where you landed; your"
    " star chart knows all three places.",
    "smith": "Sand becomes glass in a furnace, and glass makes breathers and fuel cells.",
    "child": "At night the stalkers come. They don't like torches!",
    "trader": "I pay shards for coal, bars, crystals, hides and roasts: give me some.",
}


def usable(world: Universe, being: Being) -> list[str]:
    """Return what can be interacted with now: things and people within reach."""
    return list(dict.fromkeys([name for name, _ in objects(world, being)] + [c.id for c in people(world, being)]))


def interact(world: Universe, being: Being, params: Params) -> Outcome:
    """Use a thing or talk to somebody within reach; without a target, the nearest."""
    wanted = params.get("target")
    for name, cell in objects(world, being):
        if wanted in (None, name, TILES[NUMBER[name]].word):
            spend(world, being, 1)
            return _use(world, being, name, cell)
    for person in people(world, being):
        if wanted in (None, person.id):
            spend(world, being, 1)
            return Outcome(True, f"The {person.kind} says: {_SAYINGS[person.kind]}", ["talk"])
    return refused(f"there is no {str(wanted)[:40]!r} within reach" if wanted else "nothing to use is within reach")


def _use(world: Universe, being: Being, name: str, cell: Cell) -> Outcome:
    place = world.where(being)
    if name in _STORES:
        held = place.contents.get(cell, Counter())
        told = ", ".join(f"{count} {called(item)}" for item, count in sorted(held.items())) or "nothing"
        return Outcome(True, f"The {name} has: {told}. Take it with take, put something in with drop.")
    if name == "bed":
        being.bed = (place.id, *cell)
        return Outcome(True, "If you die, you can come back to life at this bed.")
    if name == "flag":
        being.flag = (place.id, *cell)
        return Outcome(True, "This flag is yours now: the beam sets you down here.")
    if name == "lens":
        return _take_lens(world, being, cell)
    if name == "beam_pad":
        return _repair(being)
    if name == "star_chart":
        being.charted = True
        told = "; ".join(_where(world, planet) for planet in planets())
        return Outcome(True, f"The chart shows where the lenses are. {told}.", ["read_chart"])
    if name == "lantern":
        return _lantern(being)
    return Outcome(True, f"The {TILES[NUMBER[name]].word} is ready: craft works here.")


def _where(world: Universe, planet: str) -> str:
    x, y = world.place(planet).lens or (0, 0)
    return f"{planets()[planet].name}: column {x}, row {y}"


def _take_lens(world: Universe, being: Being, cell: Cell) -> Outcome:
    place = world.where(being)
    lens = planets()[place.planet].lens
    if not being.room_for(lens):
        return refused(f"you can't carry more {called(lens)}")
    place.put(*cell, AIR)
    being.gain(lens)
    return Outcome(True, f"You take the {called(lens)} from its pedestal.", ["find_lens"], [lens])


def _repair(being: Being) -> Outcome:
    if being.pad:
        return Outcome(True, "The beam pad hums; its buffer is whole.")
    if not being.bag.get("coil"):
        return Outcome(True, "The buffer of the beam pad is broken: it needs a new buffer coil.")
    being.lose("coil")
    being.pad = True
    return Outcome(True, "You fit the coil; the buffer of the beam pad is whole again.", ["repair_pad"], (), ["pad"])


def _lantern(being: Being) -> Outcome:
    fitted = [p.lens for p in planets().values() if being.bag.get(p.lens) and p.lens not in being.lenses]
    for lens in fitted:
        being.lose(lens)
        being.lenses.append(lens)
    if len(being.lenses) < len(planets()):
        told = f"You fit {len(fitted)} and see" if fitted else "You see"
        return Outcome(True, f"{told} {len(being.lenses)} of 3 lenses in the old lantern.")
    if being.read:
        return Outcome(True, "The lantern burns, and its message fades in the light.")
    being.read = True
    message = "Who keeps the light keeps the way. Pass it on."
    deeds = ["read_message"]
    return Outcome(True, f"The lantern lights up, and you read aloud: {message!r}", deeds, (), ["lantern"])


# --- slots ------------------------------------------------------------------------------------------


def useful_slots(world: Universe, being: Being) -> list[str]:
    """Return the slots whose item can be used now without naming a cell."""
    return [str(n) for n, item in enumerate(being.slots, 1) if item and not _no_use(world, being, item, {})]


def _no_use(world: Universe, being: Being, item: str, params: Params) -> str:
    if not item:
        return "that slot is empty"
    kind = items()[item]
    if kind.kind == "food":
        return "" if being.health < MOST_HEALTH else "you are not hurt"
    if kind.kind == "tool":
        return why_not_dig(world, being, cell_at(world, being, params))
    if kind.kind == "weapon":
        return "" if targets(world, being, item) else "no creature is within its reach"
    if kind.kind == "block":
        return why_not_place(world, being, item, cell_at(world, being, params))
    return "" if kind.kind == "gear" else f"{kind.name} is not for use by itself; craft with it, or give it"


def use_item(world: Universe, being: Being, params: Params) -> Outcome:
    """Use the item of a slot: eat it, dig or hit with it, place it, or put it on or off."""
    item = slot_item(being, params)
    if why := _no_use(world, being, item, params):
        return refused(why)
    kind = items()[item]
    if kind.kind == "tool":
        return dig(world, being, params)
    if kind.kind == "weapon":
        near = targets(world, being, item)
        target = str(params.get("target") or near[0].id)
        return hit(world, being, target, item)
    if kind.kind == "block":
        return put_down(world, being, item, cell_at(world, being, params))
    if kind.kind == "gear":
        if item in being.worn:
            being.worn.remove(item)
        else:
            being.worn.append(item)
        spend(world, being, 1)
        return Outcome(True, f"You {'put on' if item in being.worn else 'took off'} the {kind.name}.")
    before = being.health
    being.lose(item)
    being.health = min(MOST_HEALTH, being.health + kind.heals)
    gained = being.health - before
    spend(world, being, 2)
    return Outcome(True, f"You used {kind.name} and regained {gained} health.", ["heal"])


def equip(world: Universe, being: Being, params: Params) -> Outcome:
    """Put an item of the bag into a slot; no time passes for what is in a slot already."""
    item, slot = str(params["item"]), int(str(params["slot"])) - 1
    item = next((name for name in being.bag if item in (name, called(name))), item)
    if item not in being.bag:
        return refused(f"you have no {item[:40]!r}")
    if being.slots[slot] == item:
        return refused(f"{called(item)} is in slot {slot + 1} already")
    old = being.slots[slot]
    being.slots = [old if one == item else one for one in being.slots]
    being.slots[slot] = item
    spend(world, being, 1)
    return Outcome(True, f"Slot {slot + 1} has {called(item)} now.")


# --- stores and others ------------------------------------------------------------------------------


def stores(world: Universe, being: Being) -> list[tuple[str, Cell]]:
    """Return the chests, lockers and packs within reach."""
    return [(name, cell) for name, cell in objects(world, being) if name in _STORES]


def can_take(world: Universe, being: Being) -> list[str]:
    """Return the kinds of stores within reach with something in them that there is room for."""
    contents = world.where(being).contents
    names = [name for name, cell in stores(world, being) if any(map(being.room_for, contents.get(cell) or ()))]
    return list(dict.fromkeys(names))


def take(world: Universe, being: Being, params: Params) -> Outcome:
    """Take all there is room for from a chest, locker or pack."""
    wanted, place = params.get("target"), world.where(being)
    for name, cell in stores(world, being):
        held = place.contents.get(cell)
        if not held or wanted not in (None, name) or not any(map(being.room_for, held)):
            continue
        taken = {item: being.gain(item, count) for item, count in sorted(held.items())}
        left = Counter({item: count - taken[item] for item, count in held.items() if count > taken[item]})
        place.contents[cell] = left
        if not left and name == "pack":
            del place.contents[cell]
            place.put(*cell, AIR)
        spend(world, being, 1)
        told = ", ".join(f"{count} {called(item)}" for item, count in taken.items() if count)
        return Outcome(True, f"You took {told} from the {name}.")
    return refused("no chest, locker or pack with something to take is within reach")


def no_drop(world: Universe, being: Being) -> str:
    """Return why nothing can be dropped; empty if something can."""
    if not any(being.slots):
        return "all your slots are empty"
    return "" if _store_for(world, being) else "there is no room for a pack here"


def _store_for(world: Universe, being: Being) -> Cell | None:
    """Return where dropped things go: a store within reach, or the cell of the feet."""
    place, near = world.where(being), stores(world, being)
    if near:
        return near[0][1]
    return (being.x, being.y) if place.at(being.x, being.y) == AIR else None


def drop(world: Universe, being: Being, params: Params) -> Outcome:
    """Put one item of a slot into a chest, locker or pack within reach, or else into a new pack."""
    item, place, cell = slot_item(being, params), world.where(being), _store_for(world, being)
    if not item:
        return refused("that slot is empty")
    if cell is None:
        return refused("there is no room for a pack here")
    being.lose(item)
    if place.at(*cell) == AIR:
        place.put(*cell, NUMBER["pack"])
    place.contents.setdefault(cell, Counter())[item] += 1
    spend(world, being, 1)
    return Outcome(True, f"You put {called(item)} into the {NAMES[place.at(*cell)]}.")


def can_give(world: Universe, being: Being) -> list[str]:
    """Return who can be given something now."""
    buyers = [p.id for p in people(world, being) if p.kind == "trader"]
    return [b.owner for b in companions(world, being)] + (buyers if any(i in PRICES for i in being.slots) else [])


def give(world: Universe, being: Being, params: Params) -> Outcome:
    """Give one item of a slot to a companion, or sell it to the trader."""
    item, target = slot_item(being, params), str(params["target"])
    if not item:
        return refused("that slot is empty")
    friend = next((b for b in companions(world, being) if b.owner == target), None)
    if friend is not None:
        if not friend.room_for(item):
            return refused(f"{target!r} can't carry more {called(item)}")
        being.lose(item)
        friend.gain(item)
        world.tell(friend.owner, f"{sanitize(being.owner, 40)} gave you {called(item)}.", "message")
        spend(world, being, 1)
        return Outcome(True, f"You gave {called(item)} to {sanitize(target, 40)}.")
    if target not in (p.id for p in people(world, being) if p.kind == "trader"):
        return refused(f"there is nobody {target[:40]!r} within reach who takes things")
    price = PRICES.get(item, 0)
    if not price:
        return refused(f"the trader does not buy {called(item)}")
    if being.room_for("shard") < price:
        return refused("you can't carry more shards")
    being.lose(item)
    being.gain("shard", price)
    spend(world, being, 1)
    return Outcome(True, f"The trader pays {price} shards for {called(item)}.", ["trade"])


def say(world: Universe, being: Being, params: Params) -> Outcome:
    """Say something, which companions in the same place hear."""
    text = sanitize(str(params["text"]), 300)
    heard = [b for b in world.present(being.place) if b is not being]
    for friend in heard:
        world.tell(friend.owner, f"{sanitize(being.owner, 40)} says: {text}", "message")
    spend(world, being, 1)
    return Outcome(
        True, f"You said it; {len(heard)} heard you." if heard else "You said it; nobody was there to hear it."
    )
