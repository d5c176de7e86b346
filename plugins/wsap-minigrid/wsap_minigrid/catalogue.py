"""MiniGrid's description, actions, map legend and portable items, and the conversion of foreign items."""

from __future__ import annotations

from typing import Any

from wsap_core.authoring.one_body import Refused
from wsap_core.protocol import ActionDef, ActionSpace, PortableItem

_DESCRIPTION = """\
You are in rooms of square cells, seen from above, and face north, east, south or west. You see what is
ahead of you and to the sides, not what is behind you, and not through walls and closed doors. You solve
a level by doing what its goal says; there are eight, one after the other, each with a limit of steps.
Being quick counts. Lava kills. You hold one thing at a time. {keys}
A tool from another world breaks one locked door open, and a lockpick opens one; then they are gone."""
DESCRIPTION = _DESCRIPTION.format(
    keys="A locked door opens with a key of its\ncolour, in your hand. Each level begins with empty hands: what is in "
    "your hand when a level is solved\nis kept for other worlds, and opens nothing here."
)
"""The description of the game as MiniGrid has it."""
DESCRIPTION_WITH_PACK = _DESCRIPTION.format(
    keys="A locked door opens with a key of its\ncolour, in your hand or in your pack. What is in your hand when a "
    "level is solved goes into your pack,\nand stays with you."
)
"""The description of the game with a pack between levels."""

SPACE = ActionSpace(
    [
        ActionDef("turn_left", "Turn left, on the spot", category="movement"),
        ActionDef("turn_right", "Turn right, on the spot", category="movement"),
        ActionDef("forward", "Go one cell ahead", category="movement"),
        ActionDef("pickup", "Take what lies right ahead into your hand", preconditions=["Your hand is empty"]),
        ActionDef("drop", "Lay down what is in your hand, right ahead", preconditions=["The cell ahead is free"]),
        ActionDef("toggle", "Open or close the door right ahead", preconditions=["If locked, you can open it"]),
    ]
)
"""In the order of MiniGrid's action numbers."""

LEGEND = {
    **dict.fromkeys("^>v<", "you"),
    ".": "floor", "#": "wall", "G": "goal", "~": "lava", "k": "key", "o": "ball", "b": "box",
    "_": "open door", "D": "closed door", "L": "locked door", " ": "not seen",
}  # fmt: skip
"""Map character -> meaning; the arrow points in the direction of the player's facing."""

THINGS = "kob_DL"
"""Map characters of things that are listed as entities, too."""

FACINGS = ("east", "south", "west", "north")
COLOURS = ("red", "green", "blue", "purple", "yellow", "grey")

PORTABLE = {"key": ("key_item", 1), "ball": ("material", 3), "box": ("material", 5)}
"""Kind of portable thing -> category and tier."""

USELESS = {
    "weapon": "there is nobody to fight in these rooms",
    "armor": "nothing in these rooms hurts but lava, and no armor helps against that",
    "consumable": "nobody gets hungry or thirsty in these rooms",
    "currency": "there is nobody to buy from in these rooms",
    "material": "nothing is built in these rooms",
}
"""Category -> why a foreign item of it is refused."""


def name_of(thing: Any) -> str:
    """Return the name of a thing of MiniGrid: "yellow key", "locked red door", "floor"."""
    if thing is None:
        return "floor"
    if thing.type in ("wall", "goal", "lava"):
        return str(thing.type)
    state = "" if thing.type != "door" else "open " if thing.is_open else "locked " if thing.is_locked else "closed "
    return f"{state}{thing.color} {thing.type}"


def character_of(thing: Any) -> str:
    """Return the map character of a thing."""
    state, _, kind = name_of(thing).rpartition(" ")
    return _CHARACTERS[f"{state.split()[0]} door" if kind == "door" else kind]


_CHARACTERS = {name: character for character, name in LEGEND.items()}


def is_portable(name: str) -> bool:
    """Return whether a thing is portable, by its name."""
    colour, _, kind = name.partition(" ")
    return colour in COLOURS and kind in PORTABLE


def thing_of(item: PortableItem) -> str | Refused:
    """Return the thing that an item becomes, or why it is refused; an item from MiniGrid becomes itself again."""
    hint = item.hints.get("minigrid", "")
    if is_portable(hint) and PORTABLE[hint.split()[1]][0] == item.category:
        return hint
    if item.category in USELESS:
        return Refused(USELESS[item.category])
    return "tool" if item.category == "tool" else f"{COLOURS[item.tier % len(COLOURS)]} key"
