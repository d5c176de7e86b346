"""Opening a database: what is made, what is refused, and how that is said."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wsap_core.errors import (
    ConfigError,
    NotADatabaseError,
    StorageError,
    StorageLockedError,
    StorageReadOnlyError,
    StorageVersionError,
)
from wsap_core.installing import install_line
from wsap_nexus.store.database import PAGE_BYTES, Database
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import Repository


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database with one run of one event."""
    path = tmp_path / "wsap.db"
    with Database.open(path) as database:
        run = Repository(database).create_run(NewRun(game="crafter", agent="random"))
        with LogWriter(database) as log:
            log.append(run.id, "step", '{"n":1}')
    return path


def recorded(path: Path) -> list[object]:
    with Database.open(path, read_only=True) as database:
        repository = Repository(database)
        return [event.data for event in repository.read_events(repository.get_run("last").id)]


def one_sentence(error: BaseException) -> str:
    """The message, which has to be one line that names something to do."""
    message = str(error)
    assert "\n" not in message
    assert message[0].isupper() or message.startswith("/")
    return message


def test_a_new_database_belongs_to_its_owner_alone(path: Path) -> None:
    with Database.open(path) as database, LogWriter(database) as log:
        log.append(Repository(database).get_run("last").id, "step", "{}")
        log.flush()
        files = list(path.parent.iterdir())
        assert {file.name for file in files} == {"wsap.db", "wsap.db-wal", "wsap.db-shm"}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_closing_leaves_a_single_file(path: Path) -> None:
    assert [file.name for file in path.parent.iterdir()] == ["wsap.db"]


def test_a_database_can_be_named_by_url(tmp_path: Path, path: Path) -> None:
    with Database.open(f"sqlite:///{path}", create=False) as database:
        assert database.where == str(path)
        assert len(Repository(database).list_runs()) == 1


def test_a_name_with_odd_characters_is_just_a_name(tmp_path: Path) -> None:
    path = tmp_path / "what?mode=ro #1 100%.db"
    Database.open(path).close()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_readers_see_what_is_committed_while_a_writer_writes(path: Path) -> None:
    with Database.open(path) as database, database.write() as writing:
        writing.exec_driver_sql("UPDATE run SET agent = 'someone else'")
        with Database.open(path, read_only=True) as reading:
            assert Repository(reading).get_run("last").agent == "random"


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"no-such-folder .*does not exist") as caught:
        Database.open(tmp_path / "no-such-folder" / "wsap.db")
    assert "--database" in one_sentence(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", [{"create": False}, {"read_only": True}])
def test_a_database_that_is_not_there_is_not_made_for_reading(tmp_path: Path, how: dict[str, bool]) -> None:
    with pytest.raises(StorageError, match="There is no database") as caught:
        Database.open(tmp_path / "wsap.db", **how)  # type: ignore[arg-type]
    assert "wsap play" in one_sentence(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"Dear diary,\n", b"\x89PNG\r\n\x1a\n" + bytes(4000), b"SQLite"])
def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "diary.txt"
    path.write_bytes(content)
    for read_only in (False, True):
        with pytest.raises(NotADatabaseError, match=r"diary\.txt is not a WSAP database") as caught:
            Database.open(path, read_only=read_only)
        one_sentence(caught.value)
    assert path.read_bytes() == content


def test_another_programs_sqlite_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "music.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE song (title TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(NotADatabaseError, match="belongs to another program") as caught:
        Database.open(path)
    one_sentence(caught.value)
    assert path.read_bytes() == before


def test_a_folder_is_not_a_database(tmp_path: Path) -> None:
    with pytest.raises(NotADatabaseError, match="is a folder"):
        Database.open(tmp_path)


@pytest.mark.parametrize("again", [{}, {"read_only": True}])
def test_a_file_opened_twice_in_one_process_is_still_in_use_for_others(path: Path, again: dict[str, Any]) -> None:
    """Otherwise the last of the others deletes the write-ahead log in which this process goes on writing."""
    look = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(*c.execute('SELECT x FROM kept')); c.close()"

    def looked() -> str:
        return subprocess.run([sys.executable, "-c", look, str(path)], capture_output=True, text=True).stdout

    with Database.open(path) as database:
        with database.write() as connection:
            connection.exec_driver_sql("CREATE TABLE kept (x)")
            connection.exec_driver_sql("INSERT INTO kept VALUES (1)")
        Database.open(path, **again).close()
        assert looked() == "(1,)\n"
        assert path.with_name(path.name + "-wal").stat().st_size
        with database.write() as connection:
            connection.exec_driver_sql("UPDATE kept SET x = 2")
        assert looked() == "(2,)\n"
    assert not path.with_name(path.name + "-wal").exists()
    path.write_bytes(b"This is no database. " * 10)
    with pytest.raises(NotADatabaseError):  # closed, it is looked at again
        Database.open(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.db")
    for read_only in (False, True):
        with pytest.raises(NotADatabaseError, match=r"pipe\.db is not a regular file"):
            Database.open(tmp_path / "pipe.db", read_only=read_only)


def test_a_database_with_a_hard_link_is_opened_for_reading_alone(path: Path) -> None:
    with Database.open(path):  # by whom it was opened before there was a link
        other = path.with_name("other.db")
        other.hardlink_to(path)
        for name in (path, other):
            with pytest.raises(StorageError, match="more than one name") as caught:
                Database.open(name)
            assert "wsap nexus backup" in one_sentence(caught.value)
    assert recorded(path) == [{"n": 1}]
    other.unlink()
    Database.open(path).close()


def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    path = tmp_path / "wsap.db"
    path.touch()
    with Database.open(path) as database:
        assert Repository(database).list_runs() == []


def test_a_damaged_database_is_called_so(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    path.write_bytes(content)
    with pytest.raises(StorageError, match="damaged") as caught, Database.open(path) as database:
        Repository(database).list_runs()
    one_sentence(caught.value)


def test_a_sound_database_has_no_problems_and_a_scratched_one_has(path: Path) -> None:
    with Database.open(path) as database:
        assert database.problems() == []
        with database.read() as connection:
            root = connection.exec_driver_sql("SELECT rootpage FROM sqlite_master WHERE name = 'event'").scalar_one()
    content = bytearray(path.read_bytes())
    content[(root - 1) * PAGE_BYTES + 3 : (root - 1) * PAGE_BYTES + 5] = b"\xff\xff"  # how many cells the page has
    path.write_bytes(content)
    with Database.open(path) as database:
        assert database.problems() != []


def test_a_database_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StorageVersionError, match="newer version of WSAP") as caught:
        Database.open(path)
    assert install_line("wsap-nexus", newer=True) in one_sentence(caught.value)
    with pytest.raises(StorageVersionError, match="newer version of WSAP"):
        Database.open(path, read_only=True)
    assert path.read_bytes() == before


def test_a_database_that_another_program_keeps_for_itself_is_called_locked(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StorageLockedError, match="in use by another process") as caught:
        Database.open(path, busy_seconds=0)
    one_sentence(caught.value)
    assert caught.value.retryable
    connection.execute("ROLLBACK")
    connection.close()
    assert recorded(path) == [{"n": 1}]


def test_writing_while_another_program_writes_is_called_locked_and_can_be_tried_again(path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    with Database.open(path, busy_seconds=0) as database:
        repository = Repository(database)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageLockedError):
            repository.create_run(NewRun(game="echo", agent="random"))
        other.execute("ROLLBACK")
        repository.create_run(NewRun(game="echo", agent="random"))
        assert len(repository.list_runs()) == 2
    other.close()


def test_a_database_opened_for_reading_refuses_to_write(path: Path) -> None:
    with Database.open(path, read_only=True) as database, pytest.raises(StorageReadOnlyError, match="for reading only"):
        Repository(database).create_run(NewRun(game="echo", agent="random"))


@pytest.fixture
def plain_user_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that a user without special rights can enter."""
    if os.geteuid() != 0:
        yield tmp_path
        return
    # pytest's own folders are closed to everybody but root, whom no permission stops.
    folder = Path(tempfile.mkdtemp(prefix="wsap-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
@pytest.mark.parametrize(
    ("mode", "folder_mode", "expected"),
    [
        (0o644, 0o755, "writing: StorageReadOnlyError, reading: 1"),
        (0o666, 0o555, "writing: StorageReadOnlyError, reading: 1"),
        (0o600, 0o755, "writing: StorageReadOnlyError, reading: StorageReadOnlyError"),
    ],
    ids=["a file of others", "a folder of others", "a secret file"],
)
@pytest.mark.slow
def test_without_the_permission_to_write_it_is_called_read_only_and_can_still_be_read(
    path: Path, plain_user_folder: Path, mode: int, folder_mode: int, expected: str
) -> None:
    if os.geteuid() != 0 and mode == 0o600:
        pytest.skip("the owner can always read a file of mode 600; needs two users")
    folder = plain_user_folder / "home"
    folder.mkdir()
    target = folder / "wsap.db"
    shutil.copy(path, target)
    target.chmod(mode if os.geteuid() == 0 else mode & 0o555)
    folder.chmod(folder_mode)
    script = f"""
import os
from wsap_core.errors import StorageError
from wsap_nexus.store.database import Database
from wsap_nexus.store.repository import Repository
if os.geteuid() == 0:
    os.setuid(65534)
answers = []
for name, read_only in (("writing", False), ("reading", True)):
    try:
        with Database.open({str(target)!r}, read_only=read_only) as database:
            answers.append(f"{{name}}: {{len(Repository(database).list_runs())}}")
    except StorageError as error:
        answers.append(f"{{name}}: {{type(error).__name__}}")
print(", ".join(answers))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    folder.chmod(0o755)
    assert (done.stdout.strip(), done.stderr) == (expected, "")


@pytest.mark.slow
def test_processes_that_make_one_database_at_the_same_moment_agree(tmp_path: Path) -> None:
    path = tmp_path / "wsap.db"
    script = f"""
import sys
from wsap_nexus.store.database import Database
from wsap_nexus.store.records import NewRun
from wsap_nexus.store.repository import Repository
from alembic import command  # imported before the start, so that all arrive together
print("ready", flush=True)
sys.stdin.readline()
with Database.open({str(path)!r}) as database:
    Repository(database).create_run(NewRun(game="echo", agent="random"))
"""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, complaint = process.communicate(timeout=300)
        assert (process.returncode, complaint) == (0, "")
    with Database.open(path) as database:
        assert len(Repository(database).list_runs()) == len(processes)


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("mysql://localhost/wsap", "SQLite or PostgreSQL"),
        ("postgresql://user@host:not-a-port/wsap", "Invalid database URL"),
        ("sqlite:///:memory:", "must be a file"),
        ("sqlite://", "must be a file"),
    ],
)
def test_a_url_that_makes_no_sense_is_refused(url: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint) as caught:
        Database.open(url)
    one_sentence(caught.value)


def test_a_password_is_never_repeated() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StorageError) as caught:
        Database.open("postgresql://user:sesame@127.0.0.1:1/wsap")
    message = one_sentence(caught.value)
    assert "sesame" not in message
    assert "user:***@127.0.0.1:1/wsap" in message


def test_importing_the_storage_imports_no_database_library() -> None:
    script = "import sys, wsap_nexus.store, wsap_nexus.paths; print(sorted({'sqlalchemy', 'sqlmodel', 'alembic', "
    script += "'zstandard', 'pydantic', 'platformdirs'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
def test_opening_a_database_that_is_up_to_date_needs_no_alembic(path: Path) -> None:
    script = f"""
import sys
from wsap_nexus.store.database import Database
Database.open({str(path)!r}).close()
print("alembic" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "False"
