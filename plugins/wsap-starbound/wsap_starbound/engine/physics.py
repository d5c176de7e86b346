"""How bodies move: whole tiles, gravity by the planet, and what a fall, water, lava and air do to them."""

from __future__ import annotations

from wsap_starbound.data import items, planets
from wsap_starbound.engine.being import MOST_BREATH, Being
from wsap_starbound.engine.place import LAVA, TILES, WATER, Place

_SHIP = planets()[next(iter(planets()))]
"""Aboard, gravity is that of the first planet."""
LAVA_HARM = 3
"""Health that a beat in lava costs."""


def fits(place: Place, x: int, y: int, tall: int = 2) -> bool:
    """Whether a body of that height has room with its feet in a cell."""
    return not any(place.solid(x, y - up) for up in range(tall)) and place.inside(x, y)


def climbing(place: Place, being: Being) -> bool:
    """Whether the body holds on to a ladder: at its feet, or right below them."""
    return TILES[place.at(being.x, being.y)].climb or TILES[place.at(being.x, being.y + 1)].climb


def swimming(place: Place, being: Being) -> bool:
    """Whether its feet are in a liquid."""
    return place.at(being.x, being.y) in (WATER, LAVA)


def standing(place: Place, being: Being) -> bool:
    """Whether something holds the body."""
    return place.solid(being.x, being.y + 1) or climbing(place, being) or swimming(place, being)


def gravity(place: Place) -> tuple[int, int, int, int]:
    """Return height of a jump, deepest fall without harm, harm of each tile beyond, and most tiles of a fall a beat."""
    kind = place.kind or _SHIP
    return kind.jump, kind.safe_fall, kind.fall_harm, kind.fall_speed


def fall_harm(place: Place, fallen: int) -> int:
    """Return the health that a fall of so many tiles costs."""
    _, safe, harm, _ = gravity(place)
    return max(0, fallen - safe) * harm


def shift(place: Place, being: Being, side: int) -> bool:
    """Move a body by one column: level, or up a ledge of one tile where it stands; return whether it moved."""
    being.facing = 1 if side > 0 else -1
    x = place.wrap(being.x + side) if place.planet else being.x + side
    if fits(place, x, being.y):
        being.x = x
        return True
    ledge = being.y - 1
    if standing(place, being) and not place.solid(being.x, being.y - 2) and fits(place, x, ledge):
        being.x, being.y = x, ledge
        return True
    return False


def float_or_fall(place: Place, being: Being) -> str:
    """Let a body rise or fall for one beat; return "fall" if a fall has hurt it."""
    if being.rise:
        being.rise -= 1
        if not place.solid(being.x, being.y - 2) and being.y >= 2:
            being.y -= 1
            return ""
        being.rise = 0
    speed = 1 if swimming(place, being) else gravity(place)[3]
    for _ in range(speed):
        if place.solid(being.x, being.y + 1) or climbing(place, being):
            return _land(place, being)
        if swimming(place, being):
            being.fallen = 0
            # A swimmer floats: with the head above the surface it sinks no further.
            if place.at(being.x, being.y - 1) not in (WATER, LAVA):
                return ""
        being.y += 1
        being.fallen += 1
    if place.solid(being.x, being.y + 1) or standing(place, being):
        return _land(place, being)
    return ""


def _land(place: Place, being: Being) -> str:
    fallen, being.fallen = being.fallen, 0
    if climbing(place, being) or swimming(place, being):
        return ""
    harm = fall_harm(place, fallen)
    if harm:
        hurt(being, harm, "fall")
        return "fall"
    return ""


def hurt(being: Being, harm: int, cause: str, killer: str = "") -> None:
    """Take health; a body without health is dead of that cause."""
    if not being.alive:
        return
    being.health = max(0, being.health - harm)
    if not being.health:
        being.cause, being.killer = cause, killer


def protected(being: Being, hazard: str) -> bool:
    """Whether the body wears something against a hazard."""
    return any(items()[one].against == hazard for one in being.worn)


def endure(place: Place, being: Being) -> str:
    """Let breath, heat and lava act for one beat; return what hurt the body."""
    head = being.y if being.asleep else being.y - 1
    under = place.at(being.x, head) in (WATER, LAVA)
    hazard = place.kind.hazard if place.kind else ""
    airless = hazard == "no air" and not protected(being, hazard)
    if LAVA in (place.at(being.x, being.y), place.at(being.x, head)):
        hurt(being, LAVA_HARM, "burning")
        return "lava"
    if under or airless:
        being.breath = max(0, being.breath - 1)
        if not being.breath and being.beats % 4 == 0:
            hurt(being, 1, "drowning" if under else "suffocation")
            return "water" if under else "no air"
        return ""
    being.breath = min(MOST_BREATH, being.breath + 4)
    if hazard == "heat" and not protected(being, hazard) and being.beats % 8 == 0:
        hurt(being, 1, "heat")
        return "heat"
    return ""
