"""A fault of the machine that passes holds the agents of a nexus; nobody has to resume anybody afterwards."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from cli_nexus_kit import Hub, environ_of, nexus, until
from life_kit import Place, host_with, nexus_at
from test_kept_worlds import GLADE, MEADOW, RUN, Hasty, glade

from wsap_core import Action, ActionSpace, AgentSpec, Context, Observation
from wsap_core.errors import (
    PluginError,
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageReadOnlyError,
    StorageUnavailableError,
    WorldError,
)
from wsap_nexus.cli.nexus.status import growth_lines
from wsap_nexus.errors import LockLostError, NexusRunningError
from wsap_nexus.hub.upkeep import storage
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, Policy
from wsap_nexus.store.errors import is_passing, lack, translate
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.nexus_store import Transaction

if sys.platform != "win32":
    import resource

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs limits on files")

WANDERERS = {name: {"nexus": Policy("wanderer")} for name in ("ada", "bob", "eve")}


@contextmanager
def another_program_writes(path: Path) -> Iterator[None]:
    """Another program's transaction holds the write lock of the database."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def no_files() -> Iterator[None]:
    """This process can't open any file more: a real error of the system at every opening."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))  # also none in the place of one that is closed meanwhile
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


FAULTS = {"locked": lambda path: another_program_writes(path / "nexus.db"), "no files": lambda path: no_files()}


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The nexus finds out fifty times a second whether a fault is over, and waits for nobody's lock for long."""
    monkeypatch.setattr("wsap_nexus.store.log.eventlog.TRY_AGAIN", 0.02)
    monkeypatch.setattr("wsap_nexus.store.log.sinks.WATCHED_SECONDS", 0.2)
    monkeypatch.setattr(storage, "TRY_AGAIN", 0.02)
    opened = Database.open

    def soon(location: str, **values: object) -> Database:
        return opened(location, **{"busy_seconds": 0.2, **values})  # type: ignore[arg-type]

    monkeypatch.setattr("wsap_nexus.runs.store.Database.open", soon)


def steps(place: Place) -> int:
    repository = place.nexus.store.repository
    return sum(repository.count_events(run.id, "step") for run in repository.list_runs())


def active(place: Place) -> set[str]:
    with place.nexus.nexus_store.look() as tx:
        return {agent.id for agent in tx.agents(state="active")}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.slow
def test_agents_are_held_and_go_on_by_themselves(tmp_path: Path, fault: str) -> None:
    async def scene() -> None:
        async with nexus_at(tmp_path, WANDERERS, host=host_with()) as place:
            await place.until(lambda: steps(place) > 100)
            with FAULTS[fault](tmp_path):
                await place.until(lambda: place.nexus.live.held)
                why = place.nexus.live.held
                assert str(tmp_path) not in why  # everyone reads it
            await place.until(lambda: not place.nexus.live.held)
            before = steps(place)
            await place.until(lambda: steps(place) > before + 100)
            (told,) = place.events("held")
            assert told.body["why"] == why
            assert place.events("agent_failed", "world_crashed", "session_force_closed", "game_failed") == []
            assert active(place) == {"ada", "bob", "eve"}

    asyncio.run(scene())


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.slow
def test_a_fault_in_the_middle_of_transits_pauses_nobody(tmp_path: Path, fault: str) -> None:
    async def scene() -> None:
        agents = {name: {"nexus": EXTERNAL, "*": Policy("wanderer")} for name in ("ada", "bob")}
        async with nexus_at(tmp_path, agents, host=host_with(), workers=1) as place:
            nexus = place.nexus
            for agent in agents:
                await nexus.live.external.observation(agent)
                nexus.entrance.request_enter(agent, "crafter", EntryRequest(steps=30))
            with FAULTS[fault](tmp_path):
                for agent in agents:
                    nexus.live.controls[agent].stop()
                await place.until(lambda: nexus.live.held)
            await place.until(lambda: not nexus.live.held)
            await place.until(lambda: len(place.events("left")) == 2)
            assert place.events("agent_failed", "entry_refused", "world_crashed", "game_failed") == []
            assert active(place) == {"ada", "bob"}
            with nexus.nexus_store.look() as tx:
                assert tx.open_transfers() == []

    asyncio.run(scene())


def lose_answers(place: Place, lost: Callable[[list[NexusEvent]], bool]) -> list[str]:
    """Commit the changes that `lost` chooses by what they note, and let their callers believe that they failed."""
    change = place.nexus.nexus_store.change
    kinds: list[str] = []

    @contextmanager
    def changed() -> Iterator[Transaction]:
        with change() as tx:
            yield tx
        if lost(tx.noted):
            kinds.extend(event.kind for event in tx.noted)
            raise StorageUnavailableError("The server went away before it said that it was done.")

    place.nexus.nexus_store.change = changed  # type: ignore[method-assign]
    return kinds


@pytest.mark.parametrize("game", ["crafter", "matrix", "meadow"])
@pytest.mark.slow
def test_an_entry_whose_commit_was_not_answered_is_made_once(tmp_path: Path, game: str) -> None:
    """As when a database's server goes away between a commit and its answer."""

    async def scene() -> None:
        policies = {"nexus": EXTERNAL, "*": Policy("random")}
        agents, told = dict.fromkeys(("ada", "bob"), policies), {"entered": 0}

        def lost(noted: list[NexusEvent]) -> bool:
            entered = any(event.kind == "entered" for event in noted)
            told["entered"] += entered
            return entered and told["entered"] == 1

        async with nexus_at(
            tmp_path, agents, host=host_with(MEADOW), games=("crafter", "matrix"), worlds=(GLADE,), pace=2.0
        ) as place:
            nexus = place.nexus
            kinds = lose_answers(place, lost)
            terms = EntryRequest(steps=5, world="glade" if game == "meadow" else None)
            for agent in agents:
                await nexus.live.external.observation(agent)
                nexus.entrance.request_enter(agent, game, terms)
            for agent in agents:
                nexus.live.controls[agent].stop()
            await place.until(lambda: len(place.events("left")) == 2)
            assert "entered" in kinds
            for agent in agents:  # at home again, and asked what to do there
                await nexus.live.external.observation(agent)
            assert place.events("agent_failed", "entry_refused", "world_crashed", "game_failed") == []
            assert len(place.events("entered")) == 2
            assert active(place) == {"ada", "bob"}
            with nexus.nexus_store.look() as tx:
                assert tx.open_transfers() == []

    asyncio.run(scene())


@pytest.mark.slow
def test_a_world_that_lives_and_its_guests_go_on_after_a_fault(tmp_path: Path) -> None:
    async def scene() -> None:
        async with glade(tmp_path, pace=50.0) as place:
            nexus = place.nexus
            for agent in ("ada", "bob"):
                await nexus.enter(agent, "meadow", EntryRequest(world="glade"))
            repository = nexus.store.repository
            await place.until(lambda: repository.count_events(RUN, "tick") > 20)
            with another_program_writes(tmp_path / "nexus.db"):
                await place.until(lambda: nexus.live.held)
                # Its ticks are held, too: else they would fill the memory.
                run = nexus.live.runs.get(RUN)
                assert run is None or not run.controls._running.is_set()
            await place.until(lambda: not nexus.live.held)
            before = repository.count_events(RUN, "tick")
            await place.until(lambda: repository.count_events(RUN, "tick") > before + 20)
            assert place.events("agent_failed", "world_crashed", "game_failed", "left", "session_force_closed") == []
            assert active(place) == {"ada", "bob"}

    asyncio.run(scene())


def test_changes_are_refused_at_once_while_a_fault_lasts_and_nothing_that_was_answered_is_lost(tmp_path: Path) -> None:
    async def scene() -> None:
        async with nexus_at(tmp_path, {"ida": {"*": EXTERNAL}}, host=host_with()) as place:
            nexus = place.nexus
            stay = await nexus.enter("ida", "echo", EntryRequest())
            seat, _ = await nexus.live.external.observation("ida")
            with another_program_writes(tmp_path / "nexus.db"):
                assert (await seat.act(Action("speak", {"text": "held"}))).success
                await place.until(lambda: nexus.live.held)
                with pytest.raises(StorageLockedError), nexus.nexus_store.change():
                    raise AssertionError("nothing can be changed")
            await place.until(lambda: not nexus.live.held)
            nexus.store.writer.flush()
            assert nexus.store.repository.count_events(stay.session.run_id, "step") == 1

    asyncio.run(scene())


class Greedy:
    """An agent whose own code says that there is no file left, as often as its class says."""

    times = 0

    def __init__(self, context: Context) -> None: ...

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        if Greedy.times > 0:
            Greedy.times -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return Action("wait_for_game", {"timeout": 600})

    def reflect(self, result: object) -> None: ...

    def plan(self, goals: object) -> list[str]:
        return []


GREEDY = AgentSpec("greedy", "Opens files.", Greedy)


@pytest.mark.parametrize(("times", "paused"), [(3, False), (1000, True)], ids=["for a moment", "always"])
def test_an_agent_whose_code_lacks_something_is_repeated_but_not_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int, paused: bool
) -> None:
    monkeypatch.setattr(Greedy, "times", times)

    async def scene() -> None:
        async with nexus_at(tmp_path, {"ida": {"*": Policy("greedy")}}, host=host_with(GREEDY), clock=Hasty()) as place:
            await place.until(lambda: place.events("agent_failed") if paused else Greedy.times == 0)
            assert not place.nexus.live.held  # the others are not held for it
            assert active(place) == (set() if paused else {"ida"})

    asyncio.run(scene())


def test_a_write_ahead_log_that_a_reader_holds_up_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(storage, "LOG_MOST", 20 << 20)  # SQLite starts over at 16 MB, unless somebody reads

    async def scene() -> None:
        async with nexus_at(tmp_path, {}, host=host_with()) as place:
            nexus, path = place.nexus, tmp_path / "nexus.db-wal"
            reader = sqlite3.connect(tmp_path / "nexus.db", isolation_level=None)
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM run").fetchone()
            assert not nexus.storage.report().held_up
            while path.stat().st_size <= storage.LOG_MOST:
                with nexus.nexus_store.change() as tx:
                    tx.register("ada")
                    tx.save_memories("ada", os.urandom(4 << 20))
            report = nexus.storage.report()
            assert (report.log, report.held_up) == (path.stat().st_size, True)
            (line,) = growth_lines({**report.to_json(), "growth": 0.0, "left": None})[1:]
            assert "a program has been reading the database for very long" in line
            nexus.storage.measure()
            nexus.storage.measure()
            reader.close()
        said = [record.message for record in caplog.records if record.name == storage.__name__]
        assert len(said) == 1  # once
        assert "write-ahead log of the database has grown to" in said[0]

    with caplog.at_level(logging.WARNING):
        asyncio.run(scene())


def test_errors_of_the_machine_are_told_from_others() -> None:
    passing = [StorageFullError(""), StorageLockedError(""), StorageUnavailableError(""), StorageReadOnlyError("")]
    assert all(map(is_passing, passing))
    others = [NexusRunningError(""), LockLostError(""), StorageError(""), WorldError("")]
    assert not any(map(is_passing, others))
    failed = PluginError("The agent raised.")
    failed.__cause__ = OSError(errno.EMFILE, "Too many open files")
    assert lack(failed) is failed.__cause__
    assert lack(FileNotFoundError(errno.ENOENT, "No such file")) is None
    assert isinstance(lack(MemoryError()), MemoryError)
    assert lack(RuntimeError("can't start new thread")) is not None
    assert lack(RuntimeError("The spade is broken.")) is None


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO])
def test_a_database_that_the_machine_can_not_read_now_is_unavailable(number: int) -> None:
    error = translate(OSError(number, os.strerror(number)), "wsap.db")
    assert type(error) is StorageUnavailableError
    assert error.retryable
    assert os.strerror(number) in str(error)


@pytest.mark.slow
def test_a_nexus_is_asked_and_stopped_while_another_program_holds_the_lock(tmp_path: Path) -> None:
    environ = environ_of(tmp_path)
    hub = Hub(environ)
    url = str(hub.ready["url"])

    def health() -> httpx2.Response:
        return httpx2.get(f"{url}nexus/health", timeout=60)

    until(lambda: health().json()["agents"], "the agents live")
    with another_program_writes(tmp_path / "wsap.db"):
        told = until(lambda: (r := health()).status_code == 503 and r, "health tells of it").json()
        assert told["reason"] == "Another program holds the lock of the database; what was committed is kept."
        assert "Agents are held: Another program holds the lock" in nexus(environ, "status")
        nexus(environ, "stop")
        status, errors = hub.ended()
    assert status == 0, errors
    assert "Traceback" not in errors
    again = Hub(environ)
    try:
        until(lambda: health_of(again)["agents"] == 2, "both agents live on")
        assert "paused" not in nexus(environ, "agents", "list")
    finally:
        again.tell(signal.SIGINT)
        assert again.ended()[0] == 0


def health_of(hub: Hub) -> dict[str, int]:
    found: dict[str, int] = httpx2.get(f"{hub.ready['url']}nexus/health", timeout=60).json()
    return found
