"""Measure workers on a Ray cluster beside worker processes, and lose a node under 64 worlds.

    python benchmarks/bench_ray_workers.py [--case step|worlds|lost] [--steps N] [--rounds N] [--worlds N] [--json]

The cluster has two nodes on this machine, so the figures hold no network, and both kinds of worker share its
processors.

step      The same moves are made in worlds of Crafter in this process, in a worker process, in a worker on a node, and
          in a game served over HTTP, alternating every few steps, so that load on the machine affects all. A step is
          observe, then resolve. The time of the processor is that of this process, which would be the nexus.
worlds    Steps per second of many worlds side by side, in as many worker processes as workers on the cluster,
          alternating as well.
lost      Agents play Crafter in a nexus, once in worker processes and once on the cluster, and there one of the nodes
          is killed when half of the steps are taken. Every trajectory must be the same. The pause is the longest time
          without a step of any agent.

It needs Ray: pip install './nexus[ray]'. The exit status is 1 if a trajectory differs.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_workers import TURN, sat_down, together, turn, worker_world

from wsap_core.host import PluginHost
from wsap_core.specs import AdapterSpec
from wsap_nexus.hub.games.remote_games import read_spec
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EntryRequest, Policy
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.worlds.port import LocalWorld, WorldPort
from wsap_nexus.worlds.remote.game_client import GameClient
from wsap_nexus.worlds.remote.http_lines import HttpLines
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.workers.carriers.cluster import RayCluster, ray_cluster
from wsap_nexus.worlds.workers.pool import Machines, WorkerPool

CASES = ("step", "worlds", "lost")
HERE, PROCESS, RAY, FAR = KINDS = "this process", "worker process", "worker on Ray", "game over HTTP"
PATIENCE = 900.0
"""Seconds that a session may take."""


@contextlib.contextmanager
def two_nodes() -> Iterator[tuple[Any, Any]]:
    """Yield a cluster of two nodes with a processor each, and the second one. Any: Ray has no types."""
    ray: Any = importlib.import_module("ray")
    cluster = importlib.import_module("ray.cluster_utils").Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        second = cluster.add_node(num_cpus=1)
        ray.init(cluster.address, log_to_driver=False, configure_logging=False)
        yield cluster, second
    finally:
        ray.shutdown()
        cluster.shutdown()


# --- step, worlds -----------------------------------------------------------------------------------


@contextlib.contextmanager
def served() -> Iterator[str]:
    """Yield the address of Crafter in a process of its own."""
    module = "wsap_nexus.worlds.remote.serve_world"
    code = f"from {module} import serve_world; serve_world('crafter', name='crafter-far', port=0)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().split()[-1]
        process.terminate()


async def step(spec: AdapterSpec, machines: Machines, steps: int, rounds: int) -> dict[str, Any]:
    """Return what a step takes in a world of each kind."""
    pools = {PROCESS: WorkerPool(1), RAY: WorkerPool(machines)}
    times: dict[str, list[list[float]]] = {where: [] for where in KINDS}
    used: dict[str, list[float]] = {where: [] for where in KINDS}
    with served() as url:
        client = GameClient(url, None)
        far = read_spec(await client.ask("GET", "/"), client)
        try:
            for seed in range(rounds):
                worlds: dict[str, WorldPort] = {HERE: LocalWorld(spec, seed, {})}
                worlds |= {where: worker_world(spec, pool, seed) for where, pool in pools.items()}
                worlds[FAR] = RemoteWorld(far, seed, {}, pool=HttpLines(far, f"w-{seed}", client, lambda error: None))
                await _round(worlds, seed, steps, times, used)
        finally:
            for pool in pools.values():
                await pool.close()
            await client.close()
    by_round = {where: [statistics.median(found) for found in each] for where, each in times.items()}
    ratios = {where: _ratios(by_round[PROCESS], by_round[where]) for where in KINDS if where != PROCESS}
    return {
        "median_step_ms": {where: round(statistics.median(found) * 1e3, 2) for where, found in by_round.items()},
        "processor_ms": {where: round(statistics.median(found) * 1e3, 2) for where, found in used.items()},
        "to_worker_process": ratios,
    }


async def _round(
    worlds: Mapping[str, WorldPort],
    seed: int,
    steps: int,
    times: Mapping[str, list[list[float]]],
    used: Mapping[str, list[float]],
) -> None:
    seats = {where: await sat_down(world, seed) for where, world in worlds.items()}
    for where, seat in seats.items():
        await turn(seat, 0)
        times[where].append([])
    for begun in range(TURN, TURN + steps, TURN):
        lines = []
        for where, seat in seats.items():
            spent: dict[str, list[float]] = {"observe": [], "resolve": []}
            before = time.process_time()
            lines.append(await turn(seat, begun, spent))
            used[where].append((time.process_time() - before) / TURN)
            times[where][-1] += map(sum, zip(spent["observe"], spent["resolve"], strict=True))
        if any(line != lines[0] for line in lines):
            raise SystemExit("The worlds differ.")
    for world in worlds.values():
        await world.close()


def _ratios(here: list[float], there: list[float]) -> dict[str, float]:
    """Return the median of the ratios of each round, the least and the greatest."""
    ratios = [two / one for one, two in zip(here, there, strict=True)]
    return {"median": round(statistics.median(ratios), 2), "min": round(min(ratios), 2), "max": round(max(ratios), 2)}


async def side_by_side(spec: AdapterSpec, machines: Machines, worlds: int, steps: int, rounds: int) -> dict[str, Any]:
    """Return the steps per second of many worlds, in both kinds of worker."""
    pools = {PROCESS: WorkerPool(machines.size), RAY: WorkerPool(machines)}
    rates: dict[str, list[float]] = {where: [] for where in pools}
    try:
        for _ in range(rounds):
            for where, pool in pools.items():
                rates[where].append(await together(spec, pool, worlds, steps))
    finally:
        for pool in pools.values():
            await pool.close()
    return {
        "worlds": worlds,
        "workers": machines.size,
        "steps_a_second": {where: round(statistics.median(found)) for where, found in rates.items()},
        "to_worker_process": _ratios(rates[PROCESS], rates[RAY]),
    }


# --- lost -------------------------------------------------------------------------------------------


async def stays(
    folder: Path, machines: Machines | int, agents: int, steps: int, at_half: Callable[[], None]
) -> tuple[list[Any], float, list[float]]:
    """Return what became of the stays of all agents in Crafter, the seconds they took, and when each step was taken."""
    taken: list[float] = []
    failed: list[NexusEvent] = []
    names = [f"agent-{number}" for number in range(agents)]

    def count(stay: LiveSession, step: object) -> None:
        taken.append(time.perf_counter())
        if len(taken) == agents * steps // 2:
            at_half()

    settings = Settings(games=("crafter",))
    if isinstance(machines, int):
        settings = replace(settings, workers=machines)
    else:
        settings = replace(settings, machines=machines)
    with open_store(str(folder / "nexus.db"), environ={"WSAP_HOME": str(folder)}) as store:
        nexus = Nexus(PluginHost.discovered(), store, settings)
        nexus.on_step(count)
        nexus.nexus_store.listen(
            lambda event: failed.append(event) if event.kind in ("game_failed", "world_crashed") else None
        )
        with nexus.nexus_store.change() as tx:
            for name in names:
                tx.register(name, policies={"nexus": Policy("external"), "*": Policy("random")})
        await nexus.start()
        try:
            began = time.perf_counter()
            sessions = [(await nexus.enter(name, "crafter", EntryRequest(steps=steps))).session for name in names]
            found = []
            for session in sessions:
                async with asyncio.timeout(PATIENCE):
                    while True:
                        with nexus.nexus_store.look() as tx:
                            closed = tx.session(session.id)
                        if closed.closed:
                            break
                        await asyncio.sleep(0.1)
                summary = store.repository.get_run(closed.run_id).summary or {}
                found.append((closed.reason, closed.steps, summary.get("trajectory_hash")))
            took = time.perf_counter() - began
        finally:
            await nexus.stop()
    if failed:
        raise SystemExit(f"A world failed: {failed[0].sentence}")
    return found, took, taken


async def lost(cluster: Any, second: Any, machines: RayCluster, agents: int, steps: int) -> dict[str, Any]:
    """Play on the cluster, and lose a node when half of the steps are taken."""
    losing: list[asyncio.Task[None]] = []
    at: list[float] = []

    def lose() -> None:
        at.append(time.perf_counter())
        losing.append(asyncio.ensure_future(asyncio.to_thread(cluster.remove_node, second, allow_graceful=False)))

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "here").mkdir()
        (Path(folder) / "there").mkdir()
        expected, here, _ = await stays(Path(folder) / "here", machines.size, agents, steps, lambda: None)
        found, there, taken = await stays(Path(folder) / "there", machines, agents, steps, lose)
    await asyncio.gather(*losing)
    after = [moment for moment in taken if moment >= at[0]]
    pauses = [later - sooner for sooner, later in itertools.pairwise(after)]
    return {
        "agents": agents,
        "steps": steps,
        "seconds": {"worker processes": round(here, 1), "Ray, a node lost": round(there, 1)},
        "same": sum(one == other for one, other in zip(expected, found, strict=True)),
        "pause_s": round(max(pauses), 1),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    spec = PluginHost.discovered().games.get("crafter")
    cases = (options.case,) if options.case else CASES

    async def measure(cluster: Any, second: Any, machines: RayCluster) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if "step" in cases:
            found["step"] = await step(spec, machines, options.steps, options.rounds)
        if "worlds" in cases:
            found["worlds"] = await side_by_side(spec, machines, 16, options.steps // 2, options.rounds)
        if "lost" in cases:
            found["lost"] = await lost(cluster, second, machines, options.worlds, options.steps)
        return found

    with two_nodes() as (cluster, second), ray_cluster() as machines:
        found = asyncio.run(measure(cluster, second, machines))
    if options.json:
        json.dump(found, sys.stdout, indent=1)
    else:
        _print(found)
    return int("lost" in found and found["lost"]["same"] < options.worlds)


def _shown(ratio: Mapping[str, float]) -> str:
    return f"{ratio['median']} [{ratio['min']}, {ratio['max']}]"


def _print(found: dict[str, Any]) -> None:
    if (told := found.get("step")) is not None:
        for where, spent in told["median_step_ms"].items():
            print(f"a step in a {where:<14} {spent:>6} ms, of which {told['processor_ms'][where]} ms of this process")
        for where, ratio in told["to_worker_process"].items():
            print(f"{where}: {_shown(ratio)} times as long as in a worker process")
    if (told := found.get("worlds")) is not None:
        rates = ", ".join(f"{rate} steps/s ({where})" for where, rate in told["steps_a_second"].items())
        print(f"{told['worlds']} worlds side by side, {told['workers']} workers each: {rates}")
        print(f"on Ray {_shown(told['to_worker_process'])} times as many")
    if (told := found.get("lost")) is not None:
        seconds = ", ".join(f"{value} s ({where})" for where, value in told["seconds"].items())
        print(f"{told['agents']} worlds of {told['steps']} steps in one nexus: {seconds}")
        print(f"trajectories as undisturbed: {told['same']} of {told['agents']}; longest pause {told['pause_s']} s")


if __name__ == "__main__":
    sys.exit(main())
