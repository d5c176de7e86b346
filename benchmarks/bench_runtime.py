"""Measure the overhead of kernel and runtime per decision.

    python benchmarks/bench_runtime.py [--steps N] [--repeats N] [--json]

A random agent plays Crafter with its full text observation, alternately without a log and with the durable log. The
time in the game's `act` and `observe` and the agent's `decide` and `reflect` is subtracted; the rest is legality, the
result's canonical JSON, the trajectory hash, totals, and the log event. It is compared with the project's limits and
with one sorted `json.dumps` of the same observation.

Then total steps per second, alternating with the original `crafter.Env` without rendering under the same uniformly
random play, both without resets.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wsap_core.host import PluginHost
from wsap_nexus.runs.plan import RunPlan, plan_seats
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.session import RunHandle, start, unrecorded
from wsap_nexus.runs.store import open_store

LIMITS = {"log off": 100.0, "durable log": 200.0}
"""Median microseconds per decision."""


class Stopwatch:
    """Sums up the time in wrapped methods."""

    def __init__(self) -> None:
        self.inside = 0.0

    def wrap(self, owner: Any, name: str) -> None:
        """Replace an object's method by a timed one."""
        method: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            begun = time.perf_counter()
            try:
                return method(*args, **options)
            finally:
                self.inside += time.perf_counter() - begun

        setattr(owner, name, timed)


def measure(session: RunHandle) -> list[float]:
    """Play a session and return the overhead of each decision in microseconds."""
    watch = Stopwatch()
    marks: list[tuple[float, float]] = []

    def mark(step: StepTaken) -> None:
        if not marks:
            world = session.run.world
            assert world is not None
            for name in ("act", "observe", "reset"):
                watch.wrap(world.adapter, name)
            for loop in session.run._loops:
                for name in ("decide", "reflect"):
                    watch.wrap(loop.agent, name)
        marks.append((time.perf_counter(), watch.inside))

    session.run.observe(mark)
    asyncio.run(session.play())
    pairs = itertools.pairwise(marks)
    return [(b - a - (inside_b - inside_a)) * 1e6 for (a, inside_a), (b, inside_b) in pairs][10:]


def raw_rate(seed: int, steps: int) -> float:
    """Return the original's steps per second without rendering and resets."""
    import crafter

    class Unrendered(crafter.Env):  # type: ignore[misc]  # crafter has no types
        def render(self, size: Any = None) -> Any:
            return None

    game, chance = Unrendered(seed=seed), random.Random(seed)
    game.reset()
    spent = 0.0
    for _ in range(steps):
        action = chance.randrange(17)
        begun = time.perf_counter()
        done = game.step(action)[2]
        spent += time.perf_counter() - begun
        if done:
            game.reset()
    return steps / spent


def runtime_rate(session: RunHandle) -> float:
    """Return a session's steps per second, including agent, protocol and runtime, without resets."""
    watch = Stopwatch()
    times: list[float] = []

    def mark(step: StepTaken) -> None:
        if not times:
            world = session.run.world
            assert world is not None
            watch.wrap(world.adapter, "reset")
        times.append(time.perf_counter())

    session.run.observe(mark)
    asyncio.run(session.play())
    return (len(times) - 1) / (times[-1] - times[0] - watch.inside)


def plain_json(host: PluginHost) -> float:
    """Return the median time of a sorted `json.dumps` of Crafter's observation, in microseconds."""
    from wsap_core.seams.context import Context
    from wsap_core.worlds import World

    world = World.create(host.games.get("crafter"), Context.create(0))
    asyncio.run(world.reset(0))
    data = asyncio.run(world.open_seat("me").observe()).to_structured()
    times = []
    for _ in range(500):
        begun = time.perf_counter()
        json.dumps(data, sort_keys=True, separators=(",", ":"))
        times.append((time.perf_counter() - begun) * 1e6)
    return statistics.median(times)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one short repeat")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    steps, repeats = (600, 1) if options.quick else (options.steps, options.repeats)

    host = PluginHost.discovered()
    spec = host.games.get("crafter")
    medians: dict[str, list[float]] = {name: [] for name in LIMITS}
    ratios: dict[str, list[float]] = {name: [] for name in LIMITS}
    for repeat in range(repeats):
        plan = RunPlan("crafter", plan_seats(spec, agent="random"), seed=repeat, steps=steps)
        medians["log off"].append(statistics.median(measure(unrecorded(plan, host))))
        raw = raw_rate(repeat, steps)
        ratios["log off"].append(runtime_rate(unrecorded(plan, host)) / raw)
        with (
            tempfile.TemporaryDirectory() as folder,
            open_store(str(Path(folder) / "runs.db")) as store,
            start(plan, host, store) as session,
        ):
            medians["durable log"].append(statistics.median(measure(session)))
        with (
            tempfile.TemporaryDirectory() as folder,
            open_store(str(Path(folder) / "runs.db")) as store,
            start(plan, host, store) as session,
        ):
            ratios["durable log"].append(runtime_rate(session) / raw)
    reference = plain_json(host)
    rows: list[dict[str, Any]] = [
        {
            "what": name,
            "median_us": round(statistics.median(values), 1),
            "spread_us": [round(min(values), 1), round(max(values), 1)],
            "limit_us": LIMITS[name],
            "of_limit": round(statistics.median(values) / LIMITS[name], 2),
            "of_plain_json": round(statistics.median(values) / reference, 2),
            "to_raw_crafter": round(statistics.median(ratios[name]), 2),
            "to_raw_spread": [round(min(ratios[name]), 2), round(max(ratios[name]), 2)],
        }
        for name, values in medians.items()
    ]
    if options.json:
        json.dump({"plain_json_us": round(reference, 1), "rows": rows}, sys.stdout, indent=1)
        return
    print(f"one json.dumps of the observation, sorted: {reference:.1f} us")
    for row in rows:
        low, high = row["spread_us"]
        print(
            f"{row['what']:<12} {row['median_us']:>7} us a decision  [{low}, {high}]  "
            f"{row['of_limit']} of the limit of {row['limit_us']:g} us, {row['of_plain_json']} of one json.dumps"
        )
    for row in rows:
        low, high = row["to_raw_spread"]
        print(f"{row['what']:<12} {row['to_raw_crafter']} times the steps/s of raw unrendered Crafter  [{low}, {high}]")


if __name__ == "__main__":
    main()
