"""One nexus leads a database; a second one says clearly that it can't, whatever way it takes to it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from test_migrations import server as a_server
from warm import begin_python

from wsap_core import PluginHost
from wsap_core.errors import StorageError, StorageLockedError
from wsap_nexus.errors import AlreadyInWorldError, LockLostError, NexusRunningError
from wsap_nexus.http.listening import Address
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.server.serve import serve
from wsap_nexus.store.connection import files
from wsap_nexus.store.connection import server as store_server
from wsap_nexus.store.database import Database
from wsap_nexus.store.locks.nexus_lock import instance_lock
from wsap_nexus.store.locks.run_lock import hold_run, is_played
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import Repository

OTHER = """
import sys
from wsap_core.errors import WsapError
from wsap_nexus.store.locks.nexus_lock import instance_lock
from wsap_nexus.store.database import Database

with Database.open(sys.argv[1]) as database:
    try:
        instance_lock(database).acquire()
    except WsapError as error:
        print(error.code, error.exit_code, error)
    else:
        print("leads")
"""


PLAYER = """
import signal
import sys
from wsap_core import PluginHost
from wsap_nexus.hub.outside.play_as import start_as
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.store import open_store

plan = RunPlan("echo", (SeatPlan("seat-1", "random", {}, sys.argv[2]),), steps=4)
with open_store(sys.argv[1]) as store, start_as(plan, PluginHost.discovered(), store) as session:
    print(session.run.run_id, flush=True)
    signal.pause()
"""

server = a_server


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database that nothing else uses."""
    if request.param == "sqlite":
        return str(tmp_path / "wsap.db")
    server = str(request.getfixturevalue("server"))
    name = f"own_{uuid.uuid4().hex}"
    with Database.open(server) as database, database.engine.connect() as connection:
        connection.execution_options(isolation_level="AUTOCOMMIT").execute(text(f"CREATE DATABASE {name}"))
    return server.replace("/postgres?", f"/{name}?")


def other(location: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", OTHER, location], capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_another_process_is_refused_until_the_first_has_let_go_or_ended(location: str) -> None:
    with Database.open(location) as database:
        first = instance_lock(database)
        first.acquire()
        told = other(location)
        assert told.startswith("NEXUS_RUNNING 6 Another nexus runs on the database")
        assert "wsap nexus stop" in told
        first.release()
        assert other(location) == "leads"
        # The other process ended without letting go.
        first.acquire()
        first.release()


@pytest.mark.slow
def test_whoever_plays_as_an_agent_in_another_process_holds_off_the_nexus_until_it_ends(location: str) -> None:
    with open_store(location) as store:
        player = begin_python(PLAYER, location, "luna")
        assert player.stdout is not None
        try:
            run = player.stdout.readline().strip()
            assert is_played(store.database, run)
            with pytest.raises(StorageLockedError, match="is being played"), hold_run(store.database, run):
                pass
            with pytest.raises(AlreadyInWorldError, match=f"'luna' is playing in the run '{run}'"):
                asyncio.run(Nexus(PluginHost.discovered(), store).start())
        finally:
            player.kill()
            player.communicate()
        end = time.monotonic() + 300
        while is_played(store.database, run):  # a server hears of the end of a process a moment later
            assert time.monotonic() < end

        async def lead() -> None:
            nexus = Nexus(PluginHost.discovered(), store)
            await nexus.start()
            await nexus.stop()

        asyncio.run(lead())
        with NexusStore(store.database).look() as tx:
            assert [(session.run_id, session.reason) for session in tx.sessions(agent_id="luna")] == [
                (run, "interrupted")
            ]


def test_a_second_one_in_the_same_process_is_refused_too(location: str) -> None:
    with Database.open(location) as database, Database.open(location) as again:
        first = instance_lock(database)
        first.acquire()
        with pytest.raises(NexusRunningError):
            instance_lock(again).acquire()
        first.release()


@pytest.mark.skipif(sys.platform == "win32", reason="needs symbolic links")
def test_the_same_file_by_another_path_is_the_same_database(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Database.open(tmp_path / "real" / "wsap.db") as database, Database.open(tmp_path / "link" / "wsap.db") as same:
        first = instance_lock(database)
        first.acquire()
        with pytest.raises(NexusRunningError):
            instance_lock(same).acquire()
        first.release()


# --- on a server, where a connection can break while its process lives on ------------------------------

HOLDER = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 1465074000 AND granted"
"""Who has the lock whose number is the letters WSAP."""


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def test_the_lock_of_who_has_just_ended_is_waited_for(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = str(tmp_path / "nexus.db") if kind == "sqlite" else request.getfixturevalue("server")
    with Database.open(where) as one, Database.open(where) as two:
        first, second = instance_lock(one), instance_lock(two)
        first.acquire()
        waits = []

        def ends(seconds: float) -> None:
            waits.append(seconds)
            first.release()

        monkeypatch.setattr(time, "sleep", ends)
        second.acquire(patience=300.0)
        monkeypatch.undo()
        assert waits
        assert other(where).startswith("NEXUS_RUNNING")
        second.release()


def interrupt(server: str) -> None:
    """Break the connection that holds the lock, and return once it is gone."""
    with Database.open(server) as database, database.engine.connect() as connection:
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        (pid,) = connection.execute(text(HOLDER)).scalars()
        # The server's own: returns once the other has ended, or after that many milliseconds.
        assert connection.execute(text(f"SELECT pg_terminate_backend({pid}, 30000)")).scalar()


@pytest.mark.slow
def test_who_lost_the_lock_to_another_writes_nothing_more(server: str) -> None:
    with Database.open(server) as old, Database.open(server) as new:
        first, second = instance_lock(old), instance_lock(new)
        first.acquire()
        run = Repository(old).create_run(NewRun(game="echo", agent="random", seed=1))
        interrupt(server)
        second.acquire()
        with (
            pytest.raises(LockLostError, match="Another nexus took over the database") as lost,
            NexusStore(old).change() as tx,
        ):
            tx.register("late")
        assert (lost.value.code, lost.value.exit_code) == ("LEAD_LOST", 6)
        with pytest.raises(LockLostError):
            Repository(old).create_run(NewRun(game="echo", agent="random", seed=2))
        writer = LogWriter(old)
        writer.append(run.id, "step", b"{}")
        with pytest.raises(LockLostError):
            writer.flush()
        writer.close()
        with pytest.raises(LockLostError):
            first.check()
        with NexusStore(new).change() as tx:
            assert tx.agents() == []
            tx.register("timely")
        assert list(Repository(new).read_events(run.id)) == []
        second.release()
        first.release()


@pytest.mark.slow
def test_a_lock_that_nobody_else_took_is_taken_again(server: str) -> None:
    with Database.open(server) as database:
        first = instance_lock(database)
        first.acquire()
        interrupt(server)
        with NexusStore(database).change() as tx:
            tx.next_number("proof")
        first.check()
        assert other(server).startswith("NEXUS_RUNNING")
        first.check()
        with NexusStore(database).change() as tx:
            tx.next_number("proof")
        first.release()
        assert other(server) == "leads"


@pytest.mark.slow
def test_who_led_meanwhile_and_stopped_has_led(server: str) -> None:
    with Database.open(server) as old:
        first = instance_lock(old)
        first.acquire()
        interrupt(server)
        assert other(server) == "leads"
        with pytest.raises(LockLostError):
            first.check()
        assert other(server) == "leads"  # the lock was not kept
        first.release()


def test_who_takes_over_waits_for_what_is_being_written(server: str) -> None:
    with Database.open(server) as old, Database.open(server) as new:
        first, second = instance_lock(old), instance_lock(new)
        first.acquire()
        taking = threading.Thread(target=second.acquire)
        with NexusStore(old).change() as tx:
            tx.next_number("proof")
            interrupt(server)
            taking.start()
            waits = text("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
            with new.engine.connect() as looking:
                looking = looking.execution_options(isolation_level="AUTOCOMMIT")
                while not looking.execute(waits).scalar():
                    assert taking.is_alive()
        taking.join(30)
        with pytest.raises(LockLostError), NexusStore(old).change():
            pass
        second.release()
        first.release()


class Ticks:
    """A clock whose waits end when the test says so."""

    def __init__(self) -> None:
        self.tick = asyncio.Event()

    def now(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await self.tick.wait()
        self.tick.clear()


@pytest.mark.parametrize("waits", [False, True], ids=["nothing-waits", "an-event-waits"])
def test_a_nexus_that_lost_the_lead_stops_serving_and_says_so_without_a_word_in_the_log(
    server: str, tmp_path: Path, *, waits: bool
) -> None:
    async def scene() -> None:
        with open_store(server) as store, Database.open(server) as new:
            run = store.repository.create_run(NewRun(game="echo", agent="random"))
            clock, ready = Ticks(), asyncio.Event()
            nexus = Nexus(PluginHost.discovered(), store, Settings(games=("echo",)), clock=clock)
            serving = asyncio.create_task(
                serve(nexus, Address(port=0), tmp_path / "token", ready=lambda url: ready.set())
            )
            await asyncio.wait_for(ready.wait(), 300)
            interrupt(server)
            second = instance_lock(new)
            await asyncio.to_thread(second.acquire)
            with NexusStore(new).look() as tx:
                before = tx.last_seq()
            if waits:
                store.writer.append(run.id, "run", "{}")
            clock.tick.set()
            with pytest.raises(LockLostError):
                await asyncio.wait_for(serving, 300)
            with NexusStore(new).look() as tx:
                assert tx.last_seq() == before
            second.release()

    asyncio.run(scene())


# --- connections and files --------------------------------------------------------------------------------


def test_no_connection_outlives_the_closing_of_its_database_not_even_one_that_is_being_opened(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Database.open(server) as watching, Database.open(server) as database:
        database.engine.dispose()
        real = store_server._class().connect

        def closed_meanwhile(*words: Any, **values: Any) -> Any:
            driver = real(*words, **{**values, "application_name": "late"})
            database.close()  # as another thread does just then
            return driver

        monkeypatch.setattr(store_server._class(), "connect", closed_meanwhile)
        for _ in range(2):  # while it is closed, and afterwards
            with pytest.raises(StorageError, match="was closed"), database.read():
                pass
        monkeypatch.undo()
        there = text("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'late'")
        end = time.monotonic() + 300
        while True:
            with watching.read() as connection:
                if connection.execute(there).scalar() == 0:
                    break
            assert time.monotonic() < end


def test_each_write_looks_once_at_each_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, seen = tmp_path / "wsap.db", list[str]()
    with Database.open(path) as database:
        looked = files.identity_of

        def look(path: Path) -> files.Identity | None:
            seen.append(path.name)
            return looked(path)

        lock = instance_lock(database)
        for locked in (False, True):
            if locked:
                lock.acquire()
            with monkeypatch.context() as patch:
                patch.setattr(files, "identity_of", look)
                seen.clear()
                with NexusStore(database).change() as tx:
                    tx.next_number("proof")
            assert sorted(seen) == ["wsap.db", "wsap.db.nexus.lock"][: 1 + locked]
        lock.release()


def test_a_database_that_was_replaced_before_the_lock_was_acquired_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "wsap.db"
    with Database.open(tmp_path / "other.db"):
        pass
    with Database.open(path) as database:
        (tmp_path / "other.db").replace(path)
        lock = instance_lock(database)
        lock.acquire()
        with pytest.raises(LockLostError, match="replaced"), NexusStore(database).change():
            pass
        lock.release()
