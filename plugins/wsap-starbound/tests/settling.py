"""What the tests of Starbound share: a world with one agent, and flat ground to test on."""

from __future__ import annotations

from wsap_core import Action, AvatarSpec, Context
from wsap_core.protocol import ActionResult
from wsap_starbound.engine.being import Being
from wsap_starbound.engine.place import AIR, NUMBER, Place
from wsap_starbound.engine.universe import Universe
from wsap_starbound.world.game import StarboundWorld, create

FLOOR = 40
"""Row of the floor of `room`."""


def begun(seed: int = 7, **options: str) -> StarboundWorld:
    """Return a world whose first agent, ann, is in her body."""
    world = create(Context.create(seed, config=options))
    enter(world, "ann")
    return world


def enter(world: StarboundWorld, agent: str) -> Being:
    """Put an agent into a new body."""
    body = world.create_avatar(agent, AvatarSpec())
    assert world.jack_in(agent, body.avatar_id).success
    return world.universe.beings[agent]


def room(world: StarboundWorld, agent: str = "ann") -> tuple[Universe, Place, Being]:
    """Clear the planet above a stone floor, without creatures, and put the body in the middle."""
    universe, being = world.universe, world.universe.beings[agent]
    place = universe.where(being)
    for y in range(place.height):
        for x in range(place.width):
            place.cells[y * place.width + x] = NUMBER["stone"] if y >= FLOOR else AIR
    place.ground[:] = [FLOOR] * place.width
    place.creatures.clear()
    place.restless.clear()
    being.x, being.y = 80, FLOOR - 1
    universe.sights.clear()
    return universe, place, being


def do(world: StarboundWorld, name: str, **parameters: object) -> ActionResult:
    """Carry out an action of the only agent."""
    return world.act(Action(name, parameters))
