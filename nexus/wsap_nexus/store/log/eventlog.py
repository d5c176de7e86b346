"""The append-only event log: `append` is cheap, a separate thread commits groups of events.

Guarantees:

- An event is recorded when its commit has returned; this is what `flush`, `flushed`, `committed` and `close` refer to.
  The events of a run are numbered 0, 1, 2, ... without gaps and committed in that order, so a crash leaves a prefix.
- A group is committed at most `delay` seconds (50 ms) after its first event, or when it is full (256 events).
- A commit reaches the operating system: it survives the process, even a killed one.
- It is synced to disk within `FORCE_EVERY` seconds (0.25): the first commit after a pause at once, later ones
  together. A power cut loses at most the last half second; the database stays consistent (SQLite reads its WAL up to
  the last complete commit).
- Memory is bounded: when the writer falls behind by `limit` events or 64 MiB, `append` waits.
- When a commit fails (disk full, file gone), earlier commits stay, the writer stops, and each later `append` and
  `flush` raises. The run can be resumed from there.
- If `Database.on_fault` is set, the writer keeps its queue during a fault of the machine that passes (a full disk,
  another program's lock, no free files) and retries every second; meanwhile `flush` raises, and `append` raises only
  if the queue is full.
"""

from __future__ import annotations

import atexit
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from wsap_core.errors import StorageDamagedError, StorageError, StorageReadOnlyError, WsapError
from wsap_core.protocol import wire
from wsap_nexus.store.database import Database
from wsap_nexus.store.errors import is_passing, translate
from wsap_nexus.store.log.admission import check_name, checked_count, found_run, packed_body
from wsap_nexus.store.log.bodies import BodyEncoder
from wsap_nexus.store.log.sinks import BUSY_SECONDS, Change, Item, Kept, Made, Sink, State, make_group, open_sink
from wsap_nexus.store.log.waiters import CommitWaiters
from wsap_nexus.store.records import NewMoment, RunStatus

GROUP = 256
"""The maximum number of events in one commit."""
DELAY = 0.05
"""Seconds that an event waits for others in its commit."""
FORCE_EVERY = 0.25
"""Minimum seconds between two syncs to disk."""
LIMIT = 20_000
"""Queued events above which `append` waits."""
LIMIT_BYTES = 64 << 20
"""Queued bytes of bodies above which `append` waits."""
TRY_AGAIN = 1.0
"""Seconds between attempts to write during a fault of the machine."""


class LogWriter:
    """Appends events to runs, thread-safe. Close it, or use it as a context manager.

    The database must stay open as long as the writer. `wall_clock` returns the time of an event in seconds since 1970;
    the other arguments are described at their defaults.
    """

    def __init__(
        self,
        database: Database,
        *,
        wall_clock: Callable[[], float] = time.time,
        group: int = GROUP,
        delay: float = DELAY,
        limit: int = LIMIT,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        if database.read_only:
            raise StorageReadOnlyError(f"The database {database.where} was opened for reading only.")
        self._database = database
        self._wall_clock = wall_clock
        self._group = group
        self._delay = delay
        self._limit = limit
        self._busy_seconds = busy_seconds

        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        """Notifies the writer of a first event, a full group or a waiting caller."""
        self._progress = threading.Condition(self._lock)
        """Notifies callers of a commit or the end of the writer."""
        self._pending: list[Change] = []
        self._pending_bytes = 0
        self._next: dict[str, int] = {}
        self._committed: dict[str, int] = {}
        self._taken = 0
        self._done = 0
        self._waiting = 0
        self._waiters = CommitWaiters()
        self._closing = False
        self._failure: WsapError | None = None
        self._fault: StorageError | None = None
        self._told = False

        # Used only by the writer's thread.
        self._unforced = False
        self._forced = time.monotonic() - FORCE_EVERY
        self._encoder = BodyEncoder()
        self._thread = threading.Thread(target=self._work, name="wsap-log", daemon=True)
        self._thread.start()
        # A daemon, so that an unclosed writer can't keep the process alive; atexit still commits its events.
        atexit.register(self._stop)

    # --- public, on any thread ---------------------------------------------------------------

    def append(
        self,
        run_id: str,
        kind: str,
        body: str | bytes,
        *,
        seat: str | None = None,
        episode: int = 0,
        step: int | None = None,
        takes: int | None = None,
        moments: Sequence[NewMoment] = (),
        agent: str = "",
    ) -> int:
        """Add an event to a run and return its number; it is recorded once `flush` has returned.

        Args:
            kind: "step", "snapshot", ...; at most 200 characters.
            body: canonical JSON text, or any bytes, at most 256 MiB; read back unchanged.
            episode: counted from 0.
            step: the step in the episode.
            takes: the number of an inbox row to delete in the same transaction.
            moments: what is told of the event, written in the same transaction.
            agent: the agent in the seat, for the moments; empty for the seat itself.

        Raises:
            StorageError: an argument is out of range, or an earlier event could not be written.
            UnknownNameError: the database has no such run.
        """
        # Checked on the caller's thread, because an error in the writer's thread ends the log.
        check_name("kind", kind)
        if seat is not None:
            check_name("seat", seat)
        form, packed = packed_body(kind, body)
        if type(episode) is not int or episode < 0 or (step is not None and (type(step) is not int or step < 0)):
            episode, step = checked_count("episode", episode), None if step is None else checked_count("step", step)
        with self._lock:
            if self._crowded():
                self._wait_while(lambda: self._crowded() and not self._closing)
            if self._failure is not None or self._closing or self._crowded():
                raise self._refusal()
            seq = self._next_of(run_id)
            item = Item(run_id, seq, kind, seat, episode, step, self._wall_clock(), form, packed, takes, moments, agent)
            try:
                self._next[run_id] = seq + 1
                self._add(item, len(packed))
            except BaseException:
                # Ctrl-C can interrupt anywhere; a number must be used exactly once, with its event.
                if not self._pending or self._pending[-1] is not item:
                    self._next[run_id] = seq
                raise
        return seq

    def create(self, row: Mapping[str, Any]) -> None:
        """Add a new run, committed in order with its events: it is recorded once `flush` has returned.

        Args:
            row: its columns, checked, with an id that no run has; the caller holds the run's lock. Any: strings,
                numbers, and JSON-ready data.

        Raises:
            StorageError: an earlier event could not be written.
        """
        run_id = str(row["id"])
        with self._lock:
            if self._failure is not None or self._closing:
                raise self._refusal()
            self._begin(run_id, -1, 0)
            self._add(Made(run_id, row, self._wall_clock()), 0)

    def begin(self, run_id: str) -> None:
        """Take a run that was just created as one without events, instead of looking for them."""
        with self._lock:
            self._begin(run_id, -1, 0)

    def keep_state(self, run_id: str, step: int, body: str, *, whole: bool) -> None:
        """Replace the kept state of a run by that after everything appended to it so far, in order with its events.

        Args:
            step: the tick of the state.
            body: the body of an event `snapshot`.
            whole: whether the run can be resumed from it; such states and others do not replace each other.

        Raises:
            StorageError: an earlier event could not be written.
        """
        packed = zlib.compress(body.encode(), 1)
        with self._lock:
            if self._failure is not None or self._closing:
                raise self._refusal()
            after = self._next[run_id] = self._next_of(run_id)
            self._add(Kept(run_id, whole, after - 1, step, self._wall_clock(), packed), len(packed))

    def set_status(self, run_id: str, status: RunStatus, summary: Mapping[str, Any] | None = None) -> None:
        """Set the status of a run, in order with its events, and its summary if given. Raises as `append` does."""
        packed = None if summary is None else wire.dumps(dict(summary))
        with self._lock:
            if self._failure is not None or self._closing:
                raise self._refusal()
            self._next[run_id] = self._next_of(run_id)
            self._add(State(run_id, RunStatus(status), packed, self._wall_clock()), 0)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit the few events appended in the block in one transaction; StorageError as in `flush`."""
        self.flush()
        with self._lock:
            yield

    def flush(self) -> None:
        """Return when everything appended so far is committed; StorageError, with the reason, if that fails."""
        with self._lock:
            goal = self._taken + len(self._pending)
            self._wait_while(lambda: self._done < goal and self._thread.is_alive())
            if self._done < goal:
                raise self._refusal()

    async def flushed(self) -> None:
        """Return when everything appended so far is committed, without blocking the event loop; raises as `flush`."""
        with self._lock:
            goal = self._taken + len(self._pending)
            if self._done >= goal:
                return
            if self._failure or self._fault or not self._thread.is_alive():
                raise self._refusal()
            committed = self._waiters.add(goal)
            self._wake.notify()
        await committed

    @property
    def waits(self) -> bool:
        """Whether events wait for the end of a fault of the machine."""
        with self._lock:
            return self._fault is not None

    def committed(self, run_id: str) -> int:
        """Return the number of a run's last committed event, -1 if none; UnknownNameError if there is no such run."""
        with self._lock:
            if run_id in self._committed:
                return self._committed[run_id]
        return found_run(self._database, run_id)[0]

    def close(self) -> None:
        """Commit and sync all queued events and stop; idempotent. StorageError if an unreported write failed."""
        self._stop()
        with self._lock:
            if self._failure is not None and not self._told:
                raise self._refusal()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._stop()

    # --- under the lock ----------------------------------------------------------------------

    def _add(self, item: Change, size: int) -> None:
        self._pending.append(item)
        self._pending_bytes += size
        if len(self._pending) in (1, self._group):
            self._wake.notify()

    def _crowded(self) -> bool:
        return len(self._pending) >= self._limit or self._pending_bytes >= LIMIT_BYTES

    def _wait_while(self, wanting: Callable[[], bool]) -> None:
        self._waiting += 1
        try:
            while wanting() and not self._failure and not self._fault:
                self._wake.notify()
                self._progress.wait()
        finally:
            self._waiting -= 1

    def _refusal(self) -> WsapError:
        failure = self._failure or self._fault
        if failure is None and not self._closing:
            return StorageError("The event log's thread is not in this process; reopen the database after a fork.")
        if failure is None:
            return StorageError("The event log is closed; reopen the run to record more.")
        self._told = failure is self._failure
        again = type(failure)(str(failure))
        again.__cause__ = failure.__cause__
        return again

    def _wake_callers(self) -> None:
        self._progress.notify_all()
        self._waiters.reached(self._done)
        if self._waiters and (self._failure or self._fault):
            self._waiters.failed(self._refusal())

    def _next_of(self, run_id: str) -> int:
        if (known := self._next.get(run_id)) is not None:
            return known
        return self._begin(run_id, *found_run(self._database, run_id))

    def _begin(self, run_id: str, last: int, dictionaries: int) -> int:
        self._encoder.start_run(run_id, dictionaries)
        self._committed[run_id] = last
        self._next[run_id] = last + 1
        return last + 1

    # --- the writer's thread -----------------------------------------------------------------

    def _stop(self) -> None:
        with self._lock:
            self._closing = True
            self._wake.notify()
        if self._thread is not threading.current_thread():
            self._thread.join()
        atexit.unregister(self._stop)

    def _work(self) -> None:
        try:
            sink = open_sink(self._database, busy_seconds=self._busy_seconds)
            try:
                while (batch := self._next_batch(sink)) is not None:
                    for start in range(0, len(batch), self._group):
                        self._commit(sink, batch[start : start + self._group])
            finally:
                sink.close()
        except BaseException as error:  # reported to the next caller
            failure = translate(error, self._database.where)
            failure.__cause__ = error if failure is not error else error.__cause__
            if isinstance(failure, StorageDamagedError) and self._database.on_damage is not None:
                self._database.on_damage(failure)
            with self._lock:
                self._failure = failure
                self._pending.clear()
                self._pending_bytes = 0
                self._wake_callers()

    def _next_batch(self, sink: Sink) -> list[Change] | None:
        # Waits for events, then for a full group or the end of the delay; None to stop.
        while not self._await_events(FORCE_EVERY if self._unforced else None):
            if self._unforced:  # idle or closing
                self._force(sink)
            elif self._closing:
                return None
        with self._lock:
            deadline = time.monotonic() + self._delay
            while len(self._pending) < self._group and not (self._waiting or self._waiters or self._closing):
                left = deadline - time.monotonic()
                if left <= 0:
                    break
                self._wake.wait(left)
            batch, self._pending = self._pending, []
            self._pending_bytes = 0
            self._taken += len(batch)
            return batch

    def _await_events(self, timeout: float | None) -> bool:
        with self._lock:
            if not self._pending and not self._closing:
                self._wake.wait(timeout)
            return bool(self._pending)

    def _commit(self, sink: Sink, batch: list[Change]) -> None:
        group = make_group(batch, self._encoder)
        self._write(lambda: sink.commit(group))
        with self._lock:
            for row in group.events:
                self._committed[row[0]] = row[1]
            for run_id, (status, _) in group.states.items():
                if status != RunStatus.RUNNING and self._next.get(run_id) == self._committed[run_id] + 1:
                    # Nothing of it is queued; a later append looks it up again.
                    del self._next[run_id], self._committed[run_id]
                    self._encoder.end_run(run_id)
            self._done += len(batch)
            self._wake_callers()
        self._unforced = True
        if time.monotonic() - self._forced >= FORCE_EVERY:
            self._force(sink)

    def _write(self, do: Callable[[], None]) -> None:
        """Call `do`, and retry during a fault that passes if `on_fault` is set."""
        while True:
            last = self._closing
            try:
                do()
            except Exception as error:
                fault = translate(error, self._database.where)
                report = self._database.on_fault
                if last or report is None or not isinstance(fault, StorageError) or not is_passing(fault):
                    raise
            else:
                with self._lock:
                    self._fault = None
                return
            report(fault)
            with self._lock:
                self._fault = fault
                self._wake_callers()
                if not self._closing:
                    self._wake.wait(TRY_AGAIN)

    def _force(self, sink: Sink) -> None:
        self._write(sink.force)
        self._unforced = False
        self._forced = time.monotonic()
