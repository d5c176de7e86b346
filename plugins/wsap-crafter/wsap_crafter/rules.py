"""Availability of the actions by the game's preconditions, with reasons as text.

Everything follows from ``crafter.constants`` and the checks of ``crafter.objects.Player``, and is tested against the
game for each action. An action is available if it has its described effect; others take a step without any effect.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from wsap_core.protocol import ActionAvailability, ActionDef, ActionSpace
from wsap_crafter.goals import either
from wsap_crafter.simulation.game import constants
from wsap_crafter.simulation.sight import FACINGS, GROUND_CHARACTERS, HERE, PLACE_TOWARDS, WIDTH, WORDS, Sight

MOVES = {"move_left": "west", "move_right": "east", "move_up": "north", "move_down": "south"}
"""Movement action -> its direction."""

GAME_ACTIONS: tuple[str, ...] = tuple(constants.actions)
"""The game's 17 actions, in the game's order."""

VITALS = ("health", "food", "drink", "energy")
ITEMS: tuple[str, ...] = tuple(name for name in constants.items if name not in VITALS)
_FIRST_ITEM = len(VITALS)
_LIMITS: dict[str, int] = {name: info["max"] for name, info in constants.items.items()}
_WALKABLE = frozenset(GROUND_CHARACTERS[name] for name in [*constants.walkable, "lava"])
# Ground that creatures walk on, and objects that may leave such ground.
_OPEN = frozenset([*(GROUND_CHARACTERS[name] for name in constants.walkable), *"CZSapP"])
_HITTABLE = frozenset("CZSP")
# Items whose source remains when they are collected; with a full inventory collecting them changes nothing.
_ENDLESS = tuple(
    item
    for material, rule in constants.collect.items()
    for item in rule["receive"]
    if rule["leaves"] == material and item not in VITALS
)
_ENDLESS_ACHIEVEMENTS = tuple(f"collect_{item}" for item in _ENDLESS)


class Situation(NamedTuple):
    """The inputs of availability, hashable for caching."""

    surroundings: str
    """The characters to the west, east, north and south."""
    facing: str
    asleep: bool
    """Whether the player is asleep and not rested, so that it sleeps on whatever the action."""
    rested: bool
    """Whether energy is at its maximum."""
    bench: str
    """"t" and "f" if a table and a furnace are in reach; "|" in the column or row where none ever is."""
    items: tuple[int, ...]
    """Counts in the order of :data:`ITEMS`."""
    had: tuple[bool, ...]
    """Whether each item of :data:`_ENDLESS` was ever collected."""


def situation_of(player: Any, sight: Sight) -> Situation:
    """Return the current situation of the player."""
    inventory = player.inventory
    x, y = player.pos.tolist()
    cells, achievements = sight.cells, player.achievements
    rested = inventory["energy"] >= _LIMITS["energy"]
    return Situation(
        cells[HERE - 1] + cells[HERE + 1] + cells[HERE - WIDTH] + cells[HERE + WIDTH],
        FACINGS[int(player.facing[0]), int(player.facing[1])],
        player.sleeping and not rested,
        rested,
        _bench(sight.ground, x, y),
        tuple(inventory.values())[_FIRST_ITEM:],
        tuple([achievements[name] > 0 for name in _ENDLESS_ACHIEVEMENTS]),
    )


def _bench(ground: str, x: int, y: int) -> str:
    """Return which of table and furnace the game finds next to the player, diagonals included. It finds nothing in the
    westernmost column and the northernmost row, because its slice starts at -1 there."""
    if x == 0 or y == 0:
        return "|"
    around = ground[HERE - WIDTH - 1 : HERE - WIDTH + 2] + ground[HERE - 1 : HERE + 2]
    around += ground[HERE + WIDTH - 1 : HERE + WIDTH + 2]
    return ("t" if "t" in around else "") + ("f" if "f" in around else "")


def in_the_open(situation: Situation) -> bool:
    """Return whether a creature could get to one of the four cells beside the player, from which it can strike."""
    return any(cell in _OPEN for cell in situation.surroundings)


def faced_character(cells: str, facing: str) -> str:
    """Return the map character of the cell in front of the player."""
    return cells[PLACE_TOWARDS[facing]]


@lru_cache(maxsize=16_384)
def availability(situation: Situation) -> tuple[ActionAvailability, ...]:
    """Return the availability of each of the 17 actions, with reasons."""
    return tuple(_interned(name, reason_against(name, situation)) for name in GAME_ACTIONS)


@lru_cache(maxsize=4096)
def _interned(name: str, reason: str) -> ActionAvailability:
    return ActionAvailability(name, not reason, reason)


def reason_against(name: str, situation: Situation) -> str:
    """Return why an action would have no effect now; empty if it is available."""
    if name == "noop":
        return ""
    if situation.asleep:
        return "" if name == "sleep" else "you are asleep, and sleep on until rested or hurt"
    if name == "sleep":
        return "you are fully rested" if situation.rested else ""
    if name in MOVES:
        return _against_moving(MOVES[name], situation)
    if name == "do":
        return _against_doing(situation)
    verb, _, thing = name.partition("_")
    return _against_placing(thing, situation) if verb == "place" else _against_making(thing, situation)


_SIDES = {"west": 0, "east": 1, "north": 2, "south": 3}


def _front(situation: Situation) -> str:
    return situation.surroundings[_SIDES[situation.facing]]


def _against_moving(direction: str, situation: Situation) -> str:
    cell = situation.surroundings[_SIDES[direction]]
    if cell in _WALKABLE or situation.facing != direction:
        return ""
    return f"{with_article(WORDS[cell])} is in the way and you face it already"


def _against_doing(situation: Situation) -> str:
    cell = _front(situation)
    if cell in _HITTABLE:
        return ""
    if cell == "p":
        return "the sapling in front of you has not ripened yet"
    material = WORDS[cell]
    rule = constants.collect.get(material)
    if rule is None:
        return f"there is nothing to collect from {with_article(material)}"
    if lacking := _lacking(rule["require"], situation):
        return f"collecting {material} {lacking}"
    return _against_full_hands(material, situation)


def _against_full_hands(material: str, situation: Situation) -> str:
    """Return why collecting would have no effect, not even an achievement, with a full inventory; else empty."""
    rule = constants.collect[material]
    (item,) = rule["receive"]
    if item in VITALS or rule["leaves"] != material:
        return ""
    if not situation.had[_ENDLESS.index(item)] or _count(item, situation) < _LIMITS[item]:
        return ""
    return f"you carry {_LIMITS[item]} {_noun(item)}, the most you can"


def _against_placing(thing: str, situation: Situation) -> str:
    rule = constants.place[thing]
    cell = _front(situation)
    lacking = _lacking(rule["uses"], situation)
    if WORDS[cell] in rule["where"]:
        return lacking
    where = f"you must face free {either(rule['where'])}, and you face {with_article(WORDS[cell])}"
    return f"{lacking}, and {where}" if lacking else where


def _against_making(thing: str, situation: Situation) -> str:
    rule = constants.make[thing]
    missing = [name for name in rule["nearby"] if name[0] not in situation.bench]
    parts = []
    if missing and situation.bench == "|":
        parts.append("nothing can be made in the world's westernmost column and northernmost row")
    elif missing:
        parts.append(f"no {' and no '.join(missing)} within reach (adjacent, diagonals included)")
    if lacking := _lacking(rule["uses"], situation):
        parts.append(lacking)
    return ", and ".join(parts)


def _count(item: str, situation: Situation) -> int:
    return situation.items[ITEMS.index(item)]


def _lacking(needed: dict[str, int], situation: Situation) -> str:
    """Return "needs 2 wood, you have 1" for missing items; empty if none are missing."""
    short = [(item, amount) for item, amount in needed.items() if _count(item, situation) < amount]
    if not short:
        return ""
    need = " and ".join(f"{amount} {_noun(item)}" for item, amount in short)
    have = " and ".join(f"{_count(item, situation) or 'no'}{_item_if_many(short, item)}" for item, _ in short)
    return f"needs {need}, you have {have if have != 'no' else 'none'}"


def _item_if_many(short: list[tuple[str, int]], item: str) -> str:
    return f" {_noun(item)}" if len(short) > 1 else ""


def _noun(item: str) -> str:
    return item.replace("_", " ")


def with_article(word: str) -> str:
    """Return a word with its article, such as "a tree", "an arrow", "the edge of the world" or "water"."""
    if word in ("grass", "sand", "water", "stone", "lava", "coal", "iron", "path"):
        return word
    if word == "edge of the world":
        return f"the {word}"
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def _needs(needed: dict[str, int]) -> tuple[str, ...]:
    return tuple(f"{amount} {_noun(item)}" for item, amount in needed.items())


def _action_space() -> ActionSpace:
    definitions = {
        "noop": ActionDef("noop", "Let a step pass", (), (), "wait"),
        "do": ActionDef(
            "do",
            "Use what you face: collect it, drink, hit a creature, eat a ripe plant",
            (),
            (),
            "interaction",
        ),
        "sleep": ActionDef("sleep", "Fall asleep until rested or hurt", (), ("energy below 9",), "rest"),
    }
    for name, direction in MOVES.items():
        description = f"Turn and step {direction}"
        definitions[name] = ActionDef(name, description, (), (), "movement")
    for thing, rule in constants.place.items():
        name = f"place_{thing}"
        told = f"Takes {', '.join(_needs(rule['uses']))}; onto free {either(rule['where'])}"
        definitions[name] = ActionDef(name, told, (), (), "placing")
    for thing, recipe in constants.make.items():
        name = f"make_{thing}"
        nearby = " and ".join(map(with_article, recipe["nearby"]))
        told = f"Takes {', '.join(_needs(recipe['uses']))}; next to {nearby}"
        definitions[name] = ActionDef(name, told, (), (), "crafting")
    return ActionSpace(tuple(definitions[name] for name in GAME_ACTIONS))


ACTION_SPACE = _action_space()
"""The 17 actions with their preconditions and the costs from the game's data."""
