"""Measure how long a world that lives takes to its first new tick after its nexus was killed.

    python benchmarks/bench_restart.py [--ticks N,N,...] [--guests N,N,...] [--json]

For each number of ticks (100, 1,000, 10,000) and of guests (0, 2) a nexus in another process plays a world without a
pause between ticks and dies by SIGKILL after so many. A tick makes eight calls to a model that answers at once; the
guests are decided from outside and act in each tick. Printed are the milliseconds from the start of the nexus on that
database to the first new tick, and how many recorded ticks were repeated.

Goal: 2 s at any number of ticks. The exit status is 1 if it is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation, PluginHost
from wsap_core.errors import WsapError
from wsap_core.host import Registration
from wsap_core.protocol import Tick
from wsap_core.seams.agent import Usage
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities, Backend, Finish, Message, OnText, Reply, Request
from wsap_core.specs import AdapterSpec, BackendSpec
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EXTERNAL, EntryRequest

GOAL = 2.0
CALLS = 8
RUN = "nexus-mill"


class Instant:
    """A model that replies at once."""

    model = "instant/it"
    abilities = Abilities(json_schema=True)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Give the reply."""
        text = f"{request.key}: " + "The miller thinks about the flour. " * 8
        return Reply(text, finish=Finish(usage=Usage(1, 400, 60, 0.0)))

    async def aclose(self) -> None:
        """Do nothing."""


class Village:
    """A world that counts its ticks, asks a model, and waits for its guests."""

    game_description = "A village."
    action_space = ActionSpace((ActionDef("rest", "Do nothing."),))
    repeated = 0

    def __init__(self, context: Context) -> None:
        self._models = context.services.require("models")
        self._backend: Backend | None = None
        self._guests: dict[str, Guest] = {}
        self.tick = 0

    def reset(self) -> Observation:
        """Begin."""
        self.tick = 0
        return self.observe()

    def observe(self) -> Observation:
        """Tell the tick."""
        return Observation(step=self.tick)

    def act(self, action: Action) -> ActionResult:
        """Refuse: only guests act."""
        return ActionResult(False, "Nobody is here.", observation=self.observe())

    def seat(self, agent_id: str) -> Guest:
        """Let a guest in."""
        return self._guests.setdefault(agent_id, Guest(self))

    def leave(self, agent_id: str) -> None:
        """Let a guest out."""
        self._guests.pop(agent_id)

    async def advance(self) -> Tick:
        """Ask the model, and wait for the guests."""
        if self._backend is None:
            self._backend = await self._models.open("instant/it")
        number = self.tick + 1
        await asyncio.gather(*(self._ask(self._backend, f"{number}/intent/{i}/0") for i in range(CALLS)))
        for guest in list(self._guests.values()):
            await guest.acted.wait()
        self.tick = number
        Village.repeated += 1
        for guest in self._guests.values():
            guest.resolve()
        return Tick(number, {"story": "Everybody rests. " * 20})

    async def _ask(self, backend: Backend, key: str) -> None:
        await backend.complete(Request((Message("user", "What do you do?"),), key=key))

    def snapshot(self) -> bytes:
        """Return the tick."""
        return str(self.tick).encode()

    def restore(self, data: bytes) -> None:
        """Go to a tick."""
        self.tick = int(data)


class Guest:
    """The seat of a guest."""

    game_description, action_space = Village.game_description, Village.action_space

    def __init__(self, village: Village) -> None:
        self._village, self.acted = village, asyncio.Event()
        self._result: asyncio.Future[ActionResult] | None = None

    def observe(self) -> Observation:
        """Tell the tick."""
        return self._village.observe()

    def reset(self) -> Observation:
        """Tell the tick."""
        return self.observe()

    async def act(self, action: Action) -> ActionResult:
        """Wait for the next tick."""
        self._result = asyncio.get_running_loop().create_future()
        self.acted.set()
        return await self._result

    def resolve(self) -> None:
        """Tell what came of the tick."""
        self.acted.clear()
        if self._result is not None and not self._result.done():
            self._result.set_result(ActionResult(True, "Done.", observation=self.observe()))


def nexus_on(store: object, host: PluginHost) -> Nexus:
    """Return a nexus with the village."""
    return Nexus(host, store, Settings(games=("mill",), worlds=(KeptWorld("mill", "mill"),)))  # type: ignore[arg-type]


def host() -> PluginHost:
    """Return a host with the village and its model."""
    found = PluginHost.discovered()
    spec = AdapterSpec(
        "mill", "", Village, abilities=("lives", "snapshot", "multi-seat"), seats=(0, 9), timing="simultaneous",
        asks_models=True,
    )  # fmt: skip
    found.games.add(Registration(spec, "bench", "bench"))
    found.backends.add(Registration(BackendSpec("instant", "", lambda context: Instant()), "bench", "bench"))
    return found


async def acting(nexus: Nexus, agent: str) -> None:
    """Act in each tick."""
    while True:
        await asyncio.sleep(0)
        with suppress(WsapError):
            seat, _ = await nexus.live.external.observation(agent)
            await seat.act(Action("rest"))


async def live(database: str, ticks: int, guests: int) -> None:
    """Play until so many ticks are committed, and die."""
    with open_store(database) as store:
        nexus = nexus_on(store, host())
        names = [f"guest-{number}" for number in range(guests)]
        with nexus.nexus_store.change() as tx:
            for name in names:
                tx.register(name, policies={"*": EXTERNAL})
        await nexus.start()
        tasks = []
        for name in names:
            await nexus.enter(name, "mill", EntryRequest(world="mill", goals=("see the mill",)))
            tasks.append(asyncio.create_task(acting(nexus, name)))
        enough = asyncio.Event()
        nexus.live.runs[RUN].observe_ticks(lambda tick: enough.set() if tick.number >= ticks else None)
        await enough.wait()
        await store.writer.flushed()
        assert len(tasks) == guests
        os.kill(os.getpid(), signal.SIGKILL)


async def restarted(database: str) -> tuple[float, int]:
    """Return the seconds to the first new tick, and the number of repeated ones."""
    with open_store(database) as store:
        newest = store.repository.last_event(RUN, "tick")
        before = 0 if newest is None else newest.step or 0
        first: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        Village.repeated = 0
        nexus = nexus_on(store, host())
        began = time.perf_counter()
        await nexus.start()
        run = nexus.live.runs[RUN]
        run.observe_ticks(lambda tick: None if first.done() else first.set_result(time.perf_counter() - began))
        with nexus.nexus_store.look() as tx:
            guests = [session.agent_id for session in tx.sessions(only_open=True)]
        tasks = [asyncio.create_task(acting(nexus, name)) for name in guests]
        seconds = await asyncio.wait_for(first, 600)
        repeated = Village.repeated
        for task in tasks:
            task.cancel()
        await nexus.stop()
        newest = store.repository.last_event(RUN, "tick")
        assert newest is not None
        assert (newest.step or 0) > before
    return seconds, max(0, repeated - 1)


def measured(ticks: int, guests: int) -> dict[str, float]:
    """Play, kill and restart once."""
    with tempfile.TemporaryDirectory() as folder:
        database = str(Path(folder) / "bench.db")
        words = [sys.executable, __file__, "--live", f"{database},{ticks},{guests}"]
        done = subprocess.run(words, check=False)
        assert done.returncode == -signal.SIGKILL, done.returncode
        seconds, repeated = asyncio.run(restarted(database))
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
    return {"ticks": ticks, "guests": guests, "seconds": seconds, "repeated": repeated, "megabytes": size / 1e6}


def main() -> int:
    """Measure and print; 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ticks", default="100,1000,10000")
    parser.add_argument("--guests", default="0,2")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--live", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.live:
        database, ticks, guests = given.live.split(",")
        asyncio.run(live(database, int(ticks), int(guests)))
    rows = []
    for guests in map(int, given.guests.split(",")):
        for ticks in map(int, given.ticks.split(",")):
            rows.append(row := measured(ticks, guests))
            if not given.json:
                print(
                    f"{ticks:6,} ticks, {guests} guests: first new tick after {1000 * row['seconds']:5.0f} ms, "
                    f"{row['repeated']} repeated, {row['megabytes']:.1f} MB",
                    flush=True,
                )
    reached = max(row["seconds"] for row in rows) <= GOAL
    if given.json:
        print(json.dumps({"rows": rows, "goal": GOAL, "reached": reached}))
    else:
        print(f"goal of at most {GOAL} s: {'reached' if reached else 'MISSED'}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
