"""Listeners: each is told of every event once and in order, and disturbs nobody."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from wsap_core.hookspecs import hookimpl
from wsap_core.host import PluginHost
from wsap_nexus.hookspecs import ListenerSpec
from wsap_nexus.hub import listeners
from wsap_nexus.hub.listeners import Delivery
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import EntryRequest, Policy
from wsap_nexus.store.events import NexusEvent, OtherEvent
from wsap_nexus.store.events.agents import AgentRegistered, DiaryWritten
from wsap_nexus.store.events.nexus import ListenerFailed
from wsap_nexus.store.events.sessions import Died, Left
from wsap_nexus.store.nexus_store import NexusStore


class Listening:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[NexusEvent] = []
        self.fresh = asyncio.Event()

    async def on_event(self, event: NexusEvent) -> None:
        self.told.append(event)
        self.fresh.set()

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not holds():
                self.fresh.clear()
                await self.fresh.wait()

    @property
    def numbers(self) -> list[int]:
        return [event.seq for event in self.told]


class Raising(Listening):
    """Fails over every event."""

    async def on_event(self, event: NexusEvent) -> None:
        await super().on_event(event)
        raise KeyError("something it forgot")


class Stuck(Listening):
    """Never comes to an end."""

    async def on_event(self, event: NexusEvent) -> None:
        await super().on_event(event)
        await asyncio.Event().wait()


class Plugin:
    """A third party's plugin with listeners."""

    def __init__(self, **offered: Any) -> None:
        self.offered = offered
        self.kinds: dict[str, tuple[str, ...]] = {}

    @hookimpl(optionalhook=True)
    def wsap_listeners(self) -> list[ListenerSpec]:
        return [
            ListenerSpec(name, "Listens.", lambda made=made: made, self.kinds.get(name, ()))
            for name, made in self.offered.items()
        ]


def host_with(**offered: Any) -> PluginHost:
    host = PluginHost()
    assert host.register(Plugin(**offered), "curious").status == "ok"
    return host


def live(folder: Path, host: PluginHost, test: Callable[[Nexus], Awaitable[None]]) -> None:
    """Run a nexus on the folder's database for as long as a test takes."""

    async def run() -> None:
        with open_store(str(folder / "nexus.db"), environ={"WSAP_HOME": str(folder)}) as store:
            nexus = Nexus(host, store, Settings(workers=0))
            await nexus.start()
            try:
                await test(nexus)
            finally:
                await nexus.stop()

    asyncio.run(run())


def note(nexus: Nexus, *kinds: str) -> list[int]:
    with nexus.nexus_store.change() as tx:
        return [tx.note(OtherEvent(kind=kind)) for kind in kinds]


def all_events(folder: Path, after: int = 0) -> list[NexusEvent]:
    with Database.open(folder / "nexus.db") as database, NexusStore(database).look() as tx:
        return tx.events(after=after, limit=10_000)


@pytest.mark.slow
def test_a_listener_gets_every_event_once_in_order_across_a_restart(tmp_path: Path) -> None:
    first, second = Listening(), Listening()

    async def busy(nexus: Nexus) -> None:
        for number in range(250):
            note(nexus, "deed", f"deed-{number}")
        with nexus.nexus_store.change() as tx:
            tx.register("ada", policies={"nexus": Policy("external")})

    live(tmp_path, host_with(mine=first), busy)
    live(tmp_path, host_with(mine=second), busy)
    everything = all_events(tmp_path)
    assert [event.seq for event in everything] == first.numbers + second.numbers
    assert [event.kind for event in first.told] == [e.kind for e in everything if e.seq <= first.numbers[-1]]
    assert first.told[0].kind == second.told[0].kind == "started"
    assert first.told[-1].kind == second.told[-1].kind == "stopped"
    assert any(isinstance(event, AgentRegistered) for event in first.told)


def test_what_happens_while_a_listener_is_not_installed_is_told_when_it_is_again(tmp_path: Path) -> None:
    first, second = Listening(), Listening()

    async def busy(nexus: Nexus) -> None:
        note(nexus, "deed")

    live(tmp_path, host_with(mine=first), busy)
    live(tmp_path, host_with(), busy)
    live(tmp_path, host_with(mine=second), busy)
    assert first.numbers + second.numbers == [event.seq for event in all_events(tmp_path)]


def test_a_new_listener_begins_with_what_happens_from_then_on(tmp_path: Path) -> None:
    late = Listening()

    async def busy(nexus: Nexus) -> None:
        note(nexus, "deed")

    live(tmp_path, host_with(), busy)
    before = all_events(tmp_path)[-1].seq
    live(tmp_path, host_with(mine=late), busy)
    assert late.numbers == [event.seq for event in all_events(tmp_path, before)]


def test_a_listener_is_told_only_of_the_kinds_that_it_wants(tmp_path: Path) -> None:
    some = Listening()
    host = PluginHost()
    plugin = Plugin(some=some)
    plugin.kinds = {"some": ("died", "deed")}
    host.register(plugin, "curious")

    async def busy(nexus: Nexus) -> None:
        note(nexus, "deed", "other", "deed")
        with nexus.nexus_store.change() as tx:
            tx.note(Died(agent_id="ada", game="crafter", death_cause="fall"))
        await some.until(lambda: len(some.told) == 3)

    live(tmp_path, host, busy)
    assert [event.kind for event in some.told] == ["deed", "deed", "died"]


def test_one_that_raises_disturbs_nobody_and_is_reported_once(tmp_path: Path) -> None:
    raising, calm = Raising(), Listening()

    async def busy(nexus: Nexus) -> None:
        for _ in range(10):
            note(nexus, "deed")
        await raising.until(lambda: len(raising.told) >= 10)

    live(tmp_path, host_with(raising=raising, calm=calm), busy)
    everything = all_events(tmp_path)
    assert calm.numbers == raising.numbers == [event.seq for event in everything]
    (report,) = [event for event in everything if isinstance(event, ListenerFailed)]
    assert report.sentence() == "The listener raising failed: KeyError: 'something it forgot'"


def test_one_that_never_ends_is_left_behind_and_told_again_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listeners, "GRACE", 0.01)
    stuck, calm, again = Stuck(), Listening(), Listening()

    async def busy(nexus: Nexus) -> None:
        await stuck.until(lambda: stuck.told)
        note(nexus, *["deed"] * 5)
        await calm.until(lambda: len(calm.told) >= 6)

    async def nothing(nexus: Nexus) -> None:
        pass

    live(tmp_path, host_with(stuck=stuck, calm=calm), busy)
    assert [event.kind for event in stuck.told] == ["started"]
    monkeypatch.setattr(listeners, "GRACE", 300.0)
    live(tmp_path, host_with(stuck=again), nothing)
    assert again.numbers == [event.seq for event in all_events(tmp_path)]


def test_one_that_takes_too_long_goes_on_with_the_next_event(tmp_path: Path) -> None:
    stuck = Stuck()
    failed: list[str] = []

    async def run() -> None:
        with Database.open(tmp_path / "nexus.db") as database:
            nexus_store = NexusStore(database)
            delivery = Delivery(nexus_store, "stuck", stuck.on_event, seconds=0.001,
                                on_failure=lambda name, error: failed.append(f"{name}: {error}"))  # fmt: skip
            delivery.start()
            with nexus_store.change() as tx:
                numbers = [tx.note(OtherEvent(kind="deed")) for _ in range(3)]
            await stuck.until(lambda: stuck.numbers == numbers)
            await delivery.aclose(60)
            assert delivery.delivered == numbers[-1]

    asyncio.run(run())
    assert failed == ["stuck: took longer than 0.001 s"]


def test_one_that_can_not_be_made_is_reported_and_the_others_listen(tmp_path: Path) -> None:
    calm = Listening()

    class Broken:
        @hookimpl(optionalhook=True)
        def wsap_listeners(self) -> list[ListenerSpec]:
            return [ListenerSpec("broken", "Is not there.", "no_such_module:Listener")]

    host = host_with(calm=calm)
    host.register(Broken(), "broken")

    async def nothing(nexus: Nexus) -> None:
        pass

    live(tmp_path, host, nothing)
    (report,) = [event for event in calm.told if isinstance(event, ListenerFailed)]
    assert report.listener == "broken"
    assert "no_such_module" in report.error


def test_of_several_at_a_time_what_was_cut_off_is_told_again(tmp_path: Path) -> None:
    held, fresh = asyncio.Event(), Listening()
    told: list[int] = []
    done: list[int] = []

    async def on_event(event: NexusEvent) -> None:
        told.append(event.seq)
        if event.seq == 2:
            await held.wait()
        done.append(event.seq)
        await fresh.on_event(event)

    async def run() -> None:
        with Database.open(tmp_path / "nexus.db") as database:
            nexus_store = NexusStore(database)

            async def deliver(whole: int) -> None:
                delivery = Delivery(nexus_store, "several", on_event, at_once=3, seconds=None)
                delivery.start()
                with nexus_store.change() as tx:
                    for _ in range(3):
                        tx.note(OtherEvent(kind="deed"))
                await fresh.until(lambda: len(done) >= whole)
                await delivery.aclose()

            await deliver(2)
            held.set()
            await deliver(7)

    asyncio.run(run())
    assert told == [1, 2, 3, 2, 3, 4, 5, 6]


KILLED = """
import asyncio, json, os, signal, sys
from pathlib import Path
from wsap_core.hookspecs import hookimpl
from wsap_core.host import PluginHost
from wsap_nexus.hookspecs import ListenerSpec
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.events import OtherEvent

class Writing:
    def __init__(self):
        self.file = open(sys.argv[2], "a", buffering=1)
    async def on_event(self, event):
        self.file.write(f"{event.seq}\\n")

class Plugin:
    @hookimpl(optionalhook=True)
    def wsap_listeners(self):
        return [ListenerSpec("writing", "Writes numbers down.", Writing)]

async def main():
    host = PluginHost()
    host.register(Plugin(), "plugin")
    with open_store(sys.argv[1], environ={"WSAP_HOME": str(Path(sys.argv[1]).parent)}) as store:
        nexus = Nexus(host, store, Settings(workers=0))
        await nexus.start()
        for number in range(int(sys.argv[3])):
            with nexus.nexus_store.change() as tx:
                tx.note(OtherEvent(kind="deed"))
            if number % 7 == 0:
                await asyncio.sleep(0)
        if sys.argv[3] != "0":
            os.kill(os.getpid(), signal.SIGKILL)  # between the commit and the delivery
        await nexus.stop()

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_kill_between_commit_and_delivery_loses_nothing(tmp_path: Path) -> None:
    out = tmp_path / "numbers"

    def run(events: int) -> int:
        words = [sys.executable, "-c", KILLED, str(tmp_path / "nexus.db"), str(out), str(events)]
        return subprocess.run(words, timeout=300, check=False, capture_output=True).returncode

    assert run(20) == -signal.SIGKILL
    before = {int(line) for line in out.read_text().splitlines()}
    committed = {event.seq for event in all_events(tmp_path)}
    assert len(committed) == 21
    assert before < committed, "the last ones were committed and not delivered"
    assert run(33) == -signal.SIGKILL
    assert run(0) == 0
    told = [int(line) for line in out.read_text().splitlines()]
    everything = [event.seq for event in all_events(tmp_path)]
    assert sorted(set(told)) == everything
    # What was told again was told in order, too.
    assert all(b == a + 1 or b <= a for a, b in pairwise(told))
    assert told[-1] == everything[-1]


def test_a_diary_that_a_kill_prevented_is_written_at_the_next_start(tmp_path: Path) -> None:
    host = PluginHost.discovered()
    policies = {"nexus": Policy("external"), "*": Policy("random")}

    def diary() -> list[NexusEvent]:
        return [event for event in all_events(tmp_path) if isinstance(event, DiaryWritten)]

    async def play(nexus: Nexus) -> None:
        with nexus.nexus_store.change() as tx:
            tx.register("ada", policies=policies)
        await nexus.enter("ada", "echo", EntryRequest(steps=3))
        await nexus.await_exit("ada")
        await until_written(nexus)

    async def until_written(nexus: Nexus) -> None:
        fresh = Listening()
        stop = nexus.nexus_store.listen(lambda event: fresh.fresh.set())
        await fresh.until(diary)
        stop()

    live(tmp_path, host, play)
    (left,) = [event for event in all_events(tmp_path) if isinstance(event, Left)]
    before = diary()
    # As a kill right after the departure leaves it: neither the entry nor the listener's place is there.
    with Database.open(tmp_path / "nexus.db") as database, database.write() as connection:
        connection.execute(text("DELETE FROM nexus_event WHERE kind = 'diary'"))
        connection.execute(text("UPDATE listener SET seq = :seq WHERE name = 'nexus:diary'"), {"seq": left.seq - 1})
    live(tmp_path, host, until_written)
    (entry,) = diary()
    assert entry.body == before[0].body
    assert entry.session_id == left.session_id
