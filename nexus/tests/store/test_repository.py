"""Runs by name, events read back, and the export."""

from __future__ import annotations

import base64
import json
import random
import re
import stat
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from hypothesis import given
from hypothesis import strategies as st

from wsap_core.errors import StorageError, StorageReadOnlyError, UnknownNameError, UsageError
from wsap_core.paths import home
from wsap_core.seams.services import RunReader
from wsap_nexus import paths
from wsap_nexus.store.database import Database
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.records import NewRun, RunStatus, new_run_id
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.tables import SELDOM
from wsap_nexus.store.upkeep.export import RecordedRuns, export_jsonl

START = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)


class Ticking:
    """A clock that goes on by an hour each time it is read."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(hours=1)
        return self.now


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "wsap.db") as database:
        yield database


@pytest.fixture
def repository(database: Database) -> Repository:
    tokens = (f"{n:04x}" for n in range(0x7F3A, 0x8000))
    return Repository(database, now=Ticking(), token=lambda: next(tokens))


def a_run(game: str = "crafter", **more: object) -> NewRun:
    return NewRun(game=game, agent="random", **more)  # type: ignore[arg-type]


def test_a_new_run_comes_back_as_it_was_given(repository: Repository) -> None:
    given = NewRun(
        game="crafter",
        agent="alice=random",
        seed=42,
        step_limit=500,
        config={"seats": ["alice"], "options": {"area": 64}},
    )
    run = repository.create_run(given)
    assert run == repository.get_run(run.id)
    assert (run.id, run.game, run.agent, run.seed, run.step_limit) == (
        "20261120-crafter-7f3a",
        "crafter",
        "alice=random",
        42,
        500,
    )
    assert run.config == given.config
    assert run.status is RunStatus.RUNNING
    assert run.created == run.updated == "2026-11-20T10:30:00+00:00"
    assert run.summary is None
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", run.wsap_version)
    assert run.protocol_version == "1.0.0"


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"game": ""}, "its game is invalid"),
        ({"seed": -1}, "its seed is invalid"),
        ({"seed": 2**31}, "its seed is invalid"),
        ({"step_limit": -3}, "its step_limit is invalid"),
        ({"game": "x" * 300}, "its game is invalid"),
    ],
)
def test_a_run_out_of_range_is_refused_before_it_is_recorded(
    repository: Repository, wrong: dict[str, object], complaint: str
) -> None:
    with pytest.raises(StorageError, match=complaint):
        repository.create_run(a_run(**wrong))
    assert repository.list_runs() == []


def test_an_id_that_is_taken_is_not_given_again(database: Database) -> None:
    tokens = iter(["aaaa", "aaaa", "bbbb"])
    repository = Repository(database, now=lambda: START, token=lambda: next(tokens))
    ids = [repository.create_run(a_run()).id for _ in range(2)]
    assert ids == ["20261120-crafter-aaaa", "20261120-crafter-bbbb"]


def test_the_id_of_a_deleted_run_is_not_used_again(database: Database) -> None:
    repository = Repository(database, now=lambda: START)
    given = set()
    for _ in range(50):
        run = repository.create_run(a_run()).id
        repository.delete_run(run)
        given.add(run)
    assert len(given) == 50


def test_ids_are_short_and_grow_only_after_many_runs(database: Database) -> None:
    repository = Repository(database, now=lambda: START)
    assert re.fullmatch("20261120-crafter-[0-9a-f]{4}", repository.create_run(a_run()).id)
    with database.write() as connection:
        connection.exec_driver_sql("UPDATE counter SET value = 65534 WHERE name = 'run'")
    ids = [repository.create_run(a_run()).id for _ in range(2)]
    assert ids == ["20261120-crafter-ffff", "20261120-crafter-10000"]


def test_numbers_that_runs_have_already_are_left_out(database: Database) -> None:
    repository = Repository(database, now=lambda: START)
    number = int(repository.create_run(a_run()).id[-4:], 16)
    Repository(database, now=lambda: START, token=lambda: f"{number + 1:04x}").create_run(a_run())
    assert repository.create_run(a_run()).id == f"20261120-crafter-{number + 2:04x}"


def test_a_source_of_ids_that_repeats_itself_is_an_error_not_a_hang(database: Database) -> None:
    repository = Repository(database, now=lambda: START, token=lambda: "aaaa")
    repository.create_run(a_run())
    with pytest.raises(StorageError, match="No free run id"):
        repository.create_run(a_run())


@pytest.mark.parametrize(
    ("game", "slug"),
    [
        ("crafter", "crafter"),
        ("./games/my_game.py:Game", "game"),
        ("games/my game.py", "my-game"),
        ("Größe:Ÿ", "game"),
        ("a" * 90, "a" * 24),
        ("../../../etc", "etc"),
    ],
)
def test_a_run_id_is_made_of_letters_digits_and_dashes(game: str, slug: str) -> None:
    assert new_run_id(game, START, "7f3a") == f"20261120-{slug}-7f3a"


@given(st.text(max_size=60))
def test_a_run_id_fits_into_a_path_and_a_shell_whatever_the_game_is_called(game: str) -> None:
    assert re.fullmatch(r"20261120-[a-z0-9]+(-[a-z0-9]+)*-7f3a", new_run_id(game, START, "7f3a"))


def test_runs_are_listed_newest_first(repository: Repository) -> None:
    ids = [repository.create_run(a_run(game)).id for game in ("zoo", "crafter", "echo")]
    assert [run.id for run in repository.list_runs()] == ids[::-1]
    assert [run.id for run in repository.list_runs(limit=2)] == ids[:0:-1]


def test_a_run_is_found_by_as_much_of_its_id_as_is_needed(repository: Repository) -> None:
    crafter, echo = (repository.create_run(a_run(game)).id for game in ("crafter", "echo"))
    for name in (crafter, "20261120-c", "20261120-crafter", "7f3a"):
        assert repository.get_run(name).id == crafter
    assert repository.get_run("last").id == echo
    with pytest.raises(UsageError, match=f"Several runs match '2026': {echo}, {crafter}"):
        repository.get_run("2026")


def test_a_full_id_is_never_ambiguous(database: Database) -> None:
    tokens = iter(["7f3a", "7f3a0"])
    repository = Repository(database, now=lambda: START, token=lambda: next(tokens))
    short, long = (repository.create_run(a_run()).id for _ in range(2))
    assert long.startswith(short)
    assert repository.get_run(short).id == short


@pytest.mark.parametrize("name", ["", "%", "_", "nothing", "'; DROP TABLE run; --", "\x1b[31m"])
def test_a_name_that_no_run_has_is_unknown(repository: Repository, name: str) -> None:
    repository.create_run(a_run())
    with pytest.raises(UnknownNameError):
        repository.get_run(name)


def test_a_misspelt_run_gets_a_suggestion(repository: Repository) -> None:
    repository.create_run(a_run())
    with pytest.raises(UnknownNameError, match="Did you mean '20261120-crafter-7f3a'") as caught:
        repository.get_run("20261120-crafer-7f3a")
    assert caught.value.suggestions == ("20261120-crafter-7f3a",)


def test_without_any_run_the_message_says_where_to_look(repository: Repository) -> None:
    with pytest.raises(UnknownNameError, match="wsap runs"):
        repository.get_run("last")


def test_a_status_can_be_changed_without_a_writer(repository: Repository) -> None:
    run = repository.create_run(a_run())
    repository.set_status(run.id, RunStatus.FAILED, {"reason": "the game crashed"})
    changed = repository.get_run(run.id)
    assert (changed.status, changed.summary) == (RunStatus.FAILED, {"reason": "the game crashed"})
    assert changed.updated > run.updated
    with pytest.raises(UnknownNameError):
        repository.set_status("20261120-crafter-0000", RunStatus.FAILED)


@pytest.fixture
def run_id(database: Database, repository: Repository) -> str:
    """A run of 300 events: every tenth a snapshot, the seats in turn."""
    run = repository.create_run(a_run())
    with LogWriter(database, wall_clock=lambda: 1000.25) as log:
        for n in range(300):
            kind, body = ("snapshot", bytes([n % 256]) * 9) if n % 10 == 0 else ("step", f'{{"n":{n}}}')
            log.append(run.id, kind, body, seat="ab"[n % 2], step=n)  # type: ignore[arg-type]
    return run.id


def test_events_can_be_read_from_a_number_on_by_kind_and_by_seat(repository: Repository, run_id: str) -> None:
    def numbers(**how: object) -> list[int]:
        return [event.seq for event in repository.read_events(run_id, **how)]  # type: ignore[arg-type]

    assert numbers() == list(range(300))
    assert numbers(from_seq=123) == list(range(123, 300))
    assert numbers(from_seq=5, to_seq=9) == [5, 6, 7, 8]
    assert numbers(kinds=["snapshot"]) == list(range(0, 300, 10))
    assert numbers(kinds=["snapshot"], from_seq=95) == list(range(100, 300, 10))
    assert numbers(kinds=["snapshot", "step"], seat="b") == list(range(1, 300, 2))
    assert numbers(kinds=[]) == []
    assert numbers(from_seq=300) == []


def test_large_events_are_read_few_at_a_time(database: Database, repository: Repository) -> None:
    run = repository.create_run(a_run())
    with LogWriter(database) as log:
        for n in range(40):
            log.append(run.id, "snapshot", random.Random(n).randbytes(400_000))
    tracemalloc.start()
    try:
        assert sum(len(event.body) for event in repository.read_events(run.id)) == 16_000_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The first page, which knows nothing of the sizes yet, is the largest: 16 events.
    assert peak < 9_000_000


def test_the_last_event_of_a_kind_is_found(repository: Repository, run_id: str) -> None:
    last = repository.last_event(run_id)
    assert last is not None
    assert (last.seq, last.data) == (299, {"n": 299})
    snapshot = repository.last_event(run_id, "snapshot")
    assert snapshot is not None
    assert (snapshot.seq, snapshot.body) == (290, bytes([290 % 256]) * 9)
    step = repository.last_event(run_id, "step", seat="a")
    assert step is not None
    assert step.seq == 298
    assert repository.last_event(run_id, "death") is None


def test_events_are_counted(repository: Repository, run_id: str) -> None:
    assert repository.count_events(run_id) == 300
    assert repository.count_events(run_id, "snapshot") == 30
    assert repository.count_events("20261120-nothing-0000") == 0


def test_a_reader_sees_what_is_committed_while_it_reads(
    database: Database, repository: Repository, run_id: str
) -> None:
    events = repository.read_events(run_id)
    assert next(events).seq == 0
    with LogWriter(database) as log:
        log.append(run_id, "step", '{"n":300}')
    assert [event.seq for event in events][-1] == 300


def test_a_deleted_run_is_gone_with_its_events_and_others_stay(
    database: Database, repository: Repository, run_id: str
) -> None:
    other = repository.create_run(a_run("echo"))
    with LogWriter(database) as log:
        log.append(other.id, "step", "{}")
    repository.delete_run(run_id)
    assert [run.id for run in repository.list_runs()] == [other.id]
    assert repository.count_events(run_id) == 0
    assert repository.count_events(other.id) == 1
    with pytest.raises(UnknownNameError):
        repository.delete_run(run_id)


def test_a_long_run_is_deleted_in_pieces_between_which_others_write(
    database: Database, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wsap_nexus.store.repository._DELETED_AT_ONCE", 10)
    long = repository.create_run(a_run("echo"))
    with LogWriter(database) as log:
        for _ in range(35):
            log.append(long.id, "step", "{}")
    left: list[list[int]] = []
    database.fence = lambda connection: left.append([event.seq for event in repository.read_events(long.id)])
    with pytest.raises(UnknownNameError):
        repository.delete_run(long.id, "missing")
    assert left == []
    repository.delete_run(long.id)
    # Each transaction begins with the whole beginning of the run.
    assert left == [list(range(35)), list(range(25)), list(range(15)), list(range(5)), list(range(5))]
    assert repository.find_run(long.id) is None


def test_a_body_that_is_not_json_says_so(database: Database, repository: Repository, run_id: str) -> None:
    first = repository.last_event(run_id, "snapshot")
    assert first is not None
    with pytest.raises(StorageError, match="not JSON"):
        _ = first.data


def test_a_forged_body_is_damage_not_a_crash(database: Database, repository: Repository) -> None:
    run = repository.create_run(a_run())
    scenery = random.Random(1).randbytes(300).hex()
    with LogWriter(database) as log:
        for n in range(20):
            log.append(run.id, "step", f'{{"map":"{scenery}","n":{n}}}')
    import sqlalchemy
    import zstandard

    bomb = zstandard.ZstdCompressor().compress(bytes(1 << 29))
    for body, codec, complaint in (
        (b"\x28\xb5\x2f\xfdnonsense", "zstd", "damaged"),
        (b"", "zstd", "damaged"),
        (bomb, "zstd", "declared size is above"),
        (b"x", "lz77", "codec 'lz77'"),
    ):
        with database.write() as connection:
            connection.execute(
                sqlalchemy.text("UPDATE event SET body = :body, codec = :codec WHERE seq = 3"),
                {"body": body, "codec": codec},
            )
        with pytest.raises(StorageError, match=complaint):
            list(repository.read_events(run.id))
    with database.write() as connection:
        connection.execute(sqlalchemy.text("DELETE FROM dictionary"))
    with pytest.raises(StorageError, match="lacks its dictionary"):
        list(repository.read_events(run.id, from_seq=4))


# --- export ---------------------------------------------------------------------------------


def test_an_export_is_a_header_and_a_line_for_each_event(
    database: Database, repository: Repository, run_id: str
) -> None:
    repository.set_status(run_id, RunStatus.FINISHED, {"reward": 2.5})
    lines = [json.loads(line) for line in export_jsonl(repository, "last")]
    header, *events = lines
    assert header["format"] == "wsap-run"
    assert (header["run"], header["game"], header["status"], header["summary"]) == (
        run_id,
        "crafter",
        "finished",
        {"reward": 2.5},
    )
    assert [event["seq"] for event in events] == list(range(300))
    assert events[7] == {
        "run": run_id,
        "seq": 7,
        "kind": "step",
        "seat": "b",
        "episode": 0,
        "step": 7,
        "time": 1000.25,
        "body": {"n": 7},
    }
    assert base64.b64decode(events[20]["body_base64"]) == bytes([20]) * 9


def test_an_export_keeps_text_that_is_not_json_and_breaks_no_line(database: Database, repository: Repository) -> None:
    run = repository.create_run(a_run())
    with LogWriter(database) as log:
        log.append(run.id, "note", "not\njson \x1b[31m é")
        log.append(run.id, "note", '{"big": 1e999}')
    lines = list(export_jsonl(repository, run.id))
    assert all(line.isascii() and line.isprintable() for line in lines)
    assert json.loads(lines[1])["body_text"] == "not\njson \x1b[31m é"
    assert json.loads(lines[2])["body_text"] == '{"big": 1e999}'


def test_an_export_of_some_kinds_has_only_these(repository: Repository, run_id: str) -> None:
    kinds = [json.loads(line).get("kind") for line in export_jsonl(repository, run_id, kinds=["snapshot"])]
    assert kinds == [None] + ["snapshot"] * 30


def test_recorded_runs_are_the_kernels_run_reader(repository: Repository, run_id: str) -> None:
    reader: RunReader = RecordedRuns(repository)
    assert list(reader.runs()) == [run_id]
    events = list(reader.events(run_id))
    assert len(events) == 300
    assert events[1]["body"] == {"n": 1}
    repository.add_to_inbox(run_id, {"kind": "event"})
    assert list(reader.waiting(run_id)) == [{"kind": "event"}]


# --- places ---------------------------------------------------------------------------------


def test_the_home_folder_is_what_wsap_home_says(tmp_path: Path) -> None:
    assert home({"WSAP_HOME": str(tmp_path / "here")}) == tmp_path / "here"
    assert home({"WSAP_HOME": " "}) == home({})
    assert home({}).name == "wsap"
    assert home({"WSAP_HOME": "~/wild"}) == Path.home() / "wild"


def test_the_option_comes_before_the_variable_and_that_before_the_home(tmp_path: Path) -> None:
    environ = {"WSAP_HOME": str(tmp_path / "home"), "WSAP_DATABASE": str(tmp_path / "variable.db")}
    assert paths.database_location(str(tmp_path / "option.db"), environ) == str(tmp_path / "option.db")
    assert paths.database_location(None, environ) == str(tmp_path / "variable.db")
    assert paths.database_location(None, {"WSAP_HOME": str(tmp_path)}) == str(tmp_path / "wsap.db")
    assert paths.database_location("postgresql://host/name", environ) == "postgresql://host/name"


def test_the_home_folder_is_made_for_its_owner_alone_and_no_other_is(tmp_path: Path) -> None:
    environ = {"WSAP_HOME": str(tmp_path / "deep" / "home")}
    paths.prepare_home(str(tmp_path / "elsewhere" / "wsap.db"), environ)
    assert list(tmp_path.iterdir()) == []
    location = paths.database_location(None, environ)
    paths.prepare_home(location, environ)
    assert stat.S_IMODE((tmp_path / "deep" / "home").stat().st_mode) == 0o700
    Database.open(location).close()


def test_a_home_that_cannot_be_made_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    environ = {"WSAP_HOME": str(tmp_path / "file" / "home")}
    with pytest.raises(StorageReadOnlyError, match="WSAP_HOME"):
        paths.prepare_home(paths.database_location(None, environ), environ)


def test_kinds_that_are_seldom_are_found_by_an_index(repository: Repository, run_id: str) -> None:
    asked: list[tuple[str, Any]] = []

    def note(connection: object, cursor: object, statement: str, values: Any, *rest: object) -> None:
        if "FROM event" in statement:
            asked.append((statement, values))

    engine = repository.database.engine
    sqlalchemy.event.listen(engine, "before_cursor_execute", note)
    for kind in SELDOM:
        repository.last_event(run_id, kind)
        list(repository.read_events(run_id, kinds=(kind,)))
    sqlalchemy.event.remove(engine, "before_cursor_execute", note)
    assert len(asked) >= 2 * len(SELDOM)
    with repository.database.read() as connection:
        for statement, values in asked:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values).all()
            assert "USING INDEX event_seldom (run_id=? AND kind=?" in str(plan)
