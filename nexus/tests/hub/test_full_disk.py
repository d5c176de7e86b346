"""A nexus whose disk is full says so, holds its agents, and goes on by itself once there is room."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_nexus_kit import until
from life_kit import Place, host_with, nexus_at
from wire_server import problem, serving

from wsap_core.errors import StorageFullError
from wsap_core.protocol import Action
from wsap_nexus import state
from wsap_nexus.cli.nexus.report import status_of
from wsap_nexus.cli.nexus.status import status_lines
from wsap_nexus.cli.nexus.watching.client import WatchClient
from wsap_nexus.hub.upkeep import storage
from wsap_nexus.state import Running, birth
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, Policy
from wsap_nexus.store.upkeep.room import can_write

if sys.platform != "win32":
    import resource

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process can grow: a real error of the system at every write of SQLite."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks for room fifty times a second."""
    monkeypatch.setattr("wsap_nexus.store.log.eventlog.TRY_AGAIN", 0.02)
    monkeypatch.setattr(storage, "TRY_AGAIN", 0.02)


async def until_full(place: Place) -> None:
    await place.until(lambda: place.nexus.live.held)


async def until_room(place: Place) -> None:
    await place.until(lambda: not place.nexus.live.held)


def steps(place: Place) -> int:
    repository = place.nexus.store.repository
    return sum(repository.count_events(run.id, "step") for run in repository.list_runs())


@pytest.mark.slow
def test_agents_are_held_and_go_on_by_themselves(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        agents = {name: {"nexus": Policy("wanderer")} for name in ("ada", "bob", "eve")}
        async with nexus_at(tmp_path, agents, host=host_with()) as place:
            await place.until(lambda: steps(place) > 100)
            with full_disk():
                await until_full(place)
                before = steps(place)
                tasks = dict(place.nexus.live.agent_tasks)
                assert not can_write(place.nexus.store.database)
            await until_room(place)
            assert {name for name, task in tasks.items() if not task.done()} == {"ada", "bob", "eve"}
            await place.until(lambda: steps(place) > before + 100)
            assert len(place.events("held")) == 1
            assert place.events("agent_failed", "world_crashed", "session_force_closed") == []
        said = [record.message for record in caplog.records if record.name == storage.__name__]
        assert "There is no room left for the database" in said[0]
        assert "goes on by itself" in said[0]
        assert "The fault is over" in said[1]

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())


def test_what_an_agent_does_on_a_full_disk_is_acknowledged_once_it_is_recorded(tmp_path: Path) -> None:
    async def scene() -> None:
        async with nexus_at(tmp_path, {"ida": {"*": EXTERNAL}}, host=host_with()) as place:
            stay = await place.nexus.enter("ida", "echo", EntryRequest())
            seat, _ = await place.nexus.live.external.observation("ida")
            with full_disk():
                result = await seat.act(Action("speak", {"text": "held"}))
                assert result.success
                await until_full(place)
                with pytest.raises(StorageFullError):
                    place.nexus.store.writer.flush()
            await until_room(place)
            place.nexus.store.writer.flush()
            repository = place.nexus.store.repository
            assert repository.count_events(stay.session.run_id, "step") == 1
            seat, _ = await place.nexus.live.external.observation("ida")
            assert (await seat.act(Action("speak", {"text": "free"}))).success

    asyncio.run(scene())


@pytest.mark.parametrize("leave", [False, True], ids=["entering", "leaving"])
def test_a_transit_that_could_not_be_written_is_made_up_for(tmp_path: Path, leave: bool) -> None:
    async def scene() -> None:
        async with nexus_at(tmp_path, {"ida": {"*": EXTERNAL}}, host=host_with()) as place:
            nexus = place.nexus
            if leave:
                stay = await nexus.enter("ida", "echo", EntryRequest())
                await nexus.live.external.observation("ida")
                with full_disk():
                    stay.stop("kicked")
                    await until_full(place)
            else:
                await nexus.live.external.observation("ida")
                nexus.entrance.request_enter("ida", "echo", EntryRequest())
                with full_disk():
                    nexus.live.controls["ida"].stop()
                    await until_full(place)
            await until_room(place)
            if leave:
                # Whoever wanted it back asks again: nothing of the first time is left.
                await place.until(lambda: "ida" in nexus.live.sessions)
                await nexus.exit("ida")
                await nexus.enter("ida", "echo", EntryRequest())
            await place.until(lambda: "ida" in nexus.live.sessions)
            with nexus.nexus_store.look() as tx:
                assert tx.open_transfers() == []
                assert len(tx.sessions(agent_id="ida")) == (2 if leave else 1)

    asyncio.run(scene())


@pytest.mark.slow
def test_a_nexus_is_stopped_on_a_full_disk_and_goes_on_from_what_was_recorded(tmp_path: Path) -> None:
    reached: list[int] = []

    async def scene() -> None:
        async with nexus_at(tmp_path, {"ada": {"nexus": Policy("wanderer")}}, host=host_with()) as place:
            await place.until(lambda: steps(place) > 20)
            reached.append(steps(place))
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
            await until_full(place)

    async def again() -> None:
        async with nexus_at(tmp_path, {}, host=host_with()) as place:
            assert steps(place) >= reached[0]
            await place.until(lambda: steps(place) > reached[0] + 20)

    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        asyncio.run(scene())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    asyncio.run(again())


def test_health_dashboard_status_and_watch_say_so_and_an_action_is_answered_once_it_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path))  # the token lies there
    with serving(tmp_path) as served, served.register("eve") as eve, served.client("") as anybody:
        running = Running(os.getpid(), birth(os.getpid()), f"{served.url}/", 0.0, str(tmp_path / "wsap.db"))
        state.write(tmp_path / "state.json", running)
        eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "echo"}).raise_for_status()
        act = {"name": "speak", "parameters": {"text": "held"}}
        keyed = {"Idempotency-Key": "one", "Prefer": "wait=0"}
        with full_disk():
            assert problem(eve.post("/nexus/agents/eve/act", json=act, headers=keyed)) == (507, "STORAGE_FULL")
            until(lambda: served.nexus.live.held, "the nexus holds")
            health = anybody.get("/nexus/health")
            assert (health.status_code, health.json()["status"]) == (503, "degraded")
            assert "There is no room left" in health.json()["reason"]
            assert str(tmp_path) not in health.text  # anybody may read it
            (shown,) = anybody.get("/nexus/overview").json()["attention"]
            assert "There is no room left" in shown["what"]
            with Database.open(tmp_path / "wsap.db", read_only=True) as reading:
                found = status_of(reading, running, running.database, health=health.json())
                assert any("Agents are held: There is no room left" in line for line in status_lines(found))
                sight, _ = WatchClient(reading, tmp_path / "state.json").look()
                assert "Agents are held: There is no room left" in sight.held
        until(lambda: not served.nexus.live.held, "the nexus goes on")
        assert anybody.get("/nexus/health").json()["reason"] is None
        done = until(lambda: (r := eve.post("/nexus/agents/eve/act", json=act, headers=keyed)).status_code == 200 and r,
                     "the action is answered")  # fmt: skip
        assert done.json()["result"]["success"]
