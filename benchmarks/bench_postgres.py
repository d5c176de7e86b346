"""Compare the speed of a nexus on PostgreSQL with one on SQLite.

    python benchmarks/bench_postgres.py [--minutes N] [--profile] [--json]

Six agents wander between five games as fast as they can, everything recorded: by turns on a new SQLite file and on a
new database of a private PostgreSQL server on this machine, which forces every commit to the disk, as it does by
default. Measures decisions per second. Each turn on PostgreSQL is divided by the one on SQLite right before it, so that
other load on the machine counts little; the limit is a median of 70 %.

--minutes N   minutes on each of the two (1), in turns of at most 20 seconds
--profile     print what takes time in one more turn on PostgreSQL

The exit status is 1 if the limit is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "nexus" / "tests" / "kit"))

from postgres_kit import private_server

from wsap_core.host import PluginHost
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import Policy

GAMES = ("crafter", "echo", "matrix", "minigrid", "tossim")
AGENTS = 6
TURN = 20.0
WARM = 2.0
LIMIT = 0.7


async def _play(location: str, seconds: float) -> float:
    """Return the decisions per second of a nexus, once it has warmed up."""
    with open_store(location) as store:
        nexus = Nexus(PluginHost.discovered(), store, Settings(seed=11, games=GAMES, lobby_seconds=0.05))
        with nexus.nexus_store.change() as tx:
            for number in range(AGENTS):
                tx.register(f"agent-{number}", policies={"nexus": Policy("wanderer")})
        decided = 0

        def count(*_: object) -> None:
            nonlocal decided
            decided += 1

        nexus.on_step(count)
        await nexus.start()
        await asyncio.sleep(WARM)
        before, began = decided, time.perf_counter()
        await asyncio.sleep(seconds)
        rate = (decided - before) / (time.perf_counter() - began)
        await nexus.stop()
        return rate


def main() -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    turns = max(2, round(given.minutes * 60 / TURN))
    seconds = given.minutes * 60 / turns
    rates: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder, private_server(durable=True) as server:
        for turn in range(turns):
            file = asyncio.run(_play(str(Path(folder) / f"{turn}.db"), seconds))
            rates.append((file, asyncio.run(_play(server.new_database(), seconds))))
            if not given.json:
                print(f"turn {turn + 1}: SQLite {file:.0f}/s, PostgreSQL {rates[-1][1]:.0f}/s", flush=True)
        if given.profile:
            profile = cProfile.Profile()
            profile.runcall(asyncio.run, _play(server.new_database(), seconds))
            pstats.Stats(profile).sort_stats("cumulative").print_stats(60)
    ratios = [server_rate / file_rate for file_rate, server_rate in rates]
    found: dict[str, Any] = {
        "sqlite": round(statistics.median(rate for rate, _ in rates), 1),
        "postgresql": round(statistics.median(rate for _, rate in rates), 1),
        "ratio": round(statistics.median(ratios), 3),
        "lowest": round(min(ratios), 3),
        "highest": round(max(ratios), 3),
        "turns": turns,
        "seconds": seconds,
    }
    if given.json:
        print(json.dumps(found))
    else:
        print(
            f"decisions per second: SQLite {found['sqlite']}, PostgreSQL {found['postgresql']}; ratio {found['ratio']}"
            f" ({found['lowest']} to {found['highest']} in {turns} turns of {seconds:.0f} s), limit {LIMIT}"
        )
    return 0 if found["ratio"] >= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
