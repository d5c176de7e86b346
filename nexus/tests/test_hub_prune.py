"""A running nexus forgets once a day what is old, by its own clocks, beside everything else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from life_kit import Place, host_with

from wsap_core.errors import StorageFullError
from wsap_core.protocol import Action
from wsap_nexus.hub import prune
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.prune import DAY, EVERY, look_after
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EXTERNAL, EntryRequest
from wsap_nexus.store.events import NexusEvent

KEEP = 30.0


class Days:
    """Both clocks of a nexus: whoever waits does so until the test lets that time pass."""

    def __init__(self) -> None:
        self.wall = time.time()
        """Seconds since 1970; begins now, since recordings are stamped with the time at which they really are made."""
        self._moment = 0.0
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._moment

    def wall_clock(self) -> float:
        return self.wall

    async def sleep(self, seconds: float) -> None:
        until: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._moment + seconds, until))
        await until

    def waits_for_the_next_day(self) -> bool:
        return any(due >= self._moment + EVERY and not until.done() for due, until in self._waiting)

    def pass_days(self, days: float) -> None:
        self._moment += days * DAY
        self.wall += days * DAY
        for due, until in self._waiting:
            if due <= self._moment and not until.done():
                until.set_result(None)


class Kept(Place):
    """A nexus that is looked after."""

    def __init__(self, nexus: Nexus, days: Days) -> None:
        super().__init__(nexus)
        self.days = days

    async def until_pruned(self) -> None:
        """Wait until the day's pruning is over: it waits for the next day then."""
        await self.until(self.days.waits_for_the_next_day)

    async def days_later(self, days: float) -> None:
        self.days.pass_days(days)
        await self.until_pruned()

    def recordings(self) -> list[str]:
        return [run.id for run in self.nexus.store.repository.list_runs(limit=1000)]

    async def stay(self) -> NexusEvent:
        """Be in the echo's world for a step, and return the event of leaving."""
        await self.nexus.enter("ida", "echo", EntryRequest())
        leaving = self.nexus.await_exit("ida")
        seat, _ = await self.nexus.live.external.observation("ida")
        await seat.act(Action("speak", {"text": "hello"}))
        self.nexus.live.sessions["ida"].stop("kicked")
        await leaving
        return self.events("left")[-1]


@asynccontextmanager
async def looked_after(path: Path) -> AsyncIterator[Kept]:
    days = Days()
    with open_store(str(path / "nexus.db")) as store:
        nexus = Nexus(host_with(), store, Settings(seed=5, games=("echo",)), clock=days)
        nexus.nexus_store.wall_clock = days.wall_clock
        with nexus.nexus_store.change() as tx:
            tx.register("ida", policies={"*": EXTERNAL})
        await nexus.start()
        keeping = asyncio.create_task(look_after(nexus.nexus_store, nexus.clock, KEEP))
        try:
            yield Kept(nexus, days)
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
            await nexus.stop()


def test_each_day_what_has_become_too_old_is_forgotten_and_nothing_else(tmp_path: Path) -> None:
    async def scene() -> None:
        async with looked_after(tmp_path) as place:
            await place.until_pruned()
            left = await place.stay()
            run = str(left.body["run"])
            for _ in range(29):
                await place.days_later(1)
            assert run in place.recordings()
            assert place.events("pruned") == []
            await place.days_later(2)
            assert run not in place.recordings()
            (pruned,) = place.events("pruned")
            assert pruned.body["runs"] >= 1
            assert pruned.time == place.days.wall
            assert place.events("entered", "left") == []
            with place.nexus.nexus_store.look() as tx:
                assert [session.reason for session in tx.sessions(agent_id="ida")] == ["kicked"]

    asyncio.run(scene())


def test_a_stay_that_is_open_is_not_forgotten_however_long_it_lasts(tmp_path: Path) -> None:
    async def scene() -> None:
        async with looked_after(tmp_path) as place:
            stay = await place.nexus.enter("ida", "echo", EntryRequest())
            await place.until_pruned()
            await place.days_later(400)
            assert stay.session.run_id in place.recordings()
            assert [event.session_id for event in place.events("entered")] == [stay.session.id]
            seat, _ = await place.nexus.live.external.observation("ida")
            assert (await seat.act(Action("speak", {"text": "still here"}))).success

    asyncio.run(scene())


def test_a_day_on_which_it_fails_is_told_and_the_next_one_makes_up_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageFullError("There is no room left.")

    async def scene() -> None:
        async with looked_after(tmp_path) as place:
            await place.until_pruned()
            run = str((await place.stay()).body["run"])
            with monkeypatch.context() as broken:
                broken.setattr(prune, "prune", full)
                await place.days_later(40)
            (failed,) = place.events("prune_failed")
            assert failed.body["error"] == "There is no room left."
            assert run in place.recordings()
            await place.days_later(1)
            assert run not in place.recordings()
            assert len(place.events("pruned")) == 1

    asyncio.run(scene())
