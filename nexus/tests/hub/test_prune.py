"""A running nexus forgets once a day what is old, by its own clocks, beside everything else."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from life_kit import Place, host_with

from wsap_core.errors import StorageFullError
from wsap_core.protocol import Action
from wsap_nexus.hub.context import LiveState
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.upkeep import retention
from wsap_nexus.hub.upkeep.retention import FIRST, LOOK, LOOK_AGAIN, Retention, trust
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import EXTERNAL, EntryRequest
from wsap_nexus.store.events import NexusEvent, OtherEvent
from wsap_nexus.store.events.nexus import NexusStarted
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.records import NewRun, RunStatus
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.upkeep.prune import DAY, prune

pytestmark = pytest.mark.every_database

KEEP = 30.0


class Days:
    """Both clocks of a nexus: whoever waits does so until the test lets that time pass."""

    def __init__(self) -> None:
        self.wall = time.time()
        """Seconds since 1970; begins now, since recordings are stamped with the time at which they really are made."""
        self._moment = 0.0
        self._waiting: list[tuple[float, asyncio.Future[None]]] = []
        self._slept = asyncio.Event()

    def now(self) -> float:
        return self._moment

    def wall_clock(self) -> float:
        return self.wall

    async def sleep(self, seconds: float) -> None:
        until: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._moment + seconds, until))
        self._slept.set()
        await until

    def waits(self, seconds: float) -> bool:
        """Whether somebody waits for at least so long."""
        return any(due >= self._moment + seconds and not until.done() for due, until in self._waiting)

    async def until_waiting(self, seconds: float) -> None:
        """Wait until somebody waits for at least so long."""
        async with asyncio.timeout(60):
            while not self.waits(seconds):
                self._slept.clear()
                await self._slept.wait()

    def pass_days(self, days: float) -> None:
        self.wall += days * DAY
        self.run(days * DAY)

    def pass_seconds(self, seconds: float) -> None:
        self.wall += seconds
        self.run(seconds)

    def forget(self) -> None:
        """Forget who waits, of a nexus that is no more."""
        self._waiting.clear()

    def run(self, seconds: float) -> None:
        """Let time pass by the clock that nobody sets; the wall clock stands still."""
        self._moment += seconds
        for due, until in self._waiting:
            if due <= self._moment and not until.done():
                until.set_result(None)


class Kept(Place):
    """A nexus that is looked after."""

    def __init__(self, nexus: Nexus, days: Days) -> None:
        super().__init__(nexus)
        self.days = days

    async def until_pruned(self) -> None:
        """Wait until the day's pruning is over: it waits for the next day then."""
        await self.until(lambda: self.days.waits(LOOK))

    async def days_later(self, days: float) -> None:
        self.days.pass_days(days)
        await self.until_pruned()

    def recordings(self) -> list[str]:
        return [run.id for run in self.nexus.store.repository.list_runs(limit=1000)]

    async def stay(self) -> NexusEvent:
        """Be in the echo's world for a step, and return the event of leaving."""
        await self.nexus.enter("ida", "echo", EntryRequest())
        leaving = self.nexus.await_exit("ida")
        seat, _ = await self.nexus.live.external.observation("ida")
        await seat.act(Action("speak", {"text": "hello"}))
        self.nexus.live.sessions["ida"].stop("kicked")
        await leaving
        return self.events("left")[-1]


@asynccontextmanager
async def looked_after(path: Path) -> AsyncIterator[Kept]:
    days = Days()
    with open_store(str(path / "nexus.db")) as store:
        nexus = Nexus(host_with(), store, Settings(seed=5, games=("echo",)), clock=days)
        nexus.nexus_store.wall_clock = days.wall_clock
        with nexus.nexus_store.change() as tx:
            tx.register("ida", policies={"*": EXTERNAL})
        await nexus.start()
        keeping = asyncio.create_task(Retention(nexus.nexus_store, nexus.live, nexus.clock, KEEP).run())
        place = Kept(nexus, days)
        try:
            await place.until(lambda: days.waits(FIRST))
            days.run(FIRST)
            await place.until_pruned()
            yield place
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping
            await nexus.stop()


@pytest.mark.slow
def test_each_day_what_has_become_too_old_is_forgotten_and_nothing_else(tmp_path: Path) -> None:
    async def scene() -> None:
        async with looked_after(tmp_path) as place:
            left = await place.stay()
            run = str(left.body["run"])
            for _ in range(29):
                await place.days_later(1)
            assert run in place.recordings()
            assert place.events("pruned") == []
            before = set(place.recordings())
            await place.days_later(2)
            gone = before - set(place.recordings())
            assert len(gone) == 1, "a tenth, and at least one"
            (pruned,) = place.events("pruned")
            assert pruned.body["runs"] == 1
            assert pruned.time == place.days.wall
            while run in place.recordings() or place.events("entered", "left"):
                assert place.days.wall < pruned.time + 30 * DAY
                await place.days_later(1)
            with place.nexus.nexus_store.look() as tx:
                assert [session.reason for session in tx.sessions(agent_id="ida")] == ["kicked"]

    asyncio.run(scene())


def test_a_stay_that_is_open_is_not_forgotten_however_long_it_lasts(tmp_path: Path) -> None:
    async def scene() -> None:
        async with looked_after(tmp_path) as place:
            stay = await place.nexus.enter("ida", "echo", EntryRequest())
            await place.days_later(400)
            assert stay.session.run_id in place.recordings()
            assert [event.session_id for event in place.events("entered")] == [stay.session.id]
            seat, _ = await place.nexus.live.external.observation("ida")
            assert (await seat.act(Action("speak", {"text": "still here"}))).success

    asyncio.run(scene())


@pytest.mark.parametrize("restarted", [False, True], ids=["", "after a restart"])
@pytest.mark.slow
def test_the_record_of_a_game_whose_own_player_goes_on_alone_stays_until_it_ends(
    tmp_path: Path, *, restarted: bool
) -> None:
    async def scene() -> None:
        days = Days()
        with open_store(str(tmp_path / "nexus.db")) as store:

            def nexus_of() -> Nexus:
                settings = Settings(seed=5, games=("matrix",), lobby_seconds=0.0, pace=1.0)
                return Nexus(host_with(), store, settings, clock=days)

            def records() -> tuple[str, list[int]]:
                """The status of the run, and the numbers of its events."""
                store.writer.flush()
                record = store.repository.find_run(run)
                return ("" if record is None else record.status.value), [
                    e.seq for e in store.repository.read_events(run)
                ]

            async def passes(condition: Callable[[], bool]) -> None:
                async with asyncio.timeout(120):
                    while not condition():
                        days.pass_seconds(1)
                        await asyncio.sleep(0)

            nexus = nexus_of()
            with nexus.nexus_store.change() as tx:
                tx.register("ida", policies={"*": EXTERNAL})
            await nexus.start()
            entering = asyncio.create_task(nexus.enter("ida", "matrix", EntryRequest()))
            await passes(entering.done)
            run = entering.result().session.run_id
            if restarted:
                await nexus.stop()
                days.forget()
                nexus = nexus_of()
                await nexus.start()
                await passes(lambda: "ida" in nexus.live.sessions)
            leaving = nexus.await_exit("ida")
            nexus.live.sessions["ida"].stop("kicked")
            async with asyncio.timeout(120):
                await leaving
            status, before = records()
            assert status == "running"
            prune(store.database, 0.0)
            assert records() == ("running", before)
            await passes(lambda: records()[0] != "running")
            status, after = records()
            assert (status, after) == ("finished", list(range(len(after))))
            assert len(after) > len(before), "the game's own player went on"
            prune(store.database, 0.0)
            assert records() == ("", [])
            await nexus.stop()

    asyncio.run(scene())


def test_a_day_on_which_it_fails_is_told_and_the_next_one_makes_up_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StorageFullError("There is no room left.")

    async def scene() -> None:
        async with looked_after(tmp_path) as place:
            run = str((await place.stay()).body["run"])
            with monkeypatch.context() as broken:
                broken.setattr(retention, "prune", full)
                await place.days_later(40)
            (failed,) = place.events("prune_failed")
            assert failed.body["error"] == "There is no room left."
            assert run in place.recordings()
            await place.days_later(1)
            assert len(place.events("pruned")) == 1
            await place.days_later(1)
            assert run not in place.recordings()

    asyncio.run(scene())


# --- clocks that are wrong ------------------------------------------------------------------------


class Books:
    """A database that was lived in for 50 days, and what a nexus that starts on it with some clocks deletes."""

    def __init__(self, path: Path) -> None:
        self.database = Database.open(path / "nexus.db")
        self.wall = BEGAN
        self.moment = 0.0
        self.nexus_store = NexusStore(self.database, wall_clock=lambda: self.wall)
        self.repository = Repository(self.database, now=lambda: datetime.fromtimestamp(self.wall, UTC))
        with self.nexus_store.change() as tx:
            tx.register("ada")
        self.start()
        for _ in range(50):
            self.visit()
            self.pass_days(1)
            assert self.retention.look() == ""

    def now(self) -> float:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("the test looks by itself")

    def start(self) -> None:
        """Start the nexus: it notes that, and looks at the clock."""
        with self.nexus_store.change() as tx:
            tx.note(NexusStarted())
        self.live = LiveState()
        self.retention = Retention(self.nexus_store, self.live, self, KEEP)
        self.live.undeleted = self.retention.look()

    def pass_days(self, days: float) -> None:
        self.wall += days * DAY
        self.moment += days * DAY

    def visit(self) -> None:
        config = {"seats": [{"name": "ada", "agent": "wanderer"}]}
        run = self.repository.create_run(NewRun(game="nexus", agent="wanderer", config=config))
        self.repository.set_status(run.id, RunStatus.FINISHED)
        with self.nexus_store.change() as tx:
            tx.note(OtherEvent(kind="visited", agent_id="ada"))

    @property
    def kept(self) -> tuple[int, int]:
        """The numbers of recordings and of events of visits."""
        with self.nexus_store.look() as tx:
            return len(self.repository.list_runs()), len(tx.events(kinds=("visited",), limit=1000))

    def events(self, kind: str) -> list[NexusEvent]:
        with self.nexus_store.look() as tx:
            return tx.events(kinds=(kind,))


BEGAN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Books]:
    found = Books(tmp_path)
    with found.database:
        yield found


def test_after_a_pause_longer_than_the_limit_nothing_goes_until_a_person_says_so(books: Books) -> None:
    books.wall += 40 * DAY
    for _ in range(3):  # a further start does not make the clock more trustworthy
        books.start()
        assert "the clock says 2026-04-01" in books.live.undeleted
        assert "on 2026-02-20" in books.live.undeleted
        assert "wsap nexus prune" in books.live.undeleted
    books.moment += DAY
    assert books.retention.look(), "nor does time that passes"
    assert len(books.events("prune_held")) == 3
    with books.nexus_store.change() as tx:
        trust(tx, tx.now)
    assert books.retention.look() == ""
    books.retention.delete()
    assert books.kept == (45, 45)


def test_a_clock_that_is_set_right_again_is_trusted_again(books: Books) -> None:
    books.wall += 400 * DAY
    books.start()
    assert books.live.undeleted
    books.visit()  # what is recorded meanwhile has the wrong date
    books.wall -= 399 * DAY
    assert books.retention.look() == ""
    books.wall += 400 * DAY
    assert books.retention.look(), "and not by that date the next time"


def test_a_clock_that_goes_back_and_forth_is_no_pause(books: Books) -> None:
    # A machine without a battery for its clock begins in 1970, until it hears the time.
    right, books.wall = books.wall, 3600.0
    books.start()
    assert books.live.undeleted == ""
    books.wall = right + DAY
    assert books.retention.look() == ""


def test_a_clock_that_jumps_while_the_nexus_runs_is_not_believed(books: Books) -> None:
    books.wall += 31 * DAY
    assert books.retention.look()
    books.pass_days(1)
    assert books.retention.look()
    books.wall -= 31 * DAY
    assert books.retention.look() == ""


def test_time_for_which_the_nexus_ran_is_no_pause_however_seldom_it_looks(books: Books) -> None:
    books.pass_days(40)
    assert books.retention.look() == ""


@pytest.mark.slow
def test_never_more_than_a_share_goes_at_once_so_that_a_wrong_clock_can_be_noticed(books: Books) -> None:
    books.wall += 29 * DAY  # within the limit; all but one visit are older than that now
    books.start()
    assert books.live.undeleted == ""
    gone = []
    while (before := books.kept)[0] > 1:
        books.retention.delete()
        after = books.kept
        assert before[0] - after[0] == math.ceil(before[0] / 10)
        assert before[1] - after[1] <= 6
        gone.append(before[0] - after[0])
    assert gone[0] == 5
    assert len(gone) > 15


def test_a_database_that_no_version_with_such_looks_has_used_is_judged_by_its_newest_event(books: Books) -> None:
    with books.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM counter WHERE name = 'clock'")
    books.wall += 31 * DAY
    books.start()
    assert "on 2026-02-19" in books.live.undeleted
    with books.database.write() as connection:
        connection.exec_driver_sql("DELETE FROM counter WHERE name = 'clock'")
    books.wall -= 2 * DAY
    books.start()
    assert books.live.undeleted == ""


@pytest.mark.slow
def test_whatever_may_go_at_any_age_goes_whatever_the_clock_says(books: Books) -> None:
    books.wall = 0.0
    assert prune(books.database, 0.0, now=books.wall).runs == 50


def test_nothing_goes_in_the_first_minutes_nor_twice_a_day(tmp_path: Path) -> None:
    async def scene() -> None:
        days = Days()
        with open_store(str(tmp_path / "nexus.db")) as store:
            nexus_store = NexusStore(store.database, wall_clock=days.wall_clock)
            for _ in range(30):
                run = store.repository.create_run(NewRun(game="nexus", agent="wanderer", config={}))
                store.repository.set_status(run.id, RunStatus.FINISHED)
            with nexus_store.change() as tx:
                tx.note(NexusStarted())
                trust(tx, days.wall)
            days.wall += 29.9 * DAY  # as long as the nexus did not run
            days.wall += 0.2 * DAY
            with nexus_store.change() as tx:
                trust(tx, days.wall)
            left = []
            for _ in range(3):
                keeping = asyncio.create_task(Retention(nexus_store, LiveState(), days, KEEP).run())
                await days.until_waiting(FIRST)
                before = len(store.repository.list_runs())
                days.pass_seconds(FIRST - 1)
                await asyncio.sleep(0)
                assert len(store.repository.list_runs()) == before
                days.pass_seconds(1)
                await days.until_waiting(LOOK_AGAIN)
                left.append(len(store.repository.list_runs()))
                keeping.cancel()
                with suppress(asyncio.CancelledError):
                    await keeping
                days.forget()
            assert left == [27, 27, 27]

    asyncio.run(scene())
