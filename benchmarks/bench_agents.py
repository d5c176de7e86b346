"""Many agents with a model behind HTTP in one process: decisions per second relative to the ideal.

    python benchmarks/bench_agents.py [--agents N] [--latency S] [--rounds N] [--game GAME] [--case CASE]
                                      [--memory] [--quick] [--json]

Each agent is a run: `llm` in the JSON style with a window of 16 steps plays its own world, recorded in one durable log.
A model server in another process answers each request after the latency: whole, or streamed in a hundred pieces spread
over it, each an event and an HTTP chunk. The ideal is one decision per agent and latency. Goal: 90 % of it, whole and
streamed, each measured in its own process. The exit status is 1 if it is missed. The server's CPU time is printed too,
because both share the machine.

`--memory` plays 80 rounds, enough for every window to be full and cut twice, and prints memory, which has to level off.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench_backends import server

from wsap_core.host import PluginHost
from wsap_core.seams.services import Services
from wsap_llm.backends.pool import ModelPool, RequestPolicy
from wsap_nexus.runs.gc_tuning import tune_gc
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.session import start
from wsap_nexus.runs.store import open_store

REASONING = (
    "It has been quiet for some time, and nobody has told me yet whether there is anyone within hearing. "
    "If I speak, whoever is there may answer and tell me where to go; if nobody does, I know that I am alone "
    "and lose nothing by it. So I say something short and friendly, and then listen for what comes back."
)
"""Long enough for a streamed reply of a hundred pieces of about a token."""
PIECES = 100
ACTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "echo": ("speak", {"text": "is anybody there"}),
    "crafter": ("noop", {}),  # always legal, so that no request is repeated
}
GAMES: dict[str, dict[str, Any]] = {"echo": {"length": 10**6}, "crafter": {}}
GOAL = 0.9


def reply(game: str) -> str:
    """Return the model's constant reply."""
    name, params = ACTIONS[game]
    return json.dumps({"action": name, "params": params, "reasoning": REASONING})


def resident() -> float:
    """Return the process's resident memory in MB, or its peak if that is unknown."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def measure(options: argparse.Namespace, port: int, database: str, *, streamed: bool) -> dict[str, Any]:
    """Play for some multiples of the latency, and return the figures of the steady state."""
    host = PluginHost.discovered()
    backend = {"openai": {"base_url": f"http://127.0.0.1:{port}/v1", "stream": streamed}}
    models = ModelPool(host, options=backend, policy=RequestPolicy(concurrency=10_000))
    controls, steps = Controls(), 0

    def count(step: StepTaken) -> None:
        nonlocal steps
        steps += 1

    memory: list[float] = []
    with ExitStack() as stack:
        store = stack.enter_context(open_store(database))
        tasks = []
        for number in range(options.agents):
            seat = SeatPlan("seat-1", "llm", {"model": "openai/m", "plan": "no"})
            plan = RunPlan(options.game, (seat,), seed=number, steps=10**6, options=GAMES[options.game])
            services = Services(models=models)
            session = stack.enter_context(
                start(plan, host, store, controls=controls, observers=[count], services=services)
            )
            tasks.append(asyncio.create_task(session.play()))
            await asyncio.sleep(options.latency / options.agents)
        tune_gc()  # as `wsap play` and `wsap nexus start` do
        await asyncio.sleep(2.5 * options.latency)
        before, began, used = steps, time.perf_counter(), time.process_time()
        for _ in range(8):
            await asyncio.sleep(options.rounds * options.latency / 8)
            memory.append(round(resident(), 1))
        counted, seconds = steps - before, time.perf_counter() - began
        processor = time.process_time() - used
        controls.stop()
        await asyncio.gather(*tasks)
    await models.aclose()
    return {
        "decisions_per_second": counted / seconds,
        "of_ideal": counted / seconds / (options.agents / options.latency),
        "cpu_ms_per_decision": processor / max(1, counted) * 1000,
        "decisions_each": steps / options.agents,
        "memory_mb": memory,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def one_case(options: argparse.Namespace) -> dict[str, Any]:
    """Measure whole or streamed replies in this process, with a new server."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with server(options.latency, reply(options.game), PIECES) as port, tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "runs.db")
        found = asyncio.run(measure(options, port, database, streamed=options.case == "streamed"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return found | {"server_cpu_ms": used / max(1.0, found["decisions_each"] * options.agents) * 1000}


def in_own_process(case: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure one case in a new process, so that its memory is separate."""
    command = [sys.executable, __file__, "--json", "--case", case, "--game", options.game]
    for name in ("agents", "latency", "rounds"):
        command += [f"--{name}", str(getattr(options, name))]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=3600)
    return dict(json.loads(done.stdout)[case])


def main() -> int:
    """Measure and print; 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=500)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--game", choices=sorted(GAMES), default="echo")
    parser.add_argument("--case", choices=("whole", "streamed"), help="only one of the two")
    parser.add_argument("--memory", action="store_true", help="80 rounds, to see that memory levels off")
    parser.add_argument("--quick", action="store_true", help="50 agents, 3 rounds; with --memory, 80 short ones")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.agents, options.rounds = 50, 3
    if options.memory:
        options.rounds, options.latency = 80, 0.25 if options.quick else options.latency
    if options.case:
        found = {options.case: one_case(options)}
    else:
        found = {case: in_own_process(case, options) for case in ("whole", "streamed")}
    if options.json:
        json.dump(found, sys.stdout, indent=1)
    else:
        _print(found, options)
    return 0 if options.quick or all(row["of_ideal"] >= GOAL for row in found.values()) else 1


def _print(found: dict[str, dict[str, Any]], options: argparse.Namespace) -> None:
    print(f"{options.agents} agents in {options.game}, {options.latency:g} s latency, durable log, one process")
    for name, row in found.items():
        print(
            f"  {name:<9} {row['decisions_per_second']:7.1f} decisions/s, {row['of_ideal']:.1%} of the ideal, "
            f"{row['cpu_ms_per_decision']:.2f} ms of CPU each (the server: {row['server_cpu_ms']:.2f}), "
            f"peak {row['peak_memory_mb']:.0f} MB"
        )
        along = ", ".join(f"{size:.0f}" for size in row["memory_mb"])
        print(f"            memory along {row['decisions_each']:.0f} decisions each: {along} MB")


if __name__ == "__main__":
    sys.exit(main())
