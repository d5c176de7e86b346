"""Checks of senses, achievements, views and scores against their declarations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from wsap_check.checks.shape import repeated
from wsap_check.play import RandomPlayer, Table, must_not_disturb, walk
from wsap_check.raised import describe
from wsap_check.steps import Step
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core import protocol
from wsap_core.errors import WireError
from wsap_core.protocol import EmbodiedObservation, Entity, Observation, Terrain
from wsap_core.protocol.views import Block
from wsap_core.protocol.wire import dumps
from wsap_core.specs import EpisodeSummary

COMPASS: Mapping[str, float] = {
    "north": 0, "northeast": 45, "east": 90, "southeast": 135,
    "south": 180, "southwest": 225, "west": 270, "northwest": 315,
}  # fmt: skip
"""Directions on the ground, in degrees clockwise from north."""

RELATIVE: Mapping[str, float] = {
    "ahead": 0, "front": 0, "forward": 0, "aheadright": 45, "right": 90, "behindright": 135,
    "behind": 180, "back": 180, "behindleft": 225, "left": 270, "aheadleft": 315,
}  # fmt: skip
"""Directions relative to the body, in degrees clockwise from its facing."""

ELSEWHERE = frozenset({"here", "up", "down", "above", "below", "around", "everywhere", "unknown"})
"""Other directions, which are inside any cone of vision."""

_DIRECTIONS = {*COMPASS, *RELATIVE, *ELSEWHERE}
_SLACK = 1e-6
_PNG = b"\x89PNG\r\n\x1a\n"


@check()
async def directions(notes: Notes, subject: Subject) -> None:
    """Directions are compass words or relative to the body, and distances are finite and at least 0."""
    spatial = False
    words = f"directions are {', '.join(COMPASS)}, or {', '.join(RELATIVE)}, or {', '.join(sorted(ELSEWHERE))}."
    for step in await walk(subject, 70, "available"):
        observation = step.result.observation
        placed = bool(observation.location.coordinates)
        spatial = spatial or placed
        for thing in _things(observation):
            far = thing.distance
            sound = far is None or (math.isfinite(far) and far >= 0)
            notes.expect(sound, f"{_named(thing)} has the distance {far}.", step, "distance")
            known = not placed or _bare(thing.direction) in _DIRECTIONS
            notes.expect(known, f"{_named(thing)} is {thing.direction!r}; {words}", step, thing.direction)
    if not spatial:
        raise NothingToCheck("its observations have no coordinates")


@check()
async def vision_range(notes: Notes, subject: Subject) -> None:
    """Nothing is reported from beyond the declared range of the senses."""
    for step, observation in await _embodied(subject):
        eyes, ears = observation.vision_range, observation.hearing_range
        # None is no stated limit.
        senses = eyes if eyes is None or ears is None else max(eyes, ears)
        for thing in _things(observation):
            reach = eyes if isinstance(thing, Terrain) else senses
            if reach is not None and thing.distance is not None and thing.distance > reach + _SLACK:
                beyond = f"{_named(thing)} is {thing.distance:g} away, but the range of the senses is {reach:g}."
                notes.error(beyond, step, f"{type(thing).__name__} {thing.type}")


@check()
async def vision_cone(notes: Notes, subject: Subject) -> None:
    """Nothing is seen outside the declared cone of vision."""
    steps = await _embodied(subject)
    if all(observation.vision_cone >= 360 for _, observation in steps):
        raise NothingToCheck("the cone of vision is 360 degrees")
    words = {_bare(t.direction) for _, o in steps for t in _things(o)}
    # A word means a sector: an eighth of the circle if there are words for diagonals, else a quarter.
    diagonals = {w for w, angle in (*COMPASS.items(), *RELATIVE.items()) if angle % 90}
    sector = 22.5 if words & diagonals else 45.0
    for step, observation in steps:
        ears, cone = observation.hearing_range, observation.vision_cone
        for thing in _things(observation):
            angle = angle_to(thing.direction, observation.facing)
            heard = isinstance(thing, Entity) and ears is not None and thing.distance <= ears
            if angle is None or not thing.distance or heard or angle - sector <= cone / 2 + _SLACK:
                continue
            faces = f"of a body that faces {observation.facing or 'nowhere'} and sees {cone:g} degrees"
            outside = f"{_named(thing)} is {thing.direction} {faces}."
            notes.error(outside, step, f"{type(thing).__name__} {thing.type}")


def angle_to(direction: str, facing: str) -> float | None:
    """Return the angle in degrees, 0 to 180, between a direction and the body's facing; None if unknown."""
    word = _bare(direction)
    if word in RELATIVE:
        turned = RELATIVE[word]
    elif word in COMPASS and _bare(facing) in COMPASS:
        turned = COMPASS[word] - COMPASS[_bare(facing)]
    else:
        return None
    return abs((turned + 180) % 360 - 180)


def _bare(word: str) -> str:
    return re.sub(r"[\s_-]+", "", word.lower())


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


@check()
async def achievements(notes: Notes, subject: Subject) -> None:
    """Reported achievements are in the catalogue, each at most once per episode."""
    catalogue = {a.name for a in subject.spec.achievements}
    seen: set[tuple[int, str, str]] = set()
    for step in await walk(subject, 90, "available"):
        for name in step.result.achievements:
            notes.expect(name in catalogue, f"The achievement {name!r} is not in the catalogue.", step, name)
            twice = f"The achievement {name!r} is reported twice in one episode; report what is newly unlocked."
            notes.expect((step.episode, step.seat, name) not in seen, twice, step, f"twice {name}")
            seen.add((step.episode, step.seat, name))
    if not catalogue and not seen:
        raise NothingToCheck("there are none")


@check("render")
async def rendering(notes: Notes, subject: Subject) -> None:
    """Views are well-formed, and rendering changes nothing."""
    if not callable(getattr(subject.world().adapter, "render", None)):
        raise NothingToCheck("there is nothing to call")
    every = max(1, min(subject.steps, 100) // 10)

    def draw(table: Table, count: int, step: Step) -> None:
        if count % every == 0:
            _look_at_view(notes, table.world.render(), step)

    await must_not_disturb(notes, subject, 91, draw, "Drawing changes")


def _look_at_view(notes: Notes, view: Any, step: Step) -> None:
    if not isinstance(view, protocol.View):
        notes.error(f"render() returned a {type(view).__name__}, not a View.", step, "type")
        return
    block: Any
    for block in view.blocks:
        if not isinstance(block, Block):
            notes.error(f"A View contains a {type(block).__name__}, which is not a block.", step, "block")
        elif isinstance(block, protocol.ImageBlock):
            notes.expect(block.png().startswith(_PNG), "An ImageBlock does not contain a PNG file.", step, "png")
        elif isinstance(block, protocol.GridMapBlock):
            even = len({len(row) for row in block.rows}) <= 1
            notes.expect(even, "The rows of a GridMapBlock have different lengths.", step, "rows")
        elif isinstance(block, protocol.TableBlock):
            even = all(len(row) == len(block.columns) for row in block.rows)
            notes.expect(even, "A row of a TableBlock does not have one cell per column.", step, "cells")
    try:
        dumps(view)
    except WireError as error:
        notes.error(str(error), step, "wire")


@check(acts=False)
async def score_metrics(notes: Notes, subject: Subject) -> None:
    """Each score is a finite number, even for no episodes."""
    if not subject.spec.score_metrics:
        raise NothingToCheck("there are none")
    table = await Table(subject).begin()
    trace = await table.play(RandomPlayer(92), min(subject.steps, 100))
    mine = [s for s in trace if s.seat == table.seat.agent_id]
    won = sorted({name for s in mine for name in s.result.achievements})
    reward = float(sum(s.result.reward for s in mine))
    episode = EpisodeSummary(table.seed, len(mine), reward, tuple(won), table.seat.done, table.seat.agent_id)
    for name in repeated(m.name for m in subject.spec.score_metrics):
        notes.error(f"There are two metrics called {name!r}.")
    for metric in subject.spec.score_metrics:
        for count in range(3):
            try:
                value = metric.of([episode] * count)
            except Exception as error:
                notes.error(f"The metric {metric.name!r} over {count} episodes: {describe(error)}.")
                break
            low = -math.inf if metric.low is None else metric.low
            high = math.inf if metric.high is None else metric.high
            outside = f"The metric {metric.name!r} is {value} over {count} episodes, outside its range."
            if not notes.expect(math.isfinite(value) and low <= value <= high, outside):
                break
