"""Plays a meadow in a process that kills itself: `living_kill.py DATABASE TICKS KILL`.

It is killed when the event number KILL of this session is appended, at times after that is committed; never for 0.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "kit"))

from kill_kit import die_at

from wsap_core.host import PluginHost
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.runs.store import open_store
from wsap_nexus.services import StoreRunner

RUN, GAME = "killed", "living_worlds:MEADOW"


def main(database: str, ticks: int, kill: int) -> None:
    host = PluginHost.discovered()
    with open_store(database) as store:
        die_at(store, kill)
        done = sum(1 for _ in store.repository.read_events(RUN, kinds=("tick",)))
        runner = StoreRunner(host, store, ModelPool(host))
        asyncio.run(runner.play(GAME, {}, run=RUN, seed=5, steps=ticks - done, snapshot_every=4))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
