"""Measure the ticks of sandbox worlds.

    python benchmarks/bench_sandbox.py [--case framework|latency|long] [--repeats N] [--ticks N] [--json]

framework  Milliseconds of a tick when models reply at once, with 50 characters and 20 places and full memories:
           minimum, median and maximum of N ticks (40), and the median CPU time. Goal: a CPU median under 100.
latency    Wall-clock seconds of a tick when each call takes 200 ms, over N ticks (10): 4 characters and 3 places, or 50
           and 20, with the story inside the tick or overlapping the next one; also the latency of the 3 or 2 sequential
           calls alone. Goals: at most 0.7, 0.5 and 1.0.
long       N ticks (10,000) of a village of 8 characters and 6 places with seeded random replies: the time of a tick
           and the peak process size, for each tenth. Limits from the second to the last tenth: 1.25 times the time,
           and 4 MiB of growth.

In `long` and `framework` models are local functions whose time, mostly for writing JSON, is included.
The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

from wsap_core.seams.model import Reply, Request
from wsap_sandbox.model import Character, Place, World, WorldObject, dump
from wsap_sandbox.tick import Settings
from wsap_sandbox.tick.engine import Engine
from wsap_sandbox.tick.facts import Facts, IntentFacts, MemoryFacts, SceneFacts, StoryFacts

LATENCY = 0.2
SIZES = ((4, 3, False, 0.7), (4, 3, True, 0.5), (50, 20, False, 1.0), (50, 20, True, 1.0))
"""Characters, places, whether stories overlap the next tick, maximum seconds."""
SHARED = "the rope frays a little more where it runs over the beam and nobody has time to see to it"
WORDS = SHARED.split(" ")


def village(people: int, places: int) -> World:
    """Return a world of places in a circle with characters spread over them."""
    return World(
        title="A village",
        language="en",
        premise="The winter is long, and what is in the barn has to last until the thaw.",
        places=tuple(
            Place(
                f"p{i}",
                f"place {i}",
                f"The place number {i}, with a well, a wall and a gate that does not shut.",
                "Fog.",
                (f"p{(i + 1) % places}", f"p{(i - 1) % places}"),
                (f"o{i}",),
            )
            for i in range(places)
        ),
        characters=tuple(
            Character(
                f"c{i}",
                f"Person {i}",
                f"Person {i}, in a coat with {i} buttons.",
                f"Number {i} trusts nobody who has not shared bread with number {i}. {SHARED} {i}.",
                f"p{i % places}",
                (f"When somebody speaks of number {i}, I listen.", f"I never leave a fire burning, says number {i}."),
                f"Number {i} has hidden {i} coins under the stone.",
                f"Number {i} is wary of the {i} strangers.",
                f"Number {i} wants to find out who has the key number {i}.",
            )
            for i in range(people)
        ),
        objects=tuple(WorldObject(f"o{i}", f"thing {i}", "Old, and of wood.") for i in range(places)),
        cells=5,
    )


class Lot:
    """Answers every call with seeded random replies."""

    def __init__(self, latency: float = 0.0) -> None:
        self._latency = latency

    async def __call__(self, key: str, facts: Facts, request: Request) -> Reply:
        """Answer one call."""
        if self._latency:
            await asyncio.sleep(self._latency)
        return Reply(json.dumps(self._answer(random.Random(key), facts)))

    def _answer(self, lot: random.Random, facts: Facts) -> Any:
        match facts:
            case IntentFacts():
                return {"intention": self._text(lot, "I go")}
            case StoryFacts():
                return {"story": self._text(lot, "It was so:") * 2}
            case MemoryFacts():
                return {"summary": self._text(lot, "I remember") * 2}
            case SceneFacts():
                return self._scene(lot, facts)

    def _scene(self, lot: random.Random, facts: SceneFacts) -> Any:
        exits = ["stay", "stay", *(way.id for way in facts.place.exits)]
        ids = [actor.person.id for actor in facts.actors]
        names = ("event", "state", "goal", "tried", "came_of_it", "interpretation")
        return {
            "characters": {
                one: {
                    "order": lot.randint(1, len(ids)),
                    "outcome": lot.choice(("success", "partial", "failure")),
                    "triggers": [1],
                    "unnoticed_by": [],
                    "to": lot.choice(exits),
                    **{name: self._text(lot, f"{one} {name}") for name in names},
                }
                for one in ids
            },
            "objects": [
                {"id": thing.id, "holder": lot.choice(["here", *ids]), "condition": ""} for thing in facts.place.objects
            ],
            "happenings": [self._text(lot, "There")],
            "place": {"moment": self._text(lot, "Now"), "description": "", "cause": "none"},
        }

    def _text(self, lot: random.Random, begin: str) -> str:
        return f"{begin} {' '.join(lot.choices(WORDS, k=14))} {lot.randint(1, 999)}."


async def ticks(
    world: World, ask: Callable[..., Awaitable[Reply]], settings: Settings, most: int
) -> tuple[list[float], list[float]]:
    """Return the wall-clock and CPU seconds of ticks, after enough ticks to fill the memories."""
    engine = Engine(ask, lambda _story: None, settings)
    for _ in range(world.cells):
        world, _ = await engine.advance(world)
    took, worked = [], []
    for _ in range(most):
        began, idle = time.perf_counter(), time.process_time()
        world, _ = await engine.advance(world)
        took.append(time.perf_counter() - began)
        worked.append(time.process_time() - idle)
    await engine.settle()
    return took, worked


def framework(repeats: int) -> tuple[dict[str, Any], bool]:
    """Measure a tick with instant models."""
    took, worked = asyncio.run(ticks(village(50, 20), Lot(), Settings(concurrency=1000), repeats))
    processor = 1000 * statistics.median(worked)
    milliseconds = sorted(1000 * one for one in took)
    median = statistics.median(milliseconds)
    figures = {
        "smallest": milliseconds[0],
        "median": median,
        "largest": milliseconds[-1],
        "median of the processor": processor,
        "wanted": 100,
    }
    return {key: round(value, 1) for key, value in figures.items()}, processor < 100


def latency(repeats: int) -> tuple[dict[str, Any], bool]:
    """Measure ticks when each call takes 200 ms."""
    found: dict[str, Any] = {}
    reached = True
    for people, places, overlap, wanted in (
        (4, 3, False, 0.7),
        (4, 3, True, 0.5),
        (50, 20, False, 1.0),
        (50, 20, True, 1.0),
    ):
        settings = Settings(concurrency=1000, overlap=overlap)
        took, _ = asyncio.run(ticks(village(people, places), Lot(LATENCY), settings, repeats))
        median = statistics.median(took)
        name = f"{people} characters, {places} places{', overlapped' if overlap else ''}"
        found[name] = {
            "calls alone": round((2 if overlap else 3) * LATENCY, 1),
            "smallest": round(min(took), 3),
            "median": round(median, 3),
            "largest": round(max(took), 3),
            "wanted": wanted,
        }
        reached = reached and median <= wanted
    return found, reached


def long(most: int) -> tuple[dict[str, Any], bool]:
    """Measure whether late ticks are as fast as early ones."""
    return asyncio.run(_long(most))


async def _long(most: int) -> tuple[dict[str, Any], bool]:
    world = village(8, 6)
    engine = Engine(Lot(), lambda _story: None, Settings(concurrency=1000))
    tenths = []
    for tenth in range(10):
        began = time.process_time()
        for _ in range(most // 10):
            world, _ = await engine.advance(world)
        seconds = time.process_time() - began
        tenths.append(
            {
                "ticks": (tenth + 1) * (most // 10),
                "milliseconds a tick": round(1000 * seconds / (most // 10), 2),
                "KiB at most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
                "KiB of the world": len(json.dumps(dump(world))) // 1024,
            }
        )
    slower = tenths[-1]["milliseconds a tick"] / tenths[1]["milliseconds a tick"]
    more = tenths[-1]["KiB at most"] - tenths[1]["KiB at most"]
    found = {"tenths": tenths, "last to second tenth, time": round(slower, 2), "and KiB more": more}
    return found, slower <= 1.25 and more <= 4096


def main() -> int:
    """Run the cases and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=("framework", "latency", "long"))
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--ticks", type=int, default=10_000)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    cases: dict[str, Callable[[], tuple[dict[str, Any], bool]]] = {
        "framework": lambda: framework(given.repeats or 40),
        "latency": lambda: latency(given.repeats or 10),
        "long": lambda: long(given.ticks),
    }
    found, all_reached = {}, True
    for name, case in cases.items():
        if given.case not in (None, name):
            continue
        figures, reached = case()
        found[name] = {**figures, "reached": reached}
        all_reached = all_reached and reached
        if not given.json:
            print(name)
            _show(found[name])
    if given.json:
        print(json.dumps(found))
    return 0 if all_reached else 1


def _show(figures: dict[str, Any]) -> None:
    for key, value in figures.items():
        if isinstance(value, list):
            for row in value:
                print("  ", ", ".join(f"{name} {figure}" for name, figure in row.items()))
        elif isinstance(value, dict):
            print(f"  {key}:", ", ".join(f"{name} {figure}" for name, figure in value.items()))
        else:
            print(f"  {key}: {value}")


if __name__ == "__main__":
    sys.exit(main())
