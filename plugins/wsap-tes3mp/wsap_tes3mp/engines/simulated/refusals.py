"""Refusals, and how the things that commands name are found."""

from __future__ import annotations

from wsap_tes3mp.engines.simulated.definitions import definitions
from wsap_tes3mp.engines.simulated.state import REACH, Body, Thing, World, distance


class Refused(Exception):
    """The world does not let an agent do that: a result of its command, never an error of the engine."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


def sees(world: World, body: Body, other: Thing | Body) -> bool:
    """Whether a body sees something: all of an inside cell, outside as far as light and weather let it, and doors."""
    if other.cell != body.cell or other is body:
        return False
    if isinstance(other, Body) and other.presence == "suspend":
        return False
    inside = definitions().cells[body.cell].inside
    return inside or (isinstance(other, Thing) and other.kind == "door") or distance(body, other) <= world.sight


def player_id(agent_id: str) -> str:
    """Return the entity id of an agent's body."""
    return f"agent:{agent_id}"


def thing_near(world: World, body: Body, entity_id: str) -> Thing | Body:
    """Return what an agent sees under that id.

    Raises:
        Refused: it sees nothing of that id.
    """
    found: Thing | Body | None = world.things.get(entity_id)
    if found is None and entity_id.startswith("agent:"):
        found = world.bodies.get(entity_id.removeprefix("agent:"))
    if found is None or not sees(world, body, found):
        raise Refused("UNKNOWN_ENTITY", "You see nothing with that id here; ids are in nearby_entities.")
    return found


def reached(world: World, body: Body, entity_id: str) -> Thing | Body:
    """Return what an agent can touch under that id.

    Raises:
        Refused: it sees nothing of that id, or not within reach.
    """
    target = thing_near(world, body, entity_id)
    away = distance(body, target)
    if away > REACH:
        raise Refused("OUT_OF_REACH", f"{target.name} is {away:g} m away and your reach is {REACH:g} m; move_to it.")
    return target


def person_at(world: World, body: Body, entity_id: str) -> Thing:
    """Return the person within reach.

    Raises:
        Refused: there is none of that id, not within reach, or it is no person.
    """
    target = reached(world, body, entity_id)
    if not isinstance(target, Thing) or target.kind != "npc":
        raise Refused("NO_PERSON", f"{target.name} does not talk.")
    return target
