"""Checks of embodied observations against the senses that they declare."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from wsap_check.play import walk
from wsap_check.steps import Step
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core.protocol import EmbodiedObservation, Entity, Observation, Terrain

COMPASS: Mapping[str, float] = {
    "north": 0, "northeast": 45, "east": 90, "southeast": 135,
    "south": 180, "southwest": 225, "west": 270, "northwest": 315,
}  # fmt: skip
"""Directions on the ground, in degrees clockwise from north."""

RELATIVE: Mapping[str, float] = {
    "ahead": 0, "front": 0, "forward": 0, "aheadright": 45, "right": 90, "behindright": 135,
    "behind": 180, "back": 180, "behindleft": 225, "left": 270, "aheadleft": 315,
}  # fmt: skip
"""Directions seen from the body, in degrees clockwise from where it faces."""

ELSEWHERE = frozenset({"here", "up", "down", "above", "below", "around", "everywhere", "unknown"})
"""Other directions, which no cone of vision rules out."""

_SLACK = 1e-6


@check()
async def directions(notes: Notes, subject: Subject) -> None:
    """Directions are compass words or relative to the body, and distances are finite and at least 0."""
    spatial = False
    for step in await walk(subject, 70, "available"):
        observation = step.result.observation
        spatial = spatial or bool(observation.location.coordinates)
        for thing in _things(observation):
            distance = thing.distance
            if distance is not None and (not math.isfinite(distance) or distance < 0):
                notes.error(f"{_named(thing)} has the distance {distance}.", step.where, about="distance")
            if observation.location.coordinates and not _known(thing.direction):
                notes.error(
                    f"{_named(thing)} is {thing.direction!r}; directions are {', '.join(COMPASS)}, or "
                    f"{', '.join(RELATIVE)}, or {', '.join(sorted(ELSEWHERE))}.",
                    step.where,
                    about=thing.direction,
                )
    if not spatial:
        raise NothingToCheck("its observations have no coordinates")


@check()
async def vision_range(notes: Notes, subject: Subject) -> None:
    """Nothing is reported from beyond the declared range of the senses."""
    for step, observation in await _embodied(subject):
        eyes, ears = observation.vision_range, observation.hearing_range
        for thing in _things(observation):
            reach = eyes if isinstance(thing, Terrain) else _farther(eyes, ears)
            if reach is not None and thing.distance is not None and thing.distance > reach + _SLACK:
                notes.error(
                    f"{_named(thing)} is {thing.distance:g} away, and the senses reach {reach:g}.",
                    step.where,
                    about=f"{type(thing).__name__} {thing.type}",
                )


def _farther(eyes: float | None, ears: float | None) -> float | None:
    """Return how far the senses reach, None for no stated limit; ears without a limit that hear nothing don't count."""
    return eyes if eyes is None or ears is None else max(eyes, ears)


@check()
async def vision_cone(notes: Notes, subject: Subject) -> None:
    """Nothing is seen outside the declared cone of vision."""
    steps = await _embodied(subject)
    if all(observation.vision_cone >= 360 for _, observation in steps):
        raise NothingToCheck("the eyes see all around")
    words = {_bare(t.direction) for _, o in steps for t in _things(o)}
    # A word stands for a sector: an eighth of the circle where diagonals have words, else a quarter.
    diagonals = {w for w, angle in (*COMPASS.items(), *RELATIVE.items()) if angle % 90}
    sector = 22.5 if words & diagonals else 45.0
    for step, observation in steps:
        for thing in _things(observation):
            angle = angle_to(thing.direction, observation.facing)
            if angle is None or not thing.distance or _heard(thing, observation):
                continue
            if angle - sector > observation.vision_cone / 2 + _SLACK:
                notes.error(
                    f"{_named(thing)} is {thing.direction} of a body that faces {observation.facing or 'nowhere'} "
                    f"and sees {observation.vision_cone:g} degrees.",
                    step.where,
                    about=f"{type(thing).__name__} {thing.type}",
                )


def angle_to(direction: str, facing: str) -> float | None:
    """Return the angle in degrees, 0 to 180, between a direction and where a body faces; None if unknown."""
    word = _bare(direction)
    if word in RELATIVE:
        turned = RELATIVE[word]
    elif word in COMPASS and _bare(facing) in COMPASS:
        turned = COMPASS[word] - COMPASS[_bare(facing)]
    else:
        return None
    return abs((turned + 180) % 360 - 180)


def _heard(thing: Entity | Terrain, observation: EmbodiedObservation) -> bool:
    ears = observation.hearing_range
    return isinstance(thing, Entity) and ears is not None and thing.distance <= ears


def _bare(word: str) -> str:
    return re.sub(r"[\s_-]+", "", word.lower())


def _known(direction: str) -> bool:
    word = _bare(direction)
    return word in COMPASS or word in RELATIVE or word in ELSEWHERE


def _named(thing: Entity | Terrain) -> str:
    name = thing.name if isinstance(thing, Entity) else None
    return f"{name} ({thing.type})" if name else thing.type


def _things(observation: Observation) -> Iterator[Entity | Terrain]:
    yield from observation.nearby_entities
    yield from observation.nearby_terrain


async def _embodied(subject: Subject) -> list[tuple[Step, EmbodiedObservation]]:
    steps = [(s, s.result.observation) for s in await walk(subject, 70, "available")]
    found = [(s, o) for s, o in steps if isinstance(o, EmbodiedObservation)]
    if not found:
        raise NothingToCheck("its observations have no body")
    return found
