"""The event log gives back what was appended, in order and byte for byte, and says when it can't."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import event

from wsap_core.errors import (
    StorageError,
    StorageFullError,
    StorageLockedError,
    StorageReadOnlyError,
    UnknownNameError,
)
from wsap_nexus.store.database import Database
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.records import NewRun, RunStatus
from wsap_nexus.store.repository import Repository


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "wsap.db") as database:
        yield database


@pytest.fixture
def repository(database: Database) -> Repository:
    return Repository(database)


@pytest.fixture
def run_id(repository: Repository) -> str:
    return repository.create_run(NewRun(game="crafter", agent="random", seed=7)).id


def noise(n: int) -> bytes:
    """Bytes that no compressor makes smaller."""
    import random

    return random.Random(n).randbytes(4000)


def test_events_come_back_in_order_with_everything_that_was_said_of_them(
    database: Database, repository: Repository, run_id: str
) -> None:
    times = iter([100.5, 101.5, 102.5])
    with LogWriter(database, wall_clock=lambda: next(times)) as log:
        assert log.append(run_id, "episode", '{"seed":7}') == 0
        assert log.append(run_id, "step", '{"reward":1}', seat="alice", episode=2, step=31) == 1
        assert log.append(run_id, "snapshot", b"\x00\xff\x00") == 2
    first, second, third = repository.read_events(run_id)
    assert (first.seq, first.kind, first.seat, first.episode, first.step, first.time) == (
        0,
        "episode",
        None,
        0,
        None,
        100.5,
    )
    assert (second.seq, second.kind, second.seat, second.episode, second.step) == (1, "step", "alice", 2, 31)
    assert second.data == {"reward": 1}
    assert second.is_text
    assert third.body == b"\x00\xff\x00"
    assert not third.is_text


def test_an_event_is_committed_once_flush_has_returned(database: Database, run_id: str) -> None:
    with LogWriter(database, delay=3600) as log:
        log.append(run_id, "step", "{}")
        log.append(run_id, "step", "{}")
        log.flush()
        assert log.committed(run_id) == 1
        # Seen by a connection that has nothing to do with ours.
        with sqlite3.connect(database.where) as other:
            assert other.execute("SELECT count(*) FROM event").fetchone() == (2,)
        other.close()


def test_a_full_group_is_committed_though_nobody_asks_and_the_delay_is_long(database: Database, run_id: str) -> None:
    committed = threading.Event()
    with LogWriter(database, delay=3600, group=4) as log:

        def wait_for_a_commit() -> None:
            with sqlite3.connect(database.where) as other:
                while not other.execute("SELECT count(*) FROM event").fetchone()[0]:
                    pass
            other.close()
            committed.set()

        threading.Thread(target=wait_for_a_commit, daemon=True).start()
        for _ in range(4):
            log.append(run_id, "step", "{}")
        assert committed.wait(timeout=300)


def test_numbers_go_on_where_an_earlier_writer_stopped(database: Database, repository: Repository, run_id: str) -> None:
    for first in (0, 10, 20):
        with LogWriter(database) as log:
            assert [log.append(run_id, "step", f'{{"n":{first + n},"pad":"{"x" * 99}"}}') for n in range(10)] == list(
                range(first, first + 10)
            )
    assert [event.data["n"] for event in repository.read_events(run_id)] == list(range(30))


def test_runs_are_numbered_each_by_itself(database: Database, repository: Repository, run_id: str) -> None:
    other = repository.create_run(NewRun(game="echo", agent="random")).id
    with LogWriter(database) as log:
        assert [log.append(run, "step", "{}") for run in (run_id, other, run_id, other, other)] == [0, 0, 1, 1, 2]
    assert repository.count_events(run_id) == 2
    assert repository.count_events(other) == 3


def test_a_run_that_has_ended_takes_no_memory_and_can_be_continued(database: Database, repository: Repository) -> None:
    text = [f'{{"seen":"{"the same meadow " * 9}","step":{n}}}' for n in range(24)]
    runs = [repository.create_run(NewRun(game="crafter", agent="random")).id for _ in range(30)]
    with LogWriter(database) as log:
        for run in runs:
            for body in text[:12]:
                log.append(run, "step", body)
            log.set_status(run, RunStatus.FINISHED)
        log.flush()
        held = (log._next, log._committed, log._encoder._streams, log._encoder._numbers)
        assert not any(held), held
        assert log.committed(runs[0]) == 11
        assert [log.append(runs[0], "step", body) for body in text[12:]] == list(range(12, 24))
        log.flush()
        assert log.committed(runs[0]) == 23
    assert [event.body.decode() for event in repository.read_events(runs[0])] == text


def test_threads_may_append_to_one_run(database: Database, repository: Repository, run_id: str) -> None:
    with LogWriter(database, group=16) as log:

        def play(seat: str) -> None:
            for n in range(300):
                log.append(run_id, "step", f'{{"n":{n}}}', seat=seat, step=n)

        threads = [threading.Thread(target=play, args=(seat,)) for seat in ("a", "b", "c")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    events = list(repository.read_events(run_id))
    assert [event.seq for event in events] == list(range(900))
    for seat in ("a", "b", "c"):
        assert [event.step for event in events if event.seat == seat] == list(range(300))


@pytest.mark.every_database
def test_what_is_still_told_of_a_run_that_was_deleted_goes_with_it_and_other_runs_go_on(
    database: Database, repository: Repository, run_id: str
) -> None:
    other = repository.create_run(NewRun(game="echo", agent="random")).id
    with LogWriter(database) as log:
        for run in (run_id, other):
            log.append(run, "step", "{}")
        log.flush()
        repository.delete_run(run_id)
        for run in (run_id, other):
            log.append(run, "step", "{}")
            log.set_status(run, RunStatus.FINISHED)
        log.flush()
    assert [event.seq for event in repository.read_events(run_id)] == []
    assert [event.seq for event in repository.read_events(other)] == [0, 1]
    assert repository.get_run(other).status == RunStatus.FINISHED


def test_a_status_is_committed_after_the_events_before_it(
    database: Database, repository: Repository, run_id: str
) -> None:
    with LogWriter(database) as log:
        log.append(run_id, "end", "{}")
        log.set_status(run_id, RunStatus.FINISHED, {"score": 1.5})
        log.flush()
        run = repository.get_run(run_id)
        assert (run.status, run.summary) == (RunStatus.FINISHED, {"score": 1.5})
        log.set_status(run_id, RunStatus.RUNNING)
    run = repository.get_run(run_id)
    assert (run.status, run.summary) == (RunStatus.RUNNING, {"score": 1.5})


def test_a_run_is_updated_when_its_events_are_committed(
    database: Database, repository: Repository, run_id: str
) -> None:
    with LogWriter(database, wall_clock=lambda: 4102444800.0) as log:
        log.append(run_id, "step", "{}")
    assert repository.get_run(run_id).updated == "2100-01-01T00:00:00+00:00"


def test_appending_to_an_unknown_run_is_refused_and_names_the_close_ones(database: Database, run_id: str) -> None:
    with LogWriter(database) as log, pytest.raises(UnknownNameError, match=run_id):
        log.append(run_id + "x", "step", "{}")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"kind": ""}, "its kind must be"),
        ({"kind": "x" * 201}, "its kind must be"),
        ({"kind": "bell\x07"}, "its kind must be"),
        ({"seat": "nul\x00"}, "its seat must be"),
        ({"episode": -1}, "its episode must be a number from 0"),
        ({"step": -5}, "its step must be a number from 0"),
        ({"step": 1.5}, "its step must be a number from 0"),
        ({"body": {"a": 1}}, "its body is a dict"),
        ({"body": "\ud800"}, "unpaired surrogate"),
    ],
)
def test_an_event_out_of_range_is_refused_and_harms_nothing(
    database: Database, repository: Repository, run_id: str, arguments: dict[str, object], complaint: str
) -> None:
    with LogWriter(database) as log:
        log.append(run_id, "step", "1")
        with pytest.raises(StorageError, match=complaint):
            log.append(run_id, **{"kind": "step", "body": "2", **arguments})  # type: ignore[arg-type]
        log.append(run_id, "step", "3")
    assert [(event.seq, event.data) for event in repository.read_events(run_id)] == [(0, 1), (1, 3)]


def test_a_closed_log_takes_nothing_more(database: Database, run_id: str) -> None:
    log = LogWriter(database)
    log.append(run_id, "step", "{}")
    log.close()
    log.close()
    with pytest.raises(StorageError, match="closed"):
        log.append(run_id, "step", "{}")


def test_a_database_opened_for_reading_gets_no_writer(tmp_path: Path, database: Database) -> None:
    with Database.open(tmp_path / "wsap.db", read_only=True) as reading, pytest.raises(StorageReadOnlyError):
        LogWriter(reading)


class Interrupted(LogWriter):
    """A log whose caller presses Ctrl-C while an event is being handed over."""

    strike: str | None = None

    def _add(self, item: Any, size: int) -> None:
        if self.strike == "before":
            raise KeyboardInterrupt
        super()._add(item, size)
        if self.strike == "after":
            raise KeyboardInterrupt


@pytest.mark.parametrize(("strike", "expected"), [("before", [0, 1]), ("after", [0, 7, 1])])
def test_an_interrupt_leaves_no_gap_and_gives_no_number_twice(
    database: Database, repository: Repository, run_id: str, strike: str, expected: list[int]
) -> None:
    with Interrupted(database) as log:
        log.append(run_id, "step", "0")
        log.strike = strike
        with pytest.raises(KeyboardInterrupt):
            log.append(run_id, "step", "7")
        log.strike = None
        log.append(run_id, "step", "1")
        log.flush()
        events = list(repository.read_events(run_id))
    assert [event.data for event in events] == expected
    assert [event.seq for event in events] == list(range(len(expected)))


def test_when_the_disk_is_full_the_caller_is_told_and_what_was_recorded_is_kept(
    database: Database, repository: Repository, run_id: str
) -> None:
    with database.read() as empty:
        pages = empty.exec_driver_sql("PRAGMA page_count").scalar_one()

    @event.listens_for(database.engine, "connect")
    def limit_size(connection: sqlite3.Connection, _record: object) -> None:
        # 50 pages, a few hundred kB, beside the empty tables: SQLite then says that the disk is full.
        connection.execute(f"PRAGMA max_page_count = {pages + 50}")

    database.engine.dispose()
    appended: list[int] = []
    log = LogWriter(database, group=8)

    def record() -> None:
        while len(appended) < 1000:
            appended.append(log.append(run_id, "step", noise(len(appended))))
            if len(appended) % 8 == 0:
                log.flush()

    with pytest.raises(StorageFullError, match="Free some space, then try again"):
        record()
    with pytest.raises(StorageFullError):
        log.append(run_id, "step", "{}")
    with pytest.raises(StorageFullError):
        log.flush()
    committed = log.committed(run_id)
    log.close()
    assert 8 < committed < len(appended)
    events = list(repository.read_events(run_id))
    assert [event.body for event in events] == [noise(n) for n in range(committed + 1)]

    # Room is made; the run goes on with the next number.
    event.remove(database.engine, "connect", limit_size)
    database.engine.dispose()
    with LogWriter(database) as log:
        assert log.append(run_id, "step", "{}") == committed + 1


@pytest.mark.slow
def test_closing_tells_of_a_failure_that_nobody_has_heard_of(database: Database, run_id: str) -> None:
    log = LogWriter(database, busy_seconds=0, delay=3600)
    with holding_the_lock(database):
        log.append(run_id, "step", "{}")
        with pytest.raises(StorageLockedError, match="in use by another process"):
            log.close()


@pytest.mark.slow
def test_a_failure_in_the_body_of_the_with_statement_is_not_hidden_by_the_logs(database: Database, run_id: str) -> None:
    def play() -> None:
        with LogWriter(database, busy_seconds=0, delay=3600) as log:
            log.append(run_id, "step", "{}")
            raise KeyError("mine")

    with holding_the_lock(database), pytest.raises(KeyError):
        play()


def test_two_writers_of_one_run_are_told_apart_and_the_first_wins(
    database: Database, repository: Repository, run_id: str
) -> None:
    first, second = LogWriter(database), LogWriter(database)
    first.append(run_id, "step", '"first"')
    second.append(run_id, "step", '"second"')
    first.flush()
    with pytest.raises(StorageError, match="Another process is recording the same run"):
        second.flush()
    second.close()
    first.append(run_id, "step", '"first again"')
    first.close()
    assert [event.data for event in repository.read_events(run_id)] == ["first", "first again"]


def test_a_caller_faster_than_the_disk_waits_instead_of_filling_the_memory(
    database: Database, repository: Repository, run_id: str
) -> None:
    limit, total = 10, 200
    done: list[int] = []
    log = LogWriter(database, limit=limit)

    def play() -> None:
        for _ in range(total):
            done.append(log.append(run_id, "step", "{}"))  # noqa: PERF401  # counted while it runs

    thread = threading.Thread(target=play)
    with holding_the_lock(database):
        thread.start()
        thread.join(timeout=0.2)  # long enough to run out of room; the check below holds at any time
        # What waits, and what the writer has taken in hand.
        assert len(done) <= 2 * limit
    thread.join()
    log.close()
    assert done == list(range(total))
    assert repository.count_events(run_id) == total


class holding_the_lock:  # noqa: N801
    """Another program that is writing to the database, for as long as the block lasts."""

    def __init__(self, database: Database) -> None:
        self._where = database.where

    def __enter__(self) -> None:
        self._connection = sqlite3.connect(self._where, isolation_level=None)
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        self._connection.execute("ROLLBACK")
        self._connection.close()


BODIES = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=300),
    st.binary(max_size=300),
    # Long and alike, as observations are: this is what dictionaries are for.
    st.integers(0, 10_000).map(lambda n: f'{{"map":"{"#~.T" * 60}","step":{n}}}'),
)


class AnEventLog(RuleBasedStateMachine):
    """Whatever is appended, flushed and reopened: what is read is what was appended."""

    def __init__(self) -> None:
        super().__init__()
        import tempfile

        self._folder = tempfile.TemporaryDirectory()
        self.database = Database.open(Path(self._folder.name) / "wsap.db")
        self.repository = Repository(self.database)
        self.written: dict[str, list[tuple[str, str | None, str | bytes]]] = {}
        self.log = LogWriter(self.database, group=3)

    @initialize()
    def some_runs(self) -> None:
        for game in ("crafter", "echo"):
            self.written[self.repository.create_run(NewRun(game=game, agent="a")).id] = []

    @rule(
        run=st.integers(0, 1),
        kind=st.sampled_from(["step", "snapshot"]),
        seat=st.sampled_from([None, "a"]),
        body=BODIES,
    )
    def append(self, run: int, kind: str, seat: str | None, body: str | bytes) -> None:
        run_id = list(self.written)[run]
        assert self.log.append(run_id, kind, body, seat=seat) == len(self.written[run_id])
        self.written[run_id].append((kind, seat, body))

    @rule()
    def flush(self) -> None:
        self.log.flush()
        for run_id, events in self.written.items():
            if events:
                assert self.log.committed(run_id) in (len(events) - 1, -1)

    @rule()
    def reopen(self) -> None:
        self.log.close()
        self.log = LogWriter(self.database, group=3)

    @invariant()
    def what_is_committed_is_a_beginning_of_what_was_appended(self) -> None:
        for run_id, events in self.written.items():
            read = [
                (event.kind, event.seat, event.body.decode() if event.is_text else event.body)
                for event in self.repository.read_events(run_id)
            ]
            assert read == events[: len(read)]

    def teardown(self) -> None:
        self.log.close()
        for run_id, events in self.written.items():
            assert self.repository.count_events(run_id) == len(events)
        self.database.close()
        self._folder.cleanup()


TestAnEventLog = AnEventLog.TestCase
TestAnEventLog.settings = settings(
    max_examples=8, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def test_a_run_made_with_its_events_is_committed_with_them_and_comes_back_as_one_made_before(
    database: Database, repository: Repository
) -> None:
    given = NewRun(game="crafter", agent="random", seed=7, step_limit=3, id="mine", config={"b": [1, None], "a": {}})
    with LogWriter(database, delay=600) as log:
        log.create(repository.columns_of(given))
        log.append("mine", "step", '{"reward":1}')
        assert not repository.has_run("mine")
        log.set_status("mine", RunStatus.FINISHED, {"steps": 1})
        log.flush()
        assert [event.body for event in repository.read_events("mine")] == [b'{"reward":1}']
    made, before = repository.get_run("mine"), repository.create_run(replace(given, id="other"))
    assert (made.status, made.summary) == (RunStatus.FINISHED, {"steps": 1})
    assert made.updated >= made.created
    again = replace(
        made, id="other", status=before.status, summary=None, created=before.created, updated=before.updated
    )
    assert again == before


@pytest.mark.every_database
def test_a_run_made_with_its_events_goes_on_in_later_commits(database: Database, repository: Repository) -> None:
    with LogWriter(database) as log:
        for name in ("one", "two"):
            log.create(repository.columns_of(NewRun(game="crafter", agent="random", id=name)))
            assert log.append(name, "episode", "{}") == 0
        log.flush()
        assert [repository.get_run(name).status for name in ("one", "two")] == [RunStatus.RUNNING] * 2
        assert log.append("one", "step", "{}") == 1
        log.set_status("one", RunStatus.INTERRUPTED, {"steps": 1})
    assert [repository.get_run(name).status for name in ("one", "two")] == [RunStatus.INTERRUPTED, RunStatus.RUNNING]
    assert repository.count_events("one") == 2


def test_a_run_out_of_range_is_refused_before_it_is_queued(repository: Repository) -> None:
    with pytest.raises(StorageError, match="its seed is invalid"):
        repository.columns_of(NewRun(game="crafter", agent="random", seed=-1, id="mine"))
