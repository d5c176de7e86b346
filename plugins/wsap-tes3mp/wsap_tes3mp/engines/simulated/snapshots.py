"""The world as bytes, and back."""

from __future__ import annotations

from functools import cache

from pydantic import TypeAdapter, ValidationError

from wsap_core.authoring.packing import WRONG_DATA, pack, unpack
from wsap_core.errors import SnapshotError
from wsap_tes3mp.engines.simulated.definitions import definitions
from wsap_tes3mp.engines.simulated.state import World
from wsap_tes3mp.engines.simulated.talking import words
from wsap_tes3mp.engines.simulated.views import view

_HEADER = b"wsap-tes3mp simulated 1\n"
_LARGEST = 64_000_000


@cache
def _adapter() -> TypeAdapter[World]:
    return TypeAdapter(World)


def dump(world: World) -> bytes:
    """Return all state."""
    return pack(_HEADER, _adapter().dump_python(world, mode="json"))


def load(data: bytes) -> World:
    """Return the world that was dumped.

    Raises:
        SnapshotError: the data is damaged or of another version.
    """
    state = unpack(_HEADER, data, "the embedded engine", _LARGEST)
    try:
        world = _adapter().validate_python(state)
        _check(world)
    except (ValidationError, *WRONG_DATA) as error:
        raise SnapshotError(f"The snapshot of the embedded engine is damaged: {str(error)[:200]}.") from error
    return world


def _check(world: World) -> None:
    """Look at everything once, so that what refers to nothing shows now.

    Raises:
        LookupError: something refers to nothing.
        ValueError: a number has no sense.
    """
    cells = definitions().cells
    if world.facts.keys() != definitions().chosen.keys():
        raise ValueError("the seed's choices are not complete")
    for role in definitions().people:
        words(world, world.things[world.cast[role]])
    for thing in world.things.values():
        if thing.kind == "door" and world.things[thing.partner].kind != "door":
            raise ValueError(f"{thing.id} leads nowhere")
        _ = cells[thing.cell], [world.item(item) for item in thing.items]
    for body in world.bodies.values():
        if not 0 <= body.health <= body.max_health:
            raise ValueError(f"{body.agent_id} has {body.health} health")
        _ = [body.dispositions[person] for person in world.cast.values()], view(world, body)
