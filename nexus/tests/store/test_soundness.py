"""A damaged database is not run: it is looked at after an unclean end, and by `wsap doctor`."""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import cli_nexus_kit as kit
import httpx2
import pytest
from life_kit import host_with, nexus_at

from wsap_core.errors import StorageDamagedError
from wsap_core.host import PluginHost
from wsap_nexus.http.listening import Address
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.server.serve import serve
from wsap_nexus.store.connection import soundness
from wsap_nexus.store.database import PAGE_BYTES, Database
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.upkeep import backup

SUFFIXES = ("", "-wal")


def fill(database: Database, count: int, *, size: int = 3000) -> None:
    """Record a run with events that fill pages."""
    run = Repository(database).create_run(NewRun(game="g", agent="a", seed=1)).id
    with LogWriter(database) as writer:
        for number in range(count):
            writer.append(run, "step", random.Random(number).randbytes(size))


def copied(source: Path, folder: Path) -> Path:
    """Copy a database and its log as they are, as a power cut would leave them."""
    folder.mkdir(exist_ok=True)
    for suffix in SUFFIXES:
        if source.with_name(source.name + suffix).exists():
            shutil.copyfile(source.with_name(source.name + suffix), folder / (source.name + suffix))
    return folder / source.name


def scratch(path: Path) -> None:
    """Damage a file's page with the first events."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'event'").fetchone()
    content = bytearray(path.read_bytes())
    at = (root - 1) * PAGE_BYTES
    content[at : at + PAGE_BYTES] = b"\xff" * PAGE_BYTES
    path.write_bytes(content)


def contents(path: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in path.parent.glob(path.name + "*") if not p.name.endswith("-shm")}


def checkpoint(path: Path, sql: str = "") -> None:
    """Write the log into the file, after a statement."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(sql or "SELECT 1").fetchall()
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


@pytest.fixture
def own_home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """A copy of a database in use, of which the log was copied some time before the file itself."""
    source, folder = tmp_path / "source" / "wsap.db", tmp_path / "torn"
    source.parent.mkdir()
    folder.mkdir()
    with Database.open(source) as database:
        fill(database, 300)
        checkpoint(source)
        fill(database, 20)
        shutil.copyfile(f"{source}-wal", folder / "wsap.db-wal")
        fill(database, 800, size=500)
        checkpoint(source, "DELETE FROM event WHERE seq % 3 = 0")
        fill(database, 300)
        checkpoint(source)
        shutil.copyfile(source, folder / "wsap.db")
    return folder / "wsap.db"


def test_a_file_that_is_newer_than_its_log_is_refused_and_left_as_it_is(torn: Path) -> None:
    before = contents(torn)
    with pytest.raises(StorageDamagedError) as caught:
        Database.open(torn)
    assert str(caught.value).startswith(f"The database {torn} is damaged (")
    assert "restore a backup with: wsap nexus restore" in str(caught.value)
    assert (caught.value.exit_code, caught.value.http_status) == (6, 503)
    assert contents(torn) == before


def test_a_sound_copy_of_a_database_in_use_is_checked_once_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "wsap.db"
    looks: list[Path] = []
    look = soundness.problems
    monkeypatch.setattr(soundness, "problems", lambda path, busy: looks.append(path) or look(path, busy))
    with Database.open(source) as database:
        fill(database, 20)
        copy = copied(source, tmp_path / "copy")
    assert looks == [], "a new database, and one that was closed, need no look"
    with Database.open(source) as database:
        assert Repository(database).count_events(Repository(database).list_runs()[0].id) == 20
    assert looks == []
    with Database.open(copy) as database:
        assert Repository(database).count_events(Repository(database).list_runs()[0].id) == 20
    assert looks == [copy]
    Database.open(copy).close()
    assert looks == [copy]


def test_a_copy_without_its_log_of_a_database_that_a_nexus_uses_is_checked(tmp_path: Path) -> None:
    async def scene() -> None:
        async with nexus_at(tmp_path, {"ann": {"*": Policy("random")}}, host=host_with(), games=("echo",)) as place:
            fill(place.nexus.store.database, 50)
            checkpoint(tmp_path / "nexus.db")
            shutil.copyfile(tmp_path / "nexus.db", tmp_path / "alone.db")

    asyncio.run(scene())
    scratch(tmp_path / "alone.db")
    with pytest.raises(StorageDamagedError):
        Database.open(tmp_path / "alone.db")
    # The one that was closed has no mark, nor has a backup: damage in them is told by what reads it.
    shutil.copyfile(tmp_path / "nexus.db", tmp_path / "closed.db")
    scratch(tmp_path / "closed.db")
    with Database.open(tmp_path / "closed.db") as database:
        assert database.problems() != []


def test_a_backup_of_a_database_in_use_is_not_marked_as_such(tmp_path: Path) -> None:
    with Database.open(tmp_path / "wsap.db") as database:
        database.mark(in_use=True)
        backup.back_up(database, tmp_path / "copy.db")
        database.mark(in_use=False)
    assert not soundness._is_unclean(tmp_path / "copy.db")


def test_a_database_that_another_process_uses_is_not_checked(tmp_path: Path) -> None:
    from filelock import FileLock

    with Database.open(tmp_path / "wsap.db") as database:
        fill(database, 20)
        copy = copied(tmp_path / "wsap.db", tmp_path / "copy")
        with FileLock(f"{copy}.nexus.lock"):
            assert not soundness.check_after_unclean_end(copy, str(copy), 1.0)
        assert soundness.check_after_unclean_end(copy, str(copy), 1.0)


def test_a_check_that_takes_long_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with Database.open(tmp_path / "wsap.db") as database:
        fill(database, 400)
        monkeypatch.setattr(soundness, "SLOW", 0.0)
        with caplog.at_level(logging.WARNING):
            assert database.problems() == []
    if caplog.text:  # a timer of no seconds may still come after the end of a short check
        assert "Checking the database" in caplog.text


@pytest.mark.slow
def test_the_commands_refuse_a_damaged_database_in_a_sentence(torn: Path, own_home: Path) -> None:
    before = contents(torn)
    environ = kit.environ_of(own_home)
    for words in (
        ("play", "echo", "--steps", "1", "--database", str(torn)),
        ("nexus", "start", "--port", "0", "--database", str(torn)),
        ("nexus", "agents", "add", "eve", "--database", str(torn)),
    ):
        done = kit.wsap(environ, *words)
        assert done.returncode == 6, done.stderr
        assert done.stderr.count("is damaged (") == 1
        assert "Traceback" not in done.stderr
    done = kit.wsap(environ, "doctor", "--no-model", "--database", str(torn))
    assert done.returncode == 1
    assert "is damaged (" in done.stdout
    assert "Not ready" in done.stdout
    assert contents(torn) == before


@pytest.mark.slow
def test_doctor_finds_damage_in_a_database_that_was_closed(tmp_path: Path, own_home: Path) -> None:
    with Database.open(tmp_path / "wsap.db") as database:
        fill(database, 50)
    scratch(tmp_path / "wsap.db")
    done = kit.wsap(kit.environ_of(own_home), "doctor", "--no-model", "--database", str(tmp_path / "wsap.db"))
    assert (done.returncode, "is damaged (" in done.stdout) == (1, True)


@pytest.mark.slow
def test_a_nexus_whose_database_turns_out_to_be_damaged_stops_with_the_reason_and_pauses_nobody(
    tmp_path: Path,
) -> None:
    health: list[tuple[int, str]] = []
    told: list[NexusEvent] = []
    with pytest.raises(StorageDamagedError, match=r"is damaged \("):
        asyncio.run(served_until_damaged(tmp_path, health, told))
    (status, body), *_ = health
    assert (status, "The database is damaged" in body) == (503, True)
    kinds = {event.kind for event in told}
    assert "entered" in kinds
    assert not {"agent_failed", "agent_paused", "world_crashed"} & kinds
    assert soundness._is_unclean(tmp_path / "wsap.db"), "the next start looks at it"
    with pytest.raises(StorageDamagedError):
        Database.open(tmp_path / "wsap.db")


async def served_until_damaged(folder: Path, health: list[tuple[int, str]], told: list[NexusEvent]) -> None:
    """Serve a nexus with agents that play, damage its database under it, and ask for its health until it ends."""
    with open_store(str(folder / "wsap.db")) as store:
        nexus = Nexus(PluginHost.discovered(), store, Settings(seed=7, games=("echo",), pace=50.0))
        entered = asyncio.Event()
        nexus.nexus_store.listen(told.append)
        nexus.on_step(lambda stay, step: entered.set())
        with nexus.nexus_store.change() as tx:
            for agent in ("ann", "bob", "cid"):
                tx.register(agent, policies={"*": Policy("random"), "nexus": Policy("wanderer")})
        url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(serve(nexus, Address(port=0), folder / "token", ready=url.set_result))
        async with asyncio.timeout(120), httpx2.AsyncClient(base_url=await url, verify=False) as client:
            await entered.wait()
            checkpoint(folder / "wsap.db")
            content = (folder / "wsap.db").read_bytes()
            with (folder / "wsap.db").open("r+b") as file:
                file.seek(2 * PAGE_BYTES)
                file.write(b"\xff" * (len(content) - 2 * PAGE_BYTES))
            await nexus.until_lost()
            answer = await client.get("/nexus/health")
            health.append((answer.status_code, answer.text))
            await serving
