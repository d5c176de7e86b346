"""Creatures: how they move, when they fight, and where new ones come from."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from wsap_starbound.data import creatures, items
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.noise import Chance
from wsap_starbound.engine.physics import hurt
from wsap_starbound.engine.place import AIR, LAVA, TILES, WATER, Cell, Creature, Place

_SIGHT = 9
"""How far creatures notice bodies, in tiles."""
_MOST = 14
"""Most creatures of a planet."""
_EVERY = 40
"""Beats between two attempts of the wild to send a hostile creature."""
_NEAR, _FAR = 9, 16
"""How far from a body hostile creatures appear."""


def hostile(kind: str, *, dark: bool) -> bool:
    """Whether creatures of that kind attack now."""
    temper = creatures()[kind].temper
    return temper == "fierce" or (temper == "night" and dark)


def live(place: Place, bodies: Sequence[Being], beat: int, chance: Chance, *, night: bool) -> list[str]:
    """Let all creatures of a place live for one beat; return the owners of the bodies that were hurt."""
    if not place.planet or not bodies:
        return []
    taken: set[Cell] = {cell for body in bodies for cell in body.cells}
    hit: list[str] = []
    for creature in place.creatures:
        kind = creatures()[creature.kind]
        if kind.temper == "people":
            continue
        prey = min(bodies, key=lambda body: _distance(place, creature, body))
        _sink(place, creature, taken)
        dark = night or not place.open_sky(creature.x, creature.y)
        angry = hostile(creature.kind, dark=dark) and prey.alive
        if angry and _reaches(place, creature, prey, kind.reach):
            if beat >= creature.ready:
                creature.ready = beat + 6
                hurt(prey, max(1, kind.damage - _armour(prey)), "combat", creature.id)
                prey.hurt_at = prey.beats
                hit.append(prey.owner)
        elif beat % kind.pace == 0:
            _step(place, creature, prey, taken, chance, angry=angry, shy=kind.temper == "shy")
    _spawn(place, bodies, beat, chance, night=night)
    return hit


def _armour(being: Being) -> int:
    return sum(items()[one].armour for one in being.worn)


def _distance(place: Place, creature: Creature, body: Being) -> int:
    return abs(place.apart(creature.x, body.x)) + abs(creature.y - body.y)


def _reaches(place: Place, creature: Creature, prey: Being, reach: int) -> bool:
    """Whether a creature hits a body: beside it, or along a row without anything solid in between."""
    across = place.apart(creature.x, prey.x)
    if abs(across) > reach or all(creature.y != y for _, y in prey.cells):
        return False
    side = 1 if across > 0 else -1
    return not any(place.solid(creature.x + side * step, creature.y) for step in range(1, abs(across)))


def _sink(place: Place, creature: Creature, taken: Collection[Cell]) -> None:
    below = (creature.x, creature.y + 1)
    if not place.solid(*below) and place.at(*below) not in (WATER, LAVA) and below not in taken:
        creature.y += 1


def _step(
    place: Place, creature: Creature, prey: Being, taken: Collection[Cell], chance: Chance, *, angry: bool, shy: bool
) -> None:
    across = place.apart(creature.x, prey.x)
    near = abs(across) <= _SIGHT and abs(creature.y - prey.y) <= 6
    if near and (angry or shy) and across:
        side = (1 if across > 0 else -1) * (1 if angry else -1)
    elif chance.below(3) == 0:
        side = 1 if chance.below(2) else -1
    else:
        return
    creature.facing = side
    x = place.wrap(creature.x + side)
    for y in (creature.y, creature.y - 1, creature.y - 2) if angry else (creature.y, creature.y - 1):
        if not place.solid(x, y) and place.at(x, y) not in (WATER, LAVA) and (x, y) not in taken:
            creature.x, creature.y = x, max(1, y)
            return
        if place.solid(creature.x, y - 1):
            return


def _spawn(place: Place, bodies: Sequence[Being], beat: int, chance: Chance, *, night: bool) -> None:
    kind = place.kind
    if kind is None or beat % _EVERY or len(place.creatures) >= _MOST:
        return
    angry = [name for name in kind.creatures if creatures()[name].temper in ("night", "fierce")]
    body = bodies[chance.below(len(bodies))]
    side = 1 if chance.below(2) else -1
    x = place.wrap(body.x + side * (_NEAR + chance.below(_FAR - _NEAR)))
    name = angry[chance.below(len(angry))] if angry else ""
    if not name or sum(hostile(c.kind, dark=True) for c in place.creatures) >= 3 * len(bodies):
        return
    for y in range(max(2, body.y - 6), min(place.height - 2, body.y + 7)):
        dark = night or not place.open_sky(x, y)
        free = place.at(x, y) == AIR and place.at(x, y - 1) == AIR and place.solid(x, y + 1)
        if free and hostile(name, dark=dark) and not lit(place, x, y):
            number = beat // _EVERY
            place.creatures.append(Creature(f"{name}-{number}", name, x, y, creatures()[name].health, -side))
            return


def lit(place: Place, x: int, y: int) -> bool:
    """Whether a torch or another light shines on a cell."""
    return any(
        0 < TILES[place.at(x + ax, y + ay)].light >= abs(ax) + abs(ay) for ax in range(-7, 8) for ay in range(-7, 8)
    )
