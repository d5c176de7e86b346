"""Many agents with a model behind HTTP, in one process: decisions a second against the ideal.

    python benchmarks/bench_agents.py [--agents N] [--latency S] [--rounds N] [--game GAME] [--quick] [--json]

Each agent is a whole run of its own: `llm` in the JSON style with a window of 16 steps plays a world
of its own, and everything is recorded in one durable log. The model is a server in another process
that answers each request after the latency, whole or streamed over it. The ideal is one decision for
each agent in each latency; the limit that the project sets itself is 90 % of that, whole and streamed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench_backends import server

from wsap_core.host import PluginHost
from wsap_core.services import Services
from wsap_nexus.backends.registry import Models, Policy
from wsap_nexus.runtime.controls import Controls
from wsap_nexus.runtime.loop import StepTaken
from wsap_nexus.runtime.plan import RunPlan, SeatPlan
from wsap_nexus.runtime.session import start
from wsap_nexus.runtime.store import open_store

REPLIES = {
    "echo": '{"action": "speak", "params": {"text": "is anybody there"}, "reasoning": "somebody may answer me"}',
    "crafter": '{"action": "move_left", "params": {}, "reasoning": "there may be trees further on that way"}',
}
GAMES: dict[str, dict[str, Any]] = {"echo": {"length": 10**6}, "crafter": {}}


async def measure(options: argparse.Namespace, port: int, database: str, *, streamed: bool) -> dict[str, float]:
    """Let the agents play for some times the latency, and return the figures once the flow is even."""
    host = PluginHost.discovered()
    backend = {"openai": {"base_url": f"http://127.0.0.1:{port}/v1", "stream": streamed}}
    models = Models(host, options=backend, policy=Policy(concurrency=10_000))
    controls, steps = Controls(), 0

    def count(step: StepTaken) -> None:
        nonlocal steps
        steps += 1

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
        await asyncio.sleep(2.5 * options.latency)
        before, began, used = steps, time.perf_counter(), time.process_time()
        await asyncio.sleep(options.rounds * options.latency)
        counted, seconds = steps - before, time.perf_counter() - began
        processor = time.process_time() - used
        controls.stop()
        await asyncio.gather(*tasks)
    await models.aclose()
    return {
        "decisions_per_second": counted / seconds,
        "of_ideal": counted / seconds / (options.agents / options.latency),
        "cpu_ms_per_decision": processor / max(1, counted) * 1000,
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--agents", type=int, default=500)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--game", choices=sorted(GAMES), default="echo")
    parser.add_argument("--quick", action="store_true", help="50 agents, 3 rounds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.quick:
        options.agents, options.rounds = 50, 3
    found: dict[str, dict[str, float]] = {}
    with server(options.latency, REPLIES[options.game]) as port:
        for name, streamed in (("whole", False), ("streamed", True)):
            with tempfile.TemporaryDirectory() as folder:
                database = str(Path(folder) / "runs.db")
                found[name] = asyncio.run(measure(options, port, database, streamed=streamed))
    if options.json:
        json.dump(found, sys.stdout, indent=1)
        return
    print(f"{options.agents} agents in {options.game}, {options.latency:g} s latency, durable log, one process")
    for name, row in found.items():
        print(
            f"  {name:<9} {row['decisions_per_second']:7.1f} decisions/s, {row['of_ideal']:.1%} of the ideal, "
            f"{row['cpu_ms_per_decision']:.2f} ms of CPU each, peak {row['peak_memory_mb']:.0f} MB"
        )


if __name__ == "__main__":
    main()
