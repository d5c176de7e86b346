"""Beaming between ship and planet, and travelling to another planet."""

from __future__ import annotations

from wsap_starbound.data import planets
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.physics import standing
from wsap_starbound.engine.universe import Universe
from wsap_starbound.rules.base import Outcome, Params, enemies, refused, spend

SURFACE = 4
"""How far below the natural ground still counts as the surface, in tiles."""
_BEAM, _FLIGHT = 4, 40
"""Beats."""


def no_beam_up(world: Universe, being: Being) -> str:
    """Return why the body can't be beamed up; empty if it can."""
    place = world.where(being)
    if not place.planet:
        return "you are aboard already"
    if not place.open_sky(being.x, being.y - 1):
        return "there is no open sky above you"
    if being.y > place.ground[being.x] + SURFACE:
        return "you are below the surface"
    if being.in_fight() or enemies(world, being, 4):
        return "you are in a fight"
    return "" if standing(place, being) else "you are in the air"


def beam_up(world: Universe, being: Being, params: Params) -> Outcome:
    """Go to the ship."""
    ship = world.place(f"ship:{being.owner}")
    being.place = ship.id
    being.x, being.y = ship.start
    being.fallen = being.rise = 0
    spend(world, being, _BEAM)
    return Outcome(True, "The beam takes you to your ship.", ["beam_up"])


def no_beam_down(world: Universe, being: Being) -> str:
    """Return why the body can't be beamed down; empty if it can."""
    return "" if not world.where(being).planet else "you are on a planet"


def beam_down(world: Universe, being: Being, params: Params) -> Outcome:
    """Go to the planet below, to one's flag if it is planted there."""
    planet = world.place(being.orbit)
    column = being.flag[1] if being.flag and being.flag[0] == planet.id else None
    being.place, (being.x, being.y) = planet.id, world.landing(planet, column)
    being.fallen = being.rise = 0
    new = planet.id not in being.visited
    if new:
        being.visited.append(planet.id)
    spend(world, being, _BEAM)
    deeds = {"palewake": ["reach_moon"], "cinderdeep": ["reach_cinderdeep"]}.get(planet.id, [])
    quests = ["moon"] if planet.id == "palewake" else []
    return Outcome(True, f"The beam sets you down on {planets()[planet.id].name}.", deeds, (), quests)


def no_travel(world: Universe, being: Being) -> str:
    """Return why the ship can't leave; empty if it can go somewhere."""
    if world.where(being).planet:
        return "you have to be aboard your ship"
    if not being.pad:
        return "the buffer of the beam pad is broken; the ship won't leave without it"
    return "" if can_travel(being) else "you have too few fuel cells"


def can_travel(being: Being) -> list[str]:
    """Return the planets that the fuel in the bag is enough for."""
    fuel = being.bag.get("fuel_cell", 0)
    return [name for name, planet in planets().items() if name != being.orbit and planet.fuel <= fuel]


def travel(world: Universe, being: Being, params: Params) -> Outcome:
    """Fly the ship to another planet; this burns fuel cells from the bag."""
    name = str(params["planet"])
    if name not in planets():
        return refused(f"there is no planet {name[:40]!r}")
    if name == being.orbit:
        return refused("the ship is there already")
    fuel = planets()[name].fuel
    if being.bag.get("fuel_cell", 0) < fuel:
        return refused(f"the way there takes {fuel} fuel cells, and you have {being.bag.get('fuel_cell', 0)}")
    if fuel:
        being.lose("fuel_cell", fuel)
    being.orbit = name
    spend(world, being, _FLIGHT)
    return Outcome(True, f"The ship is at {planets()[name].name} now.")
