"""Short texts derived from observations: the things in view, the effects of actions, and the next goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from wsap_core.protocol import Goal
from wsap_core.protocol.lines import legs
from wsap_crafter.goals import NEXT
from wsap_crafter.rules import MOVES, with_article
from wsap_crafter.simulation.game import constants
from wsap_crafter.simulation.sight import STEPS, WORDS

CENTRE = (4, 3)
"""Column and row of the player on the map."""
THINGS = "~CTpPtf#cidSZaL"
"""Characters of the things to mention."""
LOW = 4
"""Food, drink or energy at which it is the next goal."""

ORDER = (
    "collect_wood", "place_table", "make_wood_pickaxe", "make_wood_sword", "collect_sapling", "place_plant",
    "collect_drink", "eat_cow", "collect_stone", "place_stone", "make_stone_pickaxe", "make_stone_sword",
    "collect_coal", "place_furnace", "collect_iron", "make_iron_pickaxe", "make_iron_sword", "collect_diamond",
    "defeat_zombie", "wake_up", "eat_plant", "defeat_skeleton",
)  # fmt: skip
"""The achievements in the recommended order."""

_RANK = {name: number for number, name in enumerate(ORDER)}
_NEEDS = {
    "drink": "Drink: face water, then drink it.",
    "food": "Eat: face a cow and hit it until it is eaten.",
    "energy": "Sleep until rested.",
}
_DO = {
    "tree": "take wood from the tree",
    "water": "drink the water",
    "grass": "search the grass for a sapling",
    "cow": "hit the cow to eat it",
    "zombie": "hit the zombie",
    "skeleton": "hit the skeleton",
    "ripe plant": "eat the ripe plant",
    "sapling": "hit the sapling",
}


def in_words(east: int, south: int) -> str:
    """Return the way to a cell: "3 south 3 east"; "here" for (0, 0)."""
    return legs((south, "south", "north"), (east, "east", "west"))


@lru_cache(maxsize=256)
def in_view(local_map: tuple[str, ...], kinds: str = THINGS) -> tuple[tuple[str, int, int], ...]:
    """Return word, cells east and cells south of the nearest cell in view of each character, nearest first."""
    nearest: dict[str, tuple[int, int, int]] = {}
    for row, characters in enumerate(local_map):
        for column, character in enumerate(characters):
            if character in kinds:
                east, south = column - CENTRE[0], row - CENTRE[1]
                found = (abs(east) + abs(south), east, south)
                nearest[character] = min(nearest.get(character, found), found)
    ranked = sorted((place, character) for character, place in nearest.items())
    return tuple((WORDS[character], east, south) for (_, east, south), character in ranked)


def brief(
    status: Mapping[str, int], inventory: Mapping[str, int], local_map: tuple[str, ...], faced: str,
    goals: Sequence[Goal], *, night: bool, asleep: bool,
) -> str:  # fmt: skip
    """Return an observation in a few lines: vitals, items, things faced and seen, and the next goal."""
    seen = ", ".join(f"{word} {in_words(east, south)}" for word, east, south in in_view(local_map))
    held = [name.replace("_", " ") if name in constants.make else f"{n} {name}" for name, n in inventory.items()]
    lines = [
        ", ".join(f"{name} {value}" for name, value in status.items()).capitalize() + (". Night." if night else "."),
        f"You carry {', '.join(held) or 'nothing'}.",
        "You are asleep." if asleep else f"You face {with_article(faced)}.",
        f"You see: {seen or 'nothing but open ground'}.",
        f"Goal: {next_goal(status, inventory, goals)}",
    ]
    return "\n".join(lines)


def next_goal(status: Mapping[str, int], inventory: Mapping[str, int], goals: Sequence[Goal]) -> str:
    """Return the next goal and how to reach it: the body's need, else the first goal of `ORDER` that can be reached."""
    lowest = min(_NEEDS, key=lambda name: status.get(name, 9))
    if status.get(lowest, 9) <= LOW:
        return _NEEDS[lowest]
    goal = next(iter(in_order(goals)), None)
    if goal is None:
        return "Stay alive."
    verb, _, thing = goal.id.partition("_")
    rule = constants.place.get(thing) if verb == "place" else constants.make.get(thing) if verb == "make" else None
    if rule is not None:
        for item, amount in rule["uses"].items():
            if inventory.get(item, 0) < amount:
                return f"Get {item.replace('_', ' ')}: {amount} for {with_article(thing.replace('_', ' '))}."
    hint = goal.hints[0] if goal.hints else goal.description
    return f"{goal.id.replace('_', ' ').capitalize()} ({hint})."


def in_order(goals: Sequence[Goal]) -> list[Goal]:
    """Return the goals that can be reached next, in the order of `ORDER`."""
    return sorted((goal for goal in goals if goal.progress == NEXT), key=lambda goal: _RANK.get(goal.id, len(_RANK)))


@lru_cache(maxsize=1024)
def phrases(local_map: tuple[str, ...], faced: str) -> Mapping[str, str]:
    """Return the current effect of each action of the game as text."""
    found = {"noop": "wait", "sleep": "sleep", "do": _DO.get(faced, f"mine the {faced}")}
    if not local_map:
        return found
    seen = in_view(local_map)
    for action, way in MOVES.items():
        east, south = STEPS[way]
        ahead = local_map[CENTRE[1] + south][CENTRE[0] + east]
        if ahead in THINGS and ahead != "L":
            found[action] = f"face the {WORDS[ahead]} to the {way}"
            continue
        danger = " into the lava" if ahead == "L" else ""
        nearer = {word: _way(x, y) for word, x, y in seen if x * east + y * south > 0 and word != "lava"}
        goal = next((word for word, mostly in nearer.items() if mostly == way), next(iter(nearer), ""))
        found[action] = f"go {way}{danger or (f' to the {goal}' if goal else '')}"
    for verb, rules in (("place", constants.place), ("make", constants.make)):
        for thing in rules:
            spoken = "sapling" if (verb, thing) == ("place", "plant") else thing.replace("_", " ")
            found[f"{verb}_{thing}"] = f"{'plant' if spoken == 'sapling' else verb} {with_article(spoken)}"
    return found


def _way(east: int, south: int) -> str:
    """Return the main direction of a cell."""
    if abs(east) >= abs(south):
        return "east" if east > 0 else "west"
    return "south" if south > 0 else "north"
