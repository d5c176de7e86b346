"""Measure the wire API over real HTTP: GET of an agent and of an observation, and an action in Crafter.

    python benchmarks/bench_wire.py [--agents 1000] [--requests 500]

Goal: a median under 5 ms for GET requests.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "nexus" / "tests" / "kit"))

from wire_server import serving

from wsap_nexus.http.access.guard import HttpLimits


def measure(requests: int, ask: Callable[[], object]) -> tuple[float, float]:
    """Return the median and 95th percentile of a request's milliseconds."""
    ask()
    taken = []
    for _ in range(requests):
        began = time.perf_counter()
        ask()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken), statistics.quantiles(taken, n=20)[-1]


def main() -> int:
    """Measure and print; 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=500)
    options = parser.parse_args()
    limits = HttpLimits(rate=1e6, burst=1e6)
    with tempfile.TemporaryDirectory() as folder, serving(Path(folder), limits=limits) as served:
        with served.nexus.nexus_store.change() as tx:
            for number in range(options.agents):
                tx.register(f"agent-{number:05d}")
        with served.register("eve") as eve:
            reads = {
                "GET agent": lambda: eve.get("/nexus/agents/eve").raise_for_status(),
                "GET observation (nexus)": lambda: eve.get("/nexus/agents/eve/observation").raise_for_status(),
            }
            found = {name: measure(options.requests, ask) for name, ask in reads.items()}
            eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "crafter"}).raise_for_status()
            path = "/nexus/agents/eve"
            found["GET observation (Crafter)"] = measure(
                options.requests, lambda: eve.get(f"{path}/observation").raise_for_status()
            )
            keys = iter(range(10**9))

            def act() -> None:
                eve.get(f"{path}/observation")
                headers = {"Idempotency-Key": str(next(keys))}
                eve.post(f"{path}/act", json={"name": "noop"}, headers=headers).raise_for_status()

            found["observe and act (Crafter, with key)"] = measure(min(options.requests, 200), act)
    for name, (median, high) in found.items():
        print(f"{name:40} median {median:6.2f} ms   95 % {high:6.2f} ms")
    return 0 if all(median < 5 for name, (median, _) in found.items() if name.startswith("GET")) else 1


if __name__ == "__main__":
    sys.exit(main())
