"""A nexus whose files are deleted or replaced while it runs ends, and disturbs no other that runs in their place."""

from __future__ import annotations

import json
import shutil
import signal
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_nexus_kit import environ_of, running

from wsap_nexus.cli.nexus.watching.client import WatchClient
from wsap_nexus.store.database import Database
from wsap_nexus.store.errors import DatabaseReplacedError
from wsap_nexus.store.events import OtherEvent
from wsap_nexus.store.locks.run_lock import hold_run, is_played
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import Repository


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.mark.slow
def test_a_home_deleted_and_made_anew_belongs_to_the_new_nexus_alone(home: Path) -> None:
    environ = environ_of(home)
    with running(environ) as old:
        old.someone_was_away()
        shutil.rmtree(home)
        with running(environ) as new:
            code, errors = old.ended()
            assert code == 6
            assert "was deleted, moved or replaced while this " in errors.splitlines()[-1]
            assert "Traceback" not in errors
            status = new.someone_was_away()
            assert status["pid"] == new.ready["pid"], "its state file is still there"
            new.tell(signal.SIGTERM)
            assert new.ended()[0] == 0
    with sqlite3.connect(home / "wsap.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        kinds = [row[0] for row in connection.execute("SELECT kind FROM nexus_event")]
    connection.close()
    assert kinds.count("started") == 1
    assert kinds.count("stopped") == 1


def _delete_all(home: Path) -> None:
    shutil.rmtree(home)


def _move(home: Path) -> None:
    home.rename(home.with_name("elsewhere"))


def _delete_lock(home: Path) -> None:
    (home / "wsap.db.nexus.lock").unlink()


def _replace_database(home: Path) -> None:
    shutil.copyfile(home / "wsap.db", home / "copy.db")
    (home / "copy.db").replace(home / "wsap.db")


@pytest.mark.slow
@pytest.mark.parametrize("harm", [_delete_all, _move, _delete_lock, _replace_database])
def test_a_nexus_without_its_files_ends_by_itself_and_makes_no_new_ones(
    home: Path, harm: Callable[[Path], None]
) -> None:
    with running(environ_of(home)) as hub:
        hub.someone_was_away()
        harm(home)
        before = _sizes(home)
        code, errors = hub.ended()
        assert code == 6
        assert "was deleted, moved or replaced" in errors.splitlines()[-1]
        if harm in (_delete_all, _move):
            assert _sizes(home) == before


def _sizes(home: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in home.iterdir()} if home.exists() else {}


def test_nobody_writes_into_a_database_that_took_the_place_of_theirs(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Database.open(path) as database:
        repository = Repository(database)
        run = repository.create_run(NewRun(game="echo", agent="random")).id
        with LogWriter(database) as writer:
            writer.append(run, "step", b"{}", episode=0)
            writer.flush()
            for each in tmp_path.glob("a.db*"):
                each.rename(each.with_name("old-" + each.name))
            with Database.open(path) as new, NexusStore(new).change() as tx:
                tx.register("ada")

            def write() -> None:
                writer.append(run, "step", b"{}", episode=0)  # refused already if the writer looked meanwhile
                writer.flush()

            with pytest.raises(DatabaseReplacedError, match="was deleted, moved or replaced"):
                write()
            with pytest.raises(DatabaseReplacedError):
                repository.create_run(NewRun(game="echo", agent="random"))
    with Database.open(path) as new:
        assert Repository(new).list_runs() == []
        with NexusStore(new).look() as tx:
            assert [agent.id for agent in tx.agents()] == ["ada"]


def test_a_log_that_is_taken_away_before_its_database_is_told_the_same_way(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Database.open(path) as database:
        run = Repository(database).create_run(NewRun(game="echo", agent="random")).id
        writer = LogWriter(database)
        writer.append(run, "step", b"{}", episode=0)
        writer.flush()
        (tmp_path / "a.db-wal").unlink()
        writer.append(run, "step", b"{}", episode=0)
        # It is forced to the disk now and then, and at the latest when the writer ends.
        with pytest.raises(DatabaseReplacedError, match="was deleted, moved or replaced"):
            writer.close()


def test_a_deleted_database_is_not_made_anew_by_who_still_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Database.open(path) as database:
        for each in tmp_path.glob("a.db*"):
            each.unlink()
        database.engine.dispose()
        with pytest.raises(DatabaseReplacedError), database.read():
            pass
    assert list(tmp_path.iterdir()) == []


def test_the_lock_of_a_run_is_removed_only_by_its_holder(tmp_path: Path) -> None:
    with Database.open(tmp_path / "a.db") as database:
        with hold_run(database, "run"):
            (tmp_path / "a.db.run.lock").unlink()
            with hold_run(database, "run"):  # as another process would
                pass
            held = hold_run(database, "run")
            held.__enter__()
        assert is_played(database, "run")
        held.__exit__(None, None, None)
        assert not is_played(database, "run")


def test_the_state_file_of_another_nexus_is_left_alone(home: Path) -> None:
    environ = environ_of(home)
    with running(environ) as hub:
        path = home / "wsap.db.nexus.json"
        mine = json.loads(path.read_text())
        path.write_text(json.dumps({**mine, "url": "http://127.0.0.1:1/"}))
        hub.tell(signal.SIGTERM)
        assert hub.ended()[0] == 0
        assert path.exists()


def test_who_watches_is_told_that_the_database_is_another_one(tmp_path: Path) -> None:
    with Database.open(tmp_path / "a.db") as database, NexusStore(database).change() as tx:
        tx.register("ada")
    with Database.open(tmp_path / "a.db", read_only=True) as database:
        client = WatchClient(database, tmp_path / "a.db.nexus.json")
        client.look()
        (tmp_path / "a.db").rename(tmp_path / "a.db.before-20261127")
        with Database.open(tmp_path / "a.db"):
            pass
        with pytest.raises(DatabaseReplacedError, match="start again"):
            client.look()


def test_a_listener_that_was_ahead_of_a_log_hears_what_comes_next(tmp_path: Path) -> None:
    with Database.open(tmp_path / "a.db") as database:
        with NexusStore(database).change() as tx:
            tx.place_of_listener("news")
            tx.keep_place_of_listener("news", 500)
            number = tx.note(OtherEvent(kind="first"))
        with NexusStore(database).change() as tx:
            assert tx.place_of_listener("news") == number
        with NexusStore(database).change() as tx:
            tx.note(OtherEvent(kind="second"))
            assert tx.place_of_listener("news") == number
