"""Measure the overhead of worker processes: Crafter in process and in a worker, alternating.

    python benchmarks/bench_workers.py [--steps N] [--rounds N] [--worlds N] [--json]

The same moves are made in a world in this process and in a worker, alternating every few steps, so that load on the
machine affects both. A step is observe, then resolve. `--worlds` plays that many worlds concurrently, in one worker per
CPU and in this process. Crafter's step is so short that the pipe takes longer; heavier games gain from several CPUs.
Then a worker is killed, and the time until the next response is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import time
from typing import Any

from wsap_core.host import PluginHost
from wsap_core.loading import portable_reference
from wsap_core.protocol import Action
from wsap_core.specs import AdapterSpec
from wsap_nexus.runs.record.trajectory import step_line
from wsap_nexus.worlds.port import LocalWorld, WorldPort
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.seats import SeatPort
from wsap_nexus.worlds.workers.pool import WorkerPool, sensible_workers

MOVES = ("move_left", "do", "move_up", "noop", "move_right", "do", "move_down")
TURN = 10
"""Steps of one world before switching to the other."""


async def sat_down(face: WorldPort, seed: int) -> SeatPort:
    """Reset a world and return a seat in it."""
    await face.begin(seed)
    return await face.open_seat("ada")


async def turn(seat: SeatPort, begun: int, times: dict[str, list[float]] | None = None) -> list[str]:
    """Make some steps and return their lines; append the seconds of each call to `times`."""
    lines = []
    for number in range(begun, begun + TURN):
        start = time.perf_counter()
        await seat.observe()
        between = time.perf_counter()
        outcome = await seat.step(Action(MOVES[number * 3 // 2 % len(MOVES)]))
        end = time.perf_counter()
        if times is not None:
            times["observe"].append(between - start)
            times["resolve"].append(end - between)
        lines.append(step_line("ada", outcome.action, outcome.result))
    return lines


async def alone(spec: AdapterSpec, pool: WorkerPool, steps: int, seed: int) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of each call, in process and in a worker."""
    worker = worker_world(spec, pool, seed)
    seats = {"in process": await sat_down(LocalWorld(spec, seed, {}), seed), "worker": await sat_down(worker, seed)}
    times: dict[str, dict[str, list[float]]] = {where: {"observe": [], "resolve": []} for where in seats}
    for seat in seats.values():
        await turn(seat, 0)
    for begun in range(TURN, TURN + steps, TURN):
        lines = [await turn(seat, begun, times[where]) for where, seat in seats.items()]
        if lines[0] != lines[1]:
            raise SystemExit("The worlds in the worker and in process differ.")
    await worker.close()
    return times


def worker_world(spec: AdapterSpec, pool: WorkerPool, seed: int) -> RemoteWorld:
    """Return a world in a worker."""
    return RemoteWorld(spec, seed, {}, factory=str(portable_reference(spec.factory)), pool=pool)


async def together(spec: AdapterSpec, pool: WorkerPool | None, worlds: int, steps: int) -> float:
    """Return steps per second of many concurrent worlds."""
    faces: list[WorldPort] = [
        LocalWorld(spec, seed, {}) if pool is None else worker_world(spec, pool, seed) for seed in range(worlds)
    ]
    seats = [await sat_down(face, seed) for seed, face in enumerate(faces)]

    async def play(seat: SeatPort) -> None:
        for begun in range(0, steps, TURN):
            await turn(seat, begun)

    start = time.perf_counter()
    await asyncio.gather(*map(play, seats))
    taken = time.perf_counter() - start
    for face in faces:
        await face.close()
    return worlds * steps / taken


async def recovery(spec: AdapterSpec, pool: WorkerPool, times: int) -> list[float]:
    """Return the seconds from a worker's death to the next response."""
    world = worker_world(spec, pool, 1)
    seat = await sat_down(world, 1)
    taken = []
    for number in range(times):
        await turn(seat, number * TURN)
        for link in pool.links:
            link.kill("for the measurement")
        start = time.perf_counter()
        await seat.observe()
        taken.append(time.perf_counter() - start)
    await world.close()
    return taken


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures."""
    spec = PluginHost.discovered().games.get("crafter")
    pool = WorkerPool(sensible_workers())
    try:
        rounds = [await alone(spec, pool, options.steps, seed) for seed in range(options.rounds)]
        ratios = [_step(times["worker"]) / _step(times["in process"]) for times in rounds]
        calls = {
            where: {
                call: round(statistics.median([t for times in rounds for t in times[where][call]]) * 1e6, 1)
                for call in ("observe", "resolve")
            }
            for where in ("in process", "worker")
        }
        side_by_side = {
            "in process": await together(spec, None, options.worlds, options.steps),
            "workers": await together(spec, pool, options.worlds, options.steps),
        }
        back = await recovery(spec, pool, 5)
    finally:
        await pool.close()
    return {
        "median_call_us": calls,
        "step_to_in_process": round(statistics.median(ratios), 2),
        "spread": [round(min(ratios), 2), round(max(ratios), 2)],
        "worlds": options.worlds,
        "workers": sensible_workers(),
        "steps_a_second": {where: round(value) for where, value in side_by_side.items()},
        "workers_to_in_process": round(side_by_side["workers"] / side_by_side["in process"], 2),
        "back_after_a_kill_ms": round(statistics.median(back) * 1e3),
    }


def _step(times: dict[str, list[float]]) -> float:
    return statistics.median(map(sum, zip(times["observe"], times["resolve"], strict=True)))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measure(options))
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        return
    for where, calls in found["median_call_us"].items():
        print(f"{where:<11} observe {calls['observe']:>6} us, resolve {calls['resolve']:>6} us (medians)")
    low, high = found["spread"]
    print(f"a step in a worker takes {found['step_to_in_process']} times as long as in process  [{low}, {high}]")
    rates = found["steps_a_second"]
    print(
        f"{found['worlds']} worlds side by side: {rates['in process']} steps/s in process, {rates['workers']} in "
        f"{found['workers']} workers: {found['workers_to_in_process']} times as many"
    )
    print(f"back after a kill: {found['back_after_a_kill_ms']} ms (median of 5)")


if __name__ == "__main__":
    main()
