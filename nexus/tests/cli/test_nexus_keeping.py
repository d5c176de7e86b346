"""`wsap nexus backup`, `restore` and `prune`; and what `wsap runs` makes of what a nexus plays."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cli_nexus_kit import environ_of, nexus, nexus_json, refused, running, until, wsap
from life_kit import recounted

from wsap_core.errors import StorageError
from wsap_nexus.agents.metagoals import MetaGoal, Requirement, pursuits, set_goal
from wsap_nexus.cli.nexus.status import growth_lines
from wsap_nexus.hub.context import LiveState
from wsap_nexus.hub.upkeep.storage import StorageReport, StorageWatch
from wsap_nexus.runs.store import Store
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import EntryRequest, SkillGain
from wsap_nexus.store.events import OtherEvent
from wsap_nexus.store.events.agents import DiaryWritten
from wsap_nexus.store.events.sessions import Entered, Left
from wsap_nexus.store.log.eventlog import LogWriter
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.records import NewRun, RunStatus
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.upkeep.backup import back_up, restore
from wsap_nexus.store.upkeep.prune import DAY, measure, prune
from wsap_nexus.store.upkeep.room import used_bytes


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return environ_of(tmp_path / "home")


# --- copies -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_copy_made_while_the_nexus_runs_is_whole_and_can_be_gone_on_with(
    environ: dict[str, str], tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    with running(environ) as hub:
        before = hub.someone_was_away()
        told = nexus_json(environ, "backup", str(copy))
        assert told["bytes"] == copy.stat().st_size
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        code, sentence = refused(environ, "restore", str(copy), "--yes")
        assert (code, "wsap nexus stop" in sentence) == (6, True)
        code, sentence = refused(environ, "backup", str(copy))
        assert (code, "--force" in sentence) == (2, True)
        hub.tell(signal.SIGTERM)
        assert hub.ended()[0] == 0
    left = nexus_json(environ, "status")
    told = nexus_json(environ, "restore", str(copy))
    assert before["events"] <= nexus_json(environ, "status")["events"] <= left["events"]
    assert nexus_json(environ, "status", "--database", told["kept"])["events"] == left["events"]
    with running(environ) as hub:
        assert hub.answering()


@pytest.mark.slow
def test_a_copy_is_of_one_moment_while_others_write(tmp_path: Path) -> None:
    with Database.open(tmp_path / "a.db") as database:
        nexus_store = NexusStore(database)
        with nexus_store.change() as tx:
            for _ in range(3000):
                tx.note(OtherEvent(kind="filler", data={"text": "x" * 4000}))
        done = threading.Event()

        def write() -> None:
            number = 0
            while not done.is_set():
                with nexus_store.change() as tx:  # always two, or none
                    number += 1
                    tx.note(OtherEvent(kind="pair", data={"number": number}))
                    tx.note(OtherEvent(kind="pair", data={"number": number}))

        writer = threading.Thread(target=write)
        writer.start()
        try:
            told: list[tuple[int, int]] = []
            back_up(database, tmp_path / "b.db", progress=lambda d, o: told.append((d, o)))
        finally:
            done.set()
            writer.join()
        assert len(told) > 1, "it went in several parts, with writing in between"
        assert told[-1][0] == told[-1][1]
    with Database.open(tmp_path / "b.db", read_only=True) as copied, NexusStore(copied).look() as tx:
        pairs = [e.body["number"] for e in tx.events(kinds=("pair",), limit=10**6)]
    assert pairs == [n for n in range(1, len(pairs) // 2 + 1) for _ in (1, 2)]
    assert sorted(p.name for p in tmp_path.glob("b.db*")) == ["b.db"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    with Database.open(tmp_path / "a.db") as database:
        with NexusStore(database).change() as tx:
            tx.register("ada")
        yield database


def test_what_is_no_copy_is_refused_and_changes_nothing(store: Database, tmp_path: Path) -> None:
    where = tmp_path / "a.db"
    back_up(store, tmp_path / "b.db")
    store.close()
    whole = (tmp_path / "b.db").read_bytes()
    sqlite3.connect(tmp_path / "other.db").execute("CREATE TABLE t (x)").connection.close()
    (tmp_path / "torn.db").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "broken.db").write_bytes(whole[:8192] + os.urandom(8192) + whole[16384:])
    (tmp_path / "text.db").write_text("no database")
    (tmp_path / "empty.db").touch()
    for name, words in {
        "trigger": "TRIGGER t AFTER INSERT ON letter BEGIN DELETE FROM agent; END",
        "view": "VIEW v AS SELECT 1",
        "virtual": "VIRTUAL TABLE v USING fts5(x)",
    }.items():
        (tmp_path / f"{name}.db").write_bytes(whole)
        sqlite3.connect(tmp_path / f"{name}.db").execute(f"CREATE {words}").connection.close()
    os.mkfifo(tmp_path / "pipe.db")
    before = where.read_bytes()
    for name in ("other", "torn", "broken", "text", "empty", "trigger", "view", "virtual", "pipe", "missing", "a"):
        with pytest.raises(Exception, match=r"^[A-Z].*[.]$") as refusal:
            restore(tmp_path / f"{name}.db", where)
        assert "\n" not in str(refusal.value)
        assert where.read_bytes() == before
    assert not list(tmp_path.glob("*.before-*"))
    assert not list(tmp_path.glob("*.restoring*"))


def test_what_was_there_is_kept_and_nothing_is_written_over(store: Database, tmp_path: Path) -> None:
    back_up(store, tmp_path / "b.db")
    store.close()
    moment = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
    first = restore(tmp_path / "b.db", tmp_path / "a.db", now=moment)
    second = restore(tmp_path / "b.db", tmp_path / "a.db", now=moment)
    assert first is not None
    assert second is not None
    assert first != second
    for path in (first, second, tmp_path / "a.db"):
        with Database.open(path, read_only=True) as database, NexusStore(database).look() as tx:
            assert [a.id for a in tx.agents()] == ["ada"]
    assert restore(tmp_path / "b.db", tmp_path / "new.db") is None


def test_a_copy_that_cannot_be_written_leaves_nothing(store: Database, tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        back_up(store, tmp_path / "no" / "such" / "folder.db")
    assert sorted(p.name for p in tmp_path.iterdir() if "partial" in p.name) == []


# --- forgetting -------------------------------------------------------------------------------


def long_ago(database: Path, days: int) -> None:
    """Make everything in a database older by some days, as a clock that is wrong by as much does."""
    with sqlite3.connect(database) as connection:
        connection.execute(f"UPDATE nexus_event SET time = time - {days * 86400}")
        connection.execute(f"UPDATE counter SET value = value - {days * 1440} WHERE name IN ('clock', 'pruned')")
        for table, columns in {
            "run": ("created", "updated"), "session": ("opened", "closed"), "transfer": ("created",),
            "world": ("created",),
        }.items():  # fmt: skip
            for column in columns:
                connection.execute(
                    f"UPDATE {table} SET {column} = strftime('%Y-%m-%dT%H:%M:%f', {column}, '-{days} days') || '+00:00'"
                    f" WHERE {column} IS NOT NULL"
                )
    connection.close()


def recorded(database: Path) -> tuple[set[str], int]:
    """The recordings, and the number of the oldest event."""
    with Database.open(database, read_only=True) as opened:
        runs = {run.id for run in Repository(opened).list_runs()}
        with NexusStore(opened).look() as tx:
            return runs, tx.events(limit=1)[0].seq


@pytest.mark.slow
def test_a_start_long_after_the_last_one_deletes_nothing_and_says_so(environ: dict[str, str], tmp_path: Path) -> None:
    with running(environ) as hub:
        database = Path(hub.someone_was_away()["database"])
        assert hub.status()["undeleted"] is None
        hub.tell(signal.SIGTERM)
        assert hub.ended()[0] == 0
    long_ago(database, 400)
    before = recorded(database)
    with running(environ) as hub:
        said = until(lambda: hub.status()["undeleted"], "the sentence")
        assert said.startswith("Nothing is deleted by age: the clock says ")
        assert said in nexus(environ, "status")
        kept = recorded(database)
        assert before[0] <= kept[0]
        assert before[1] == kept[1]
        assert "older than 90 days (before 20" in nexus(environ, "prune")
        hub.tell(signal.SIGTERM)
        code, errors = hub.ended()
        assert code == 0
        assert said in errors, "the terminal says it, too"
    with running(environ) as hub:
        assert hub.someone_was_away()["undeleted"] is None
    assert len(before[0] & recorded(database)[0]) <= 2, "what the two agents played then"


@dataclass
class Clock:
    """A wall clock that is set by hand."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Past:
    """A nexus that was lived in long ago and of late."""

    def __init__(self, database: Database) -> None:
        self.clock = Clock()
        self.database = database
        self.nexus_store = NexusStore(database, wall_clock=self.clock)
        self.repository = Repository(database, now=lambda: datetime.fromtimestamp(self.clock.now, UTC))

    def run(self, game: str, seat: str, status: RunStatus, body: bytes = b"{}") -> str:
        config = {"seats": [{"name": seat, "agent": "random"}]}
        name = self.repository.create_run(NewRun(game=game, agent="random", config=config)).id
        with LogWriter(self.database, wall_clock=self.clock) as writer:
            for _ in range(3):
                writer.append(name, "step", body, episode=0)
        self.repository.set_status(name, status)
        return name

    def stay(self, agent: str, *, closed: bool, body: bytes = b"{}") -> str:
        name = self.run("crafter", agent, RunStatus.FINISHED if closed else RunStatus.RUNNING, body)
        with self.nexus_store.change() as tx:
            world = tx.add_world("crafter", agent, 1, {})
            session = tx.open_session(agent, "crafter", world.id, "body", name, EntryRequest())
            tx.note(Entered(agent_id=agent, game="crafter", session_id=session.id))
            if closed:
                tx.close_session(session.id, reason="finished", steps=3, stats={})
                tx.note(Left(agent_id=agent, game="crafter", session_id=session.id, steps=3, done={}))
        return name

    def runs(self) -> set[str]:
        return {run.id for run in self.repository.list_runs()}

    def kinds(self) -> list[str]:
        with self.nexus_store.look() as tx:
            return [event.kind for event in tx.events(limit=10**6)]


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    with Database.open(tmp_path / "a.db") as database:
        yield Past(database)


def test_what_is_old_goes_and_what_is_needed_stays(past: Past) -> None:
    with past.nexus_store.change() as tx:
        for name in ("ada", "bob", "cleo"):
            tx.register(name)
        tx.add_gain("ada", "crafter", "s", SkillGain("crafting", "action:make", 1, 0.1, 0.1))
        tx.add_gain("ada", "crafter", "s", SkillGain("crafting", "action:make", 1, 0.1, 0.2))
        tx.note(DiaryWritten(agent_id="ada", text="A good day.", own_words=True))
    own = past.run("crafter", "row", RunStatus.FINISHED)
    old_visit, old_stay = past.run("nexus", "ada", RunStatus.FINISHED), past.stay("ada", closed=True)
    killed_visit = past.run("nexus", "cleo", RunStatus.RUNNING)
    past.clock.now += DAY
    open_stay = past.stay("bob", closed=False)
    open_visit = past.run("nexus", "cleo", RunStatus.RUNNING)
    past.clock.now += 50 * DAY
    new_visit, new_stay = past.run("nexus", "ada", RunStatus.FINISHED), past.stay("ada", closed=True)
    told = measure(past.database, 30, now=past.clock.now)
    done = prune(past.database, 30, now=past.clock.now)
    assert told == done
    assert (done.runs, done.run_events) == (3, 9)
    assert past.runs() == {own, open_stay, open_visit, new_visit, new_stay}
    assert past.runs().isdisjoint({old_visit, old_stay, killed_visit})
    with past.nexus_store.look() as tx:
        assert len(tx.sessions()) == 3, "the record of every stay is kept"
        assert tx.skills("ada") == {"crafting": 0.2}
        gains = [e.body["level"] for e in tx.events(kinds=("skill_gained",))]
    assert gains == [0.2]
    # The open stay's event is as old as those that went.
    assert sorted(past.kinds()) == sorted(
        ["agent_registered"] * 3 + ["skill_gained", "diary", "entered", "entered", "left", "pruned"]
    )
    assert not prune(past.database, 30, now=past.clock.now).anything


def test_at_a_size_limit_the_oldest_goes_first_and_no_more_than_has_to(past: Past) -> None:
    with past.nexus_store.change() as tx:
        tx.register("ada")
        tx.register("bob")
    body = os.urandom(100_000)
    stays = []
    for _ in range(6):
        stays.append(past.stay("ada", closed=True, body=body))
        past.clock.now += DAY
    opened = past.stay("bob", closed=False, body=body)
    whole = used_bytes(past.database)
    done = prune(past.database, 0.0, limit=whole - 500_000, now=past.clock.now)
    assert past.runs() == {*stays[2:], opened}
    assert (done.runs, done.nexus_events) == (2, 0)
    assert used_bytes(past.database) <= whole - 500_000
    # What is still needed stays, however small the limit.
    prune(past.database, 0.0, limit=1, now=past.clock.now)
    assert past.runs() == {opened}


def test_growth_is_measured_beside_what_is_deleted_and_says_how_long_the_room_lasts(past: Past) -> None:
    with past.nexus_store.change() as tx:
        tx.register("ada")
    hours = [0.0]
    with LogWriter(past.database) as writer:
        store = Store(past.database, past.repository, writer)
        storage = StorageWatch(store, past.nexus_store, LiveState(), 10**8, now=lambda: hours[0] * 3600)
        storage.measure()
        assert storage.report().growth is None
        for _ in range(4):
            past.stay("ada", closed=True, body=os.urandom(250_000))  # three of them an hour
            hours[0] += 1
            storage.measure()
        past.clock.now += DAY
        prune(past.database, 0.5, now=past.clock.now)
        hours[0] += 0.01
        storage.measure()
    found = storage.report()
    assert found.growth == pytest.approx(24 * 750_000, rel=0.05)
    assert found.left == pytest.approx((10**8 - found.bytes) / found.growth)


@pytest.mark.parametrize(
    ("growth", "limit", "size", "free", "line"),
    [
        (None, None, 10**6, 10**9, "Its growth is not known yet; it is measured for the first minutes."),
        (0.0, None, 10**6, 10**9, "It grows by 0 B a day."),
        (5e8, None, 10**6, 10**9, "It grows by 500.0 MB a day; its disk will be full in 2 days."),
        (5e8, 10**9, 10**6, 10**11,
         "It grows by 500.0 MB a day and reaches its limit of 1.0 GB in 1 day; then old data is deleted."),
        (5e8, 10**9, 10**6, 10**8, "It grows by 500.0 MB a day; its disk will be full in 4 hours."),
        (5e8, 10**9, 96 * 10**7, 10**11, "It grows by 500.0 MB a day; it is at its limit of 1.0 GB."),
        (5e8, 10**9, 11 * 10**8, 10**11, ("It grows by 500.0 MB a day; it is at its limit of 1.0 GB, "
         "which it exceeds, as the remaining data is still needed.")),
        (5e8, None, 10**6, None, "It grows by 500.0 MB a day."),
    ],
)  # fmt: skip
def test_status_says_in_one_sentence_how_it_grows(
    growth: float | None, limit: int | None, size: int, free: int | None, line: str
) -> None:
    assert growth_lines(StorageReport(size, growth, free, limit).to_json()) == [line]


def test_after_a_restore_nothing_gets_a_number_that_was_given_since_the_copy(tmp_path: Path) -> None:
    where = tmp_path / "a.db"

    def live(database: Database) -> tuple[int, str, str, str]:
        past = Past(database)
        with past.nexus_store.change() as tx:
            world = tx.add_world("crafter", "ada", 1, {}).id
            number = tx.next_number("session")
            seq = tx.note(OtherEvent(kind="lived"))
        return seq, f"session-{number}", world, past.run("crafter", "ada", RunStatus.FINISHED)

    with Database.open(where) as database:
        with NexusStore(database).change() as tx:
            tx.register("ada")
        first = live(database)
        back_up(database, tmp_path / "copy.db")
        given = [first, *(live(database) for _ in range(5))]
    restore(tmp_path / "copy.db", where)
    with Database.open(where) as database:
        with NexusStore(database).look() as tx:
            assert tx.last_seq() == first[0]
        given += [live(database) for _ in range(3)]
    assert [len(set(each)) for each in zip(*given, strict=True)] == [9] * 4
    assert [seq for seq, *_ in given] == sorted(seq for seq, *_ in given)
    # What can't be read any more is no reason not to put a copy in its place.
    where.write_bytes(b"SQLite format 3\x00" + os.urandom(8192))
    restore(tmp_path / "copy.db", where)
    with Database.open(where) as database:
        live(database)


def test_progress_towards_a_goal_is_the_same_after_pruning(past: Past) -> None:
    goal = MetaGoal("there", "Go there three times", (Requirement("visit_game", count=3),))
    with past.nexus_store.change() as tx:
        tx.register("ada")
    past.stay("ada", closed=True)
    with past.nexus_store.change() as tx:
        tx.note(OtherEvent(kind="before", agent_id="ada"))
        set_goal(tx, "ada", goal, ["crafter"])
    past.stay("ada", closed=True)
    past.clock.now += 100 * DAY
    past.stay("ada", closed=True)
    with past.nexus_store.look() as tx:
        (before,) = pursuits(tx, "ada")
        counted = recounted(tx, "ada", before)
    assert prune(past.database, 30, now=past.clock.now).nexus_events
    assert "before" not in past.kinds()
    with past.nexus_store.look() as tx:
        (after,) = pursuits(tx, "ada")
        assert recounted(tx, "ada", after) == counted


@pytest.mark.slow
def test_pruning_at_the_command_line_says_what_and_how_large_and_zero_days_keep_all(environ: dict[str, str]) -> None:
    with running(environ) as hub:
        hub.someone_was_away()
        assert nexus_json(environ, "prune", "--keep-days", "0")["nexus_events"] == 0
        assert "0 keeps everything" in nexus(environ, "prune", "--keep-days", "0")
        would = nexus_json(environ, "prune", "--all", "--dry-run")
        assert would["nexus_events"] > 0
        assert would["bytes"] > 0
        assert nexus_json(environ, "prune", "--all")["nexus_events"] > 0
        assert hub.answering(), "it goes on meanwhile"
        hub.tell(signal.SIGTERM)
        assert hub.ended()[0] == 0
    assert "Nothing is older than 3000 days." in nexus(environ, "prune", "--keep-days", "3000")
    assert "Nothing is older than 1 day." in nexus(environ, "prune", "--keep-days", "1")
    before = nexus_json(environ, "status")["bytes"]
    assert nexus_json(environ, "prune", "--all")["compacted"]
    assert nexus_json(environ, "status")["bytes"] <= before
    with running(environ) as hub:
        assert hub.answering()


# --- the list of runs -------------------------------------------------------------------------


@pytest.mark.slow
def test_runs_of_the_nexus_are_listed_only_where_they_are_asked_for(environ: dict[str, str]) -> None:
    with running(environ) as hub:
        hub.someone_was_away()
        hub.tell(signal.SIGTERM)
        assert hub.ended()[0] == 0
    own = json.loads(wsap(environ, "play", "echo", "--seed", "1", "--steps", "3", "--json").stdout)["run"]

    def listed(*words: str) -> list[dict[str, object]]:
        rows: list[dict[str, object]] = json.loads(wsap(environ, "runs", "--json", "--limit", "1000", *words).stdout)
        return rows

    assert [row["run"] for row in listed()] == [own]
    assert "wsap runs --all" in wsap(environ, "runs").stderr
    everything = listed("--all")
    assert {row["nexus"] for row in everything} == {True, False}
    assert not any(row["resumable"] for row in everything if row["nexus"])
    assert {row["game"] for row in listed("--game", "nexus")} == {"nexus"}
    assert {row["run"] for row in listed("--agent", "ada")} < {row["run"] for row in everything}
    assert json.loads(wsap(environ, "play", "--replay", "last", "--json").stdout)["steps"] == 3
    theirs = next(str(row["run"]) for row in everything if row["nexus"])
    done = wsap(environ, "play", "--resume", theirs)
    assert done.returncode == 2
    assert "belongs to the nexus" in done.stderr
