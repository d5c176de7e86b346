"""Making things, by hand or at a station, and trading."""

from __future__ import annotations

from wsap_starbound.data import Recipe, items, recipes
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.universe import Universe
from wsap_starbound.rules.base import Outcome, Params, called, refused, spend, station_near, whole

_BEATS = 2
_DEEDS = {
    "copper_bar": "smelt_copper",
    "copper_pick": "make_copper_pick",
    "iron_pick": "make_iron_pick",
    "breather": "make_breather",
    "cooler": "make_cooler",
}
_STAGES = {"coil": "coil", "fuel_cell": "fuel"}


def _by_hand(being: Being, recipe: Recipe) -> bool:
    return not recipe.station or (recipe.station == "bench" and "handy" in being.abilities)


def why_not_make(world: Universe, being: Being, name: str, count: int = 1) -> str:
    """Return why a recipe can't be made now; empty if it can."""
    recipe = recipes().get(name)
    if recipe is None:
        return f"there is no recipe {name[:40]!r}"
    lacking = [
        f"{count * need} {called(item)} (you have {being.bag.get(item, 0)})"
        for item, need in recipe.needs.items()
        if being.bag.get(item, 0) < count * need
    ]
    if lacking:
        return f"{called(name)} needs {', '.join(lacking)}"
    if not _by_hand(being, recipe) and not station_near(world, being, recipe.station):
        return f"{called(name)} is made at a {recipe.station}, and none is within reach"
    if being.room_for(name) < count * recipe.count:
        return f"you can't carry more {called(name)}"
    return ""


def possible(world: Universe, being: Being) -> list[str]:
    """Return the recipes that can be made now."""
    return [
        name for name in recipes() if being.has(dict(recipes()[name].needs)) and not why_not_make(world, being, name)
    ]


def craft(world: Universe, being: Being, params: Params) -> Outcome:
    """Make a recipe once or more."""
    name, count = str(params["recipe"]), whole(params, "count", 1)
    if why := why_not_make(world, being, name, count):
        return refused(why)
    recipe = recipes()[name]
    for item, need in recipe.needs.items():
        being.lose(item, count * need)
    made = being.gain(name, count * recipe.count)
    spend(world, being, _BEATS)
    deeds = [_DEEDS[name]] if name in _DEEDS else []
    stages = [_STAGES[name]] if name in _STAGES else []
    return Outcome(True, f"You made {made} {items()[name].name}.", deeds, stages)


PRICES = {"coal": 1, "copper_bar": 3, "iron_bar": 5, "crystal": 10, "hide": 2, "roast": 2}
"""What the trader pays for one of each, in shards."""
