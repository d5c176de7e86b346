"""Measure what a misbehaving game does to the agents of another game: decisions per second before, during and after.

    python benchmarks/bench_neighbours.py [--kinds NAME,...] [--workers N] [--memory MIB] [--deadline S] [--json]

Six agents play one game at five decisions a second each. Another agent enters, one after the other, games that each do
one bad thing to their process (`nexus/tests/kit/bad_neighbours.py`), the last of them in a tick of a world that lives
(`living_neighbours.py`). For each game it prints

- the decisions per second of the six, relative to those before;
- the seconds until the agent was back in the nexus, with its item, and the most memory of the game's processes;
- what the log says: the failures of the game, and those of the other, of which there must be none;
- the processes that are left.

The exit status is 1 if a rate is below 90 %, a session of the six ended, their game was blamed or taken offline, an
item was lost, or a process is left.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "nexus" / "tests" / "kit"))

import bad_neighbours
import hub_kit
import living_neighbours

from wsap_core.errors import WsapError
from wsap_core.host import PluginHost, Registration
from wsap_core.protocol import PortableItem
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EntryRequest, Policy
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.worlds.workers.pool import WorkerTimeouts

SIX = ("ada", "bob", "cyd", "dan", "eve", "fay")
GUEST = "guest"
GOOD = "quarry"
LIVING = {spec.name: spec for spec in living_neighbours.GAMES.values()}
LEAST = 0.9
"""The least rate of the six, relative to that before."""
WATCH = """
import select, sys
from wsap_nexus.worlds.workers import processes

most, nexus = 0, int(sys.argv[1])
while not select.select([0], [], [], 0.2)[0]:
    children = processes.children()
    for keeper in children.get(nexus, ()):
        most = max(most, processes.memory_of(processes.descendants(keeper, children), 0))
print(most)
"""
"""Prints the most memory that a worker used together with what its games have started, until its input ends."""


class Trial:
    """A nexus with the six at play."""

    def __init__(self, nexus: Nexus, folder: Path, options: argparse.Namespace) -> None:
        self.nexus = nexus
        self.decisions = 0
        self.heard: list[NexusEvent] = []
        self._folder = folder
        self._home = asyncio.Event()
        self._options = options
        nexus.on_step(lambda stay, step: self._count(stay.session.agent_id))
        nexus.nexus_store.listen(self._hear)

    def _hear(self, event: NexusEvent) -> None:
        self.heard.append(event)
        if event.kind == "left" and event.agent_id == GUEST:
            self._home.set()

    def _count(self, agent: str) -> None:
        self.decisions += agent in SIX

    async def rate(self, seconds: float) -> float:
        """Return the decisions of the six per second."""
        began, before = time.perf_counter(), self.decisions
        await asyncio.sleep(seconds)
        return (self.decisions - before) / (time.perf_counter() - began)

    async def run(self, kind: str) -> dict[str, Any]:
        """Return the figures of one bad game."""
        game, item = game_of(kind), f"sword-{kind}"
        with self.nexus.nexus_store.change() as tx:
            tx.mint_item(GUEST, PortableItem(item, "Sword", "weapon", 3, {}, GOOD), game=GOOD, session="")
        self.heard.clear()
        self._home.clear()
        before = await self.rate(self._options.window)
        watcher = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WATCH, str(os.getpid()), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        began, decisions = time.perf_counter(), self.decisions
        await self.nexus.enter(GUEST, game, EntryRequest(steps=1000))
        try:
            async with asyncio.timeout(4 * self._options.deadline + 60):
                await self._home.wait()
        except TimeoutError:
            with contextlib.suppress(WsapError):
                self.nexus.recall(GUEST)
        seconds = time.perf_counter() - began
        # At least a window, so that what happened in it counts.
        if seconds < self._options.window:
            await asyncio.sleep(self._options.window - seconds)
        during = (self.decisions - decisions) / (time.perf_counter() - began)
        after = await self.rate(self._options.window)
        peak = int((await watcher.communicate(b""))[0])
        failed = [(event.game, str(event.body["error"])) for event in self.heard if event.kind == "game_failed"]
        return {
            "kind": kind,
            "before": round(before, 1),
            "during": round(during / before, 3),
            "after": round(after / before, 3),
            "home_after_s": round(seconds, 1),
            "home": self._place() == "nexus",
            "items": self._items(),
            "peak_mib": peak // 2**20,
            "failures": len(failed),
            "error": failed[-1][1] if failed else "",
            "blamed_others": [error for name, error in failed if name != game],
            "six_ended": sum(e.kind in ("left", "world_crashed") and e.agent_id in SIX for e in self.heard),
            "good_is": self.nexus.breaker.of(GOOD).status,
            "left_behind": self._left_behind(),
        }

    def _place(self) -> str:
        with self.nexus.nexus_store.look() as tx:
            return tx.agent(GUEST).place

    def _items(self) -> int:
        with self.nexus.nexus_store.look() as tx:
            return len({record.item.item_id for record in tx.items(GUEST) if record.place in ("escrow", "world")})

    def _left_behind(self) -> int:
        left = 0
        for path in self._folder.iterdir():
            with contextlib.suppress(OSError):
                os.kill(int(path.name), 0)
                left += 1
            path.unlink()
        return left


def game_of(kind: str) -> str:
    """Return the name of the game of a kind."""
    return kind if kind in LIVING else f"bad-{kind}"


def world_of(kind: str, folder: Path) -> KeptWorld:
    """Return a world that lives and does its bad thing as soon as the guest has planted something."""
    own = folder / kind
    own.mkdir()
    (own / "bad").touch()
    return KeptWorld(kind, kind, {"folder": str(own)})


def host_of_all() -> PluginHost:
    """Return a host with all games and those who play them."""
    host = hub_kit.host(more=(*bad_neighbours.GAMES.values(), *LIVING.values()))
    gardener = replace(living_neighbours.DIGGER, name="gardener")  # the kit has another digger
    host.agents.add(Registration(gardener, "kit", "benchmarks"))
    return host


async def measure(options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Return the figures of all kinds."""
    started = folder / "started"
    started.mkdir()
    os.environ["BAD_NEIGHBOURS"] = str(started)
    kinds = options.kinds.split(",") if options.kinds else [*bad_neighbours.FAILING, *LIVING]
    found = []
    with open_store(str(folder / "nexus.db"), environ={"WSAP_HOME": str(folder)}) as store:
        settings = Settings(
            games=(GOOD, *(game_of(kind) for kind in kinds)),
            worlds=tuple(world_of(kind, folder) for kind in kinds if kind in LIVING),
            pace=5.0,
            workers=options.workers,
            living_in_workers=True,
            timeouts=WorkerTimeouts(options.deadline, options.memory * 2**20),
            lobby_seconds=0.05,
            logs=folder / "logs",
        )
        nexus = Nexus(host_of_all(), store, settings)
        quiet = Policy("digger", {"leaves": 0.0, "climbs": 0.0})
        planting = dict.fromkeys(LIVING, Policy("gardener"))
        with nexus.nexus_store.change() as tx:
            for agent in (*SIX, GUEST):
                tx.register(agent, policies={"nexus": Policy("external"), **planting, "*": quiet})
        await nexus.start()
        try:
            trial = Trial(nexus, started, options)
            for agent in SIX:
                await nexus.enter(agent, GOOD, EntryRequest())
            for kind in kinds:
                found.append(await trial.run(kind))
                print(json.dumps(found[-1]) if options.json else tell(found[-1]), flush=True)
        finally:
            began = time.perf_counter()
            await nexus.stop()
            print(f"stopped in {time.perf_counter() - began:.1f} s")
    return found


def tell(row: dict[str, Any]) -> str:
    """Return a line about a bad game."""
    return (
        f"{row['kind']:<12} six {row['before']:>5}/s, during {row['during']:.0%}, after {row['after']:.0%}; "
        f"home after {row['home_after_s']} s, {row['items']} items, peak {row['peak_mib']} MiB, "
        f"{row['failures']} failures: {row['error'] or '-'}" + ("" if fine(row) else f"  <-- {row}")
    )


def fine(row: dict[str, Any]) -> bool:
    """Return whether the six were not harmed, and all else is as it must be."""
    held = min(row["during"], row["after"]) >= LEAST and row["home"] and not row["six_ended"]
    return held and row["good_is"] == "available" and not row["blamed_others"] and not row["left_behind"]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default="", help="names, with commas between them; default: all")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", type=int, default=400, help="the limit of a worker, in MiB")
    parser.add_argument("--deadline", type=float, default=10.0, help="seconds for one call of a game")
    parser.add_argument("--window", type=float, default=8.0, help="seconds of measurement before and after")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(options, Path(folder)))
    bad = [row["kind"] for row in found if not fine(row)]
    items = [row["items"] for row in found]
    conserved = items == list(range(1, len(found) + 1))
    print(f"{len(found) - len(bad)} of {len(found)} kinds harm no other; items conserved: {conserved}")
    return 1 if bad or not conserved else 0


if __name__ == "__main__":
    sys.exit(main())
