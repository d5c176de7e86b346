"""The migrations lead to the tables that the code expects, on SQLite and on PostgreSQL."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from postgres_kit import Server

from wsap_core.errors import NotADatabaseError, StorageError, StorageFullError, StorageVersionError
from wsap_nexus.runs.store import open_database
from wsap_nexus.store import migrate
from wsap_nexus.store.database import SETUP_LOCK, Database
from wsap_nexus.store.errors import OutdatedDatabaseError
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.records import NewRun, RunStatus
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.tables import METADATA
from wsap_nexus.store.upkeep.room import can_write


def differences(database: Database) -> list[object]:
    with database.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        return list(compare_metadata(context, METADATA))


Shape = dict[tuple[str, str], str]


def shape_of_file(connection: sqlalchemy.Connection) -> Shape:
    """The definitions of tables and indices, word for word."""
    rows = connection.exec_driver_sql("SELECT type, name, sql FROM sqlite_master WHERE tbl_name != 'alembic_version'")
    return {(kind, name): sql for kind, name, sql in rows}


def shape_on_server(connection: sqlalchemy.Connection) -> Shape:
    """The definitions of columns, indices, constraints and sequences, as the server tells them."""
    queries = {
        "column": "SELECT table_name || '.' || column_name, concat_ws(' ', ordinal_position, data_type, "
        "character_maximum_length, is_nullable, column_default) FROM information_schema.columns "
        "WHERE table_schema = 'public'",
        "index": "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
        "constraint": "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = 'public'::regnamespace",
        "sequence": "SELECT sequencename, data_type::text FROM pg_sequences WHERE schemaname = 'public'",
    }
    found = {(kind, row[0]): row[1] for kind, sql in queries.items() for row in connection.exec_driver_sql(sql)}
    return {key: value for key, value in found.items() if not key[1].startswith("alembic_version")}


def test_the_migrations_lead_to_the_tables_of_the_code_word_for_word(tmp_path: Path) -> None:
    """Indices of some rows, conditions and counters too, which alembic's comparison passes over."""
    with Database.open(tmp_path / "wsap.db") as database, database.read() as connection:
        migrated_to = shape_of_file(connection)
    engine = sqlalchemy.create_engine("sqlite://")
    METADATA.create_all(engine)
    with engine.connect() as connection:
        assert migrated_to == shape_of_file(connection)
    engine.dispose()
    assert {name for kind, name in migrated_to if kind == "table"} == METADATA.tables.keys() | {"sqlite_sequence"}


def test_a_difference_would_be_found(tmp_path: Path) -> None:
    with Database.open(tmp_path / "wsap.db") as database:
        with database.write() as connection:
            connection.execute(sqlalchemy.text("ALTER TABLE run ADD COLUMN mood TEXT"))
            connection.execute(sqlalchemy.text("ALTER TABLE event DROP COLUMN step"))
        assert len(differences(database)) == 2
    with Database.open(tmp_path / "other.db") as database:
        with database.read() as connection:
            before = shape_of_file(connection)
        with database.write() as connection:
            connection.exec_driver_sql("DROP INDEX session_open")
            connection.exec_driver_sql("CREATE UNIQUE INDEX session_open ON session (agent_id) WHERE steps = 0")
        with database.read() as connection:
            assert shape_of_file(connection).items() ^ before.items()


def test_events_are_found_by_run_and_number(tmp_path: Path) -> None:
    with Database.open(tmp_path / "wsap.db") as database, database.read() as connection:
        plan = connection.exec_driver_sql(
            "EXPLAIN QUERY PLAN SELECT body FROM event WHERE run_id = 'a' AND seq >= 5 ORDER BY seq"
        ).all()
        assert [row[-1] for row in plan] == ["SEARCH event USING INDEX sqlite_autoindex_event_1 (run_id=? AND seq>?)"]


def test_the_revision_in_the_code_is_the_newest_script() -> None:
    scripts = ScriptDirectory.from_config(migrate._config())
    assert scripts.get_heads() == [migrate.HEAD]


def test_every_migration_can_be_taken_back(tmp_path: Path) -> None:
    with Database.open(tmp_path / "wsap.db") as database:
        migrated(database, "base")
        with database.read() as connection:
            assert sqlalchemy.inspect(connection).get_table_names() == [migrate.VERSION_TABLE]


def migrated(database: Database, revision: str) -> None:
    """Take a database back to a revision."""
    with database.write() as connection:
        config = migrate._config()
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


@pytest.fixture
def next_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Turns this process into a version with one more migration, which adds a column that the code does not miss."""
    scripts = tmp_path / "next version" / "migrations"
    shutil.copytree(migrate.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    (scripts / "versions" / "next.py").write_text(
        "import sqlalchemy as sa\n"
        "from alembic import op\n"
        f"revision, down_revision = 'next', {migrate.HEAD!r}\n"
        "def upgrade():\n"
        "    op.add_column('run', sa.Column('mood', sa.Text()))\n",
        encoding="utf-8",
    )

    def begin() -> None:
        monkeypatch.setattr(migrate, "SCRIPTS", scripts)
        monkeypatch.setattr(migrate, "HEAD", "next")

    return begin


def test_commands_that_only_read_bring_an_older_database_up_to_date(
    tmp_path: Path, next_version: Callable[[], None]
) -> None:
    with Database.open(tmp_path / "wsap.db") as database:
        run = Repository(database).create_run(NewRun(game="echo", agent="random"))
    next_version()
    with pytest.raises(OutdatedDatabaseError, match="older version"):
        Database.open(tmp_path / "wsap.db", read_only=True)
    with open_database(str(tmp_path / "wsap.db"), read_only=True) as database:
        assert [change[0] for change in differences(database)] == ["remove_column"]  # type: ignore[index]
        assert database.read_only
        assert Repository(database).get_run("last") == run


def test_a_database_of_a_newer_version_is_refused(
    tmp_path: Path, next_version: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context():
        next_version()
        Database.open(tmp_path / "wsap.db").close()
    monkeypatch.undo()
    with pytest.raises(StorageVersionError, match="created by a newer version of WSAP"):
        Database.open(tmp_path / "wsap.db")


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_from_before_the_first_release_is_refused_in_a_sentence_and_left_as_it_is(
    tmp_path: Path, read_only: bool
) -> None:
    path = tmp_path / "wsap.db"
    with Database.open(path) as database, database.write() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0008'")
    before = path.read_bytes()
    with pytest.raises(StorageVersionError) as caught:
        open_database(str(path), read_only=read_only)
    assert str(caught.value) == (
        f"The database {path} is from before 0.1.0, the first release of WSAP, and can't be read; move it away, or "
        "choose another one with --database."
    )
    assert path.read_bytes() == before


class Released(logging.Handler):
    """Lets a lock go when a process says that it waits for it."""

    def __init__(self, release: Callable[[], object]) -> None:
        super().__init__()
        self.let_go = release
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())
        self.let_go()


def opened_while_locked(location: str, release: Callable[[], object]) -> str:
    """Open a database whose first set-up another holds the lock for; return what was said."""
    handler = Released(release)
    log = logging.getLogger("wsap_nexus.store.database")
    log.addHandler(handler)
    try:
        with Database.open(location, busy_seconds=0) as database:
            assert differences(database) == []
    finally:
        log.removeHandler(handler)
    (said,) = handler.said
    return said


def test_who_comes_while_another_sets_the_database_up_waits_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "wsap.db"
    path.touch()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA journal_mode = WAL")
    other.execute("BEGIN IMMEDIATE")
    said = opened_while_locked(str(path), lambda: other.execute("ROLLBACK"))
    other.close()
    assert said == f"Another process is setting up the database {path}; waiting up to 30 seconds for it."


# --- PostgreSQL -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server(postgresql: Server) -> str:
    """The URL of a database on a server of our own."""
    return postgresql.url()


@pytest.mark.slow
def test_postgresql_serves_as_well(server: str) -> None:
    bodies: list[str | bytes] = [f'{{"map":"{"~.#T" * 80}","n":{n},"name":"Ünï"}}' for n in range(600)]
    bodies[100] = b"\x00\xff" * 50
    with Database.open(server) as database:
        repository = Repository(database)
        run = repository.create_run(NewRun(game="crafter", agent="random", config={"a": [1, None]}))
        assert repository.get_run("last") == run
        with LogWriter(database) as log:
            for n, body in enumerate(bodies):
                assert log.append(run.id, "step", body, seat="alice", step=n) == n
            log.flush()
            assert log.committed(run.id) == 599
            log.set_status(run.id, RunStatus.FINISHED, {"reward": 1.5})
    # A second opening finds everything there, and a second writer goes on where the first stopped.
    with Database.open(server) as database:
        repository = Repository(database)
        events = list(repository.read_events(run.id))
        assert [event.body.decode() if event.is_text else event.body for event in events] == bodies
        assert repository.get_run(run.id).summary == {"reward": 1.5}
        assert repository.get_run(run.id).status is RunStatus.FINISHED
        with LogWriter(database) as log:
            assert log.append(run.id, "step", "{}") == 600
        with LogWriter(database) as first, LogWriter(database) as second:
            first.append(run.id, "step", "1")
            second.append(run.id, "step", "2")
            first.flush()
            with pytest.raises(StorageError, match="Another process is recording the same run"):
                second.flush()
        assert differences(database) == []
        with database.read() as connection:
            migrated_to = shape_on_server(connection)
        repository.delete_run(run.id)
        assert repository.count_events(run.id) == 0
    made = another_database(server, "made")
    engine = sqlalchemy.create_engine(made.replace("postgresql:", "postgresql+psycopg:"))
    METADATA.create_all(engine)
    with engine.connect() as connection:
        assert migrated_to == shape_on_server(connection)
    engine.dispose()
    assert ("sequence", "letter_id_seq") in migrated_to


def another_database(server: str, name: str) -> str:
    """Create a database, and return its URL."""
    engine = sqlalchemy.create_engine(server.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


def test_a_full_disk_of_postgresql_is_waited_for_where_somebody_looks_after_it(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's own error for a full disk, class 53100, here raised by a trigger until that is dropped."""
    monkeypatch.setattr("wsap_nexus.store.log.eventlog.TRY_AGAIN", 0.02)
    full = "CREATE FUNCTION full_disk() RETURNS trigger AS $$ BEGIN RAISE EXCEPTION USING ERRCODE = '53100'; END $$"
    told = threading.Event()
    with Database.open(server) as database:
        run = Repository(database).create_run(NewRun(game="echo", agent="random")).id
        database.on_fault = lambda error: told.set()
        with LogWriter(database) as log:
            log.append(run, "step", "1")
            log.flush()
            with database.write() as connection:
                connection.exec_driver_sql(f"{full} LANGUAGE plpgsql")
                for table in ("event", "answer"):
                    connection.exec_driver_sql(
                        f"CREATE TRIGGER full_disk BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION full_disk()"
                    )
            log.append(run, "step", "2")
            with pytest.raises(StorageFullError, match="no room left"):
                log.flush()
            assert told.is_set()
            assert log.waits
            assert not can_write(database)
            with database.write() as connection:
                connection.exec_driver_sql("DROP FUNCTION full_disk CASCADE")
            assert can_write(database)
        assert [event.data for event in Repository(database).read_events(run)] == [1, 2]
        assert log.waits is False
        Repository(database).delete_run(run)


def test_a_first_start_waits_for_another_on_postgresql_too(server: str) -> None:
    fresh = another_database(server, "fresh")
    engine = sqlalchemy.create_engine(fresh.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as other:
        other.execute(sqlalchemy.text(f"SELECT pg_advisory_xact_lock({SETUP_LOCK})"))
        assert "waiting up to 30 seconds" in opened_while_locked(fresh, other.rollback)
    engine.dispose()


@pytest.mark.slow
def test_a_postgresql_database_of_another_program_or_a_newer_version_is_refused(server: str) -> None:
    music, newer = (another_database(server, name) for name in ("music", "newer"))
    engine = sqlalchemy.create_engine(music.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE song (title TEXT)"))
    engine.dispose()
    with pytest.raises(NotADatabaseError, match="belongs to another program"):
        Database.open(music)
    with Database.open(newer) as database, database.write() as connection:
        connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageVersionError, match="newer version of WSAP"):
        Database.open(newer)
    engine = sqlalchemy.create_engine(newer.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE alembic_version SET version_num = '0006'"))
    engine.dispose()
    with pytest.raises(StorageVersionError, match="is from before"):
        Database.open(newer)


def test_a_postgresql_database_that_does_not_exist_is_said_clearly(server: str) -> None:
    with pytest.raises(StorageError, match="nowhere") as caught:
        Database.open(server.replace("/postgres?", "/nowhere?"))
    assert "\n" not in str(caught.value)
