"""What the settler needs for its quests, and what of it is still lacking."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from wsap_starbound.data import recipes

BENCH, FURNACE = "bench", "furnace"
ORE_CHARS = {"c": "coal", "u": "copper_ore", "i": "iron_ore", ":": "sand"}
"""Characters of ores on the map -> what they give."""
_WORK = ("copper_bar", "iron_bar", "glass")
LADDERS = 60


def products(done: Collection[str], have: Mapping[str, int]) -> Counter[str]:
    """Return what still has to be made, by the quests that are not finished."""
    wanted = Counter[str]({"copper_pick": 1, "breather": 1, "cooler": 1, "fuel_cell": 5})
    if "moon" in done:
        wanted["fuel_cell"] = 3
    if "pad" not in done:
        wanted["coil"] = 1
    return Counter({name: n - have.get(name, 0) for name, n in wanted.items() if n > have.get(name, 0)})


def materials(wanted: Mapping[str, int], have: Mapping[str, int]) -> Counter[str]:
    """Return the raw materials that are lacking for products: bars and glass count as what they are made of."""
    left = Counter(have)
    lacking = Counter[str]()

    def need(name: str, count: int) -> None:
        used = min(left[name], count)
        left[name] -= used
        count -= used
        if not count:
            return
        recipe = recipes().get(name)
        if recipe is None:
            lacking[name] += count
            return
        for part, number in recipe.needs.items():
            need(part, number * count)

    for name, count in wanted.items():
        recipe = recipes()[name]
        for part, number in recipe.needs.items():
            need(part, number * count)
    return lacking


def next_craft(wanted: Mapping[str, int], have: Mapping[str, int]) -> tuple[str, int]:
    """Return the next recipe to make for the products, and how often; empty text if the materials do not suffice for
    any of them."""
    for name in wanted:
        recipe = recipes()[name]
        if not materials({name: 1}, have):
            for part, number in recipe.needs.items():
                if have.get(part, 0) < number and part in _WORK:
                    return part, number - have.get(part, 0)
            return name, 1
    return "", 0


def station_of(name: str) -> str:
    """Return where a recipe is made."""
    return recipes()[name].station
