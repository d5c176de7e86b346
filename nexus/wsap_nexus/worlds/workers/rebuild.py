"""The line to a world in another process, which rebuilds the world when the process is lost."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

from wsap_core.errors import PluginError, WorldError, WsapError
from wsap_core.spec_json import spec_to_json
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.worlds.operations import Begin, Create, OpenSeat, Operation, Restore, Snapshot
from wsap_nexus.worlds.seats import Told
from wsap_nexus.worlds.workers import rebuild_journal as journals
from wsap_nexus.worlds.workers.frames import DONE, FAILED, TAKEN_BACK, read_answer
from wsap_nexus.worlds.workers.pool import CREATION, WorkerTimeouts
from wsap_nexus.worlds.workers.rebuild_journal import RebuildJournal

# Any, in this module: JSON.

SNAPSHOT_EVERY = 50
"""Steps between two saved states of a world."""
CLOSING = 5.0
"""Seconds to wait for a game to close."""
AGAIN = 20
"""How often a world is rebuilt without progress if it was not at work when its process ended."""
AT_WORK = 2
"""How often it is rebuilt without progress if it was at work when a signal ended its process."""

OnFailure = Callable[[WorldFailedError], object]


class Line(Protocol):
    """The connection to a world's process: a worker, or a game in another process."""

    @property
    def gone(self) -> bool:
        """Whether it is lost."""
        ...

    @property
    def where(self) -> str:
        """The other machine that a worker is on; empty for one on this machine, and for a game elsewhere."""
        ...

    ended: asyncio.Future[Any]
    """Done when it is lost."""

    def call(
        self, world: int, operation: Operation[Any], on_reply: Callable[[bytes], None], deadline: float | None
    ) -> int:
        """Send an operation and return its number; `on_reply` gets the content of the reply, if one comes."""
        ...

    def take_back(self, number: int) -> None:
        """Request the cancellation of a call."""
        ...

    def give_up(self, world: int, why: str) -> None:
        """Lose the line because of a world, which is to blame."""
        ...


class Held(Protocol):
    """A process that can be ended."""

    def kill(self, why: str, accused: int | None = None) -> None:
        """Kill the process."""
        ...


class Lines(Protocol):
    """A source of lines."""

    @property
    def timeouts(self) -> WorkerTimeouts:
        """The timeouts of calls."""
        ...

    def new_number(self) -> int:
        """Return a number for a world."""
        ...

    async def place(self, rebuilding: RebuildingLine, /) -> Line:
        """Assign a world to a process and return the line to it; WorldError if there is no process."""
        ...

    def leave(self, rebuilding: RebuildingLine, /) -> None:
        """Forget a world."""
        ...

    def held_by(self, rebuilding: RebuildingLine, /) -> Held | None:
        """Return the process whose game has not returned for long from a call to this world; None if it has."""
        ...


class WorkerLostError(WorldFailedError):
    """The worker was lost during a call. Never leaves this package."""


class RebuildingLine:
    """Calls a world in another process, and rebuilds it in a new process when that one is lost.

    The arguments are those of `RemoteWorld`.
    """

    def __init__(
        self,
        spec: AdapterSpec,
        seed: int,
        options: Mapping[str, Any],
        *,
        factory: str,
        pool: Lines,
        on_failure: OnFailure,
        snapshot_every: int,
    ) -> None:
        self.number = pool.new_number()
        """Its number in the pool."""
        self.failures = 0
        """How often it crashed its process."""
        self.rebuilt = 0
        """How often it was rebuilt."""
        self.journal = RebuildJournal()
        self._spec = spec
        self._create = Create(spec_to_json(spec), factory, seed, dict(options))
        self._pool = pool
        self._on_failure = on_failure
        self._every = snapshot_every if "snapshot" in spec.abilities else 0
        self._reads: list[journals.JournalEntry] = []
        self._asked: dict[journals.JournalEntry, float] = {}
        self._moved = time.monotonic()
        """When something was last asked or answered."""
        self._playing: set[str] = set()
        """The seats whose episode goes on."""
        self._opened: list[str] = []
        self._begun: Operation[Any] | None = None
        self._steps = 0
        self._saving = False
        self._generation = 0
        self._link: Line | None = None
        self._coming: asyncio.Task[None] | None = None
        self._replies: set[asyncio.Future[bytes]] = set()
        self._dead: WorldError | None = None
        self._cause: WorldFailedError | None = None
        self._blamed_in_row = 0
        self._at_work_in_row = 0
        self._lost_in_row = 0
        self._doubtful: set[journals.JournalEntry] = set()

    @property
    def game(self) -> str:
        """The name of its game."""
        return self._spec.name

    @property
    def is_suspect(self) -> bool:
        """Whether it was at work when its last process ended, and has not got beyond that since."""
        return self._at_work_in_row > 0

    @property
    def can_move(self) -> bool:
        """Whether it can be rebuilt elsewhere while its process goes on."""
        return "seed" in self._spec.abilities and self._link is not None and not self._is_coming

    @property
    def last_state(self) -> bytes | None:
        """The newest saved state."""
        return None if self.journal.state is None else base64.b64decode(self.journal.state)

    @property
    def asked(self) -> tuple[str, float] | None:
        """The oldest unanswered call and its seconds; None if there is none."""
        for entry, began in self._asked.items():
            return entry.operation.what, time.monotonic() - began
        return None

    # --- calls ------------------------------------------------------------------------------------------

    async def call(self, operation: Operation[Any], told: Told | None = None) -> tuple[Any, bytes | None]:
        """Return the reply to an operation and the text of its observation, if any, after rebuilding the world if its
        process is lost meanwhile.

        `told` is called when it is sent.

        Raises:
            WsapError: raised by the world.
            WorldFailedError: the world can't be rebuilt.
        """
        if operation.ends:
            await self._close(operation)
            return None, None
        await self._ready()
        if told is not None:
            told()
        settled = self.journal.position if operation.saves and self.journal.is_settled else None
        seats, generation = list(self._opened) if operation.saves else [], self._generation
        said, text = await self._ask(operation)
        if settled is not None and generation == self._generation:
            self.journal.rebase(str(said["state"]), seats, settled)
            self._steps = 0
        return said, text

    async def _ask(self, operation: Operation[Any]) -> tuple[Any, bytes | None]:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        deadline = None if operation.in_turn and self._spec.seats[1] > 1 else self._deadline
        entry = journals.JournalEntry(operation, answer, deadline)
        self._transmit(entry)  # nothing is recorded of what can't be sent
        self.journal.follow(operation)
        if operation.begins:
            self._begun = operation
        if operation.changes:
            self.journal.ask(entry)
        else:
            self._reads.append(entry)
        self._asked[entry] = self._moved = time.monotonic()
        try:
            reply = await self._answered(answer, timed=deadline is not None)
        except asyncio.CancelledError:
            self._take_back(entry)
            raise
        finally:
            del self._asked[entry]
        if reply[:1] == TAKEN_BACK:
            raise WorldFailedError(f"The game {self._spec.name!r} cancelled {operation.what}.")
        said, text = read_answer(reply)
        self._follow(operation, said)
        return said, text

    async def _answered(self, answer: asyncio.Future[bytes], *, timed: bool) -> bytes:
        """Return an answer, and give the world up if all its seats wait for it alone for as long as a call may take."""
        while not timed:
            done, _ = await asyncio.wait({answer}, timeout=self._deadline)
            if done:
                break
            still = time.monotonic() - self._moved
            if self._link is not None and not self._is_coming and self._all_wait and still >= self._deadline:
                self._moved = time.monotonic()
                self._link.give_up(self.number, f"all seats waited for it for {self._deadline:g} s")
        return await answer

    @property
    def _all_wait(self) -> bool:
        return self._playing <= {entry.operation.at for entry in self._asked}

    def _follow(self, operation: Operation[Any], said: Any) -> None:
        """Track which seats play."""
        if operation.begins:
            self._playing = set(self._opened)
        elif operation.enters:
            self._playing.add(operation.at)
        elif operation.leaves(said):
            self._playing.discard(operation.at)

    @property
    def is_held(self) -> bool:
        """Whether its game has not returned for long from a call, and holds its process."""
        return self._pool.held_by(self) is not None

    def give_up(self) -> bool:
        """End the world, with its process, if that `is_held`; return whether it was. This counts as no failure."""
        held = self._pool.held_by(self)
        if held is None:
            return False
        error = WorldFailedError(f"The game {self._spec.name!r} did not return from a call, and its world was ended.")
        error.counted = error.given_up = True
        self._link = None
        if self._coming is not None:
            self._coming.cancel()
        self._die(error)
        held.kill("it was given up", self.number)
        return True

    async def _close(self, operation: Operation[Any]) -> None:
        """Close the world; its process stays for other worlds, unless the world holds it."""
        held = self._pool.held_by(self)
        if held is not None:
            held.kill("its world was closed", self.number)
        link, self._link = self._link, None
        self._dead = self._dead or WorldError(f"This world of {self._spec.name!r} is closed.")
        if self._coming is not None:
            self._coming.cancel()
        self._give_up(self._dead)
        if link is not None and not link.gone:
            closed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._call(link, operation, partial(_settle, closed), self._deadline)
            await asyncio.wait({closed, link.ended}, timeout=CLOSING, return_when=asyncio.FIRST_COMPLETED)
        self._pool.leave(self)

    @property
    def _deadline(self) -> float:
        return max(self._pool.timeouts.deadline, self._spec.deadline or 0.0)

    def _transmit(self, entry: journals.JournalEntry) -> None:
        if self._link is not None:
            entry.number = self._call(self._link, entry.operation, partial(self._on_reply, entry), entry.deadline)

    def _call(
        self, link: Line, operation: Operation[Any], on_reply: Callable[[bytes], None], deadline: float | None
    ) -> int:
        return link.call(self.number, operation, on_reply, deadline)

    def _on_reply(self, entry: journals.JournalEntry, reply: bytes) -> None:
        self._moved = time.monotonic()
        self._get_beyond(entry)
        if entry in self._reads:
            self._reads.remove(entry)
        else:
            self.journal.answer(entry, reply)
            self._steps += 1
            seat = entry.operation.at
            if entry.operation.enters and reply[:1] == DONE and seat not in self._opened:
                self._opened.append(seat)
        entry.reply(reply)
        due = 0 < 2 * self._every <= self._steps  # each step is observed and resolved
        if due and self.journal.is_settled and not self._saving and not self._is_coming:
            self._save()

    def _get_beyond(self, entry: journals.JournalEntry) -> None:
        # It has made progress once all calls that were open at the last loss are answered or taken back.
        self._doubtful.discard(entry)
        if not self._doubtful:
            self._blamed_in_row = self._at_work_in_row = self._lost_in_row = 0

    def _take_back(self, entry: journals.JournalEntry) -> None:
        self._doubtful.discard(entry)
        if entry in self._reads:
            self._reads.remove(entry)
        elif not entry.answered and self._dead is None:
            self.journal.take_back(entry)
        else:
            return
        if self._link is not None and not self._is_coming:
            self._link.take_back(entry.number)

    def _save(self) -> None:
        # In the background; the state is that after all answered calls.
        if self._link is None:
            return
        position, seats = self.journal.position, list(self._opened)

        def saved(reply: bytes) -> None:
            self._saving = False
            self._steps = 0
            if reply[:1] == FAILED:
                self._every = 0  # from now on the whole journal is kept
            else:
                self.journal.rebase(read_answer(reply)[0]["state"], seats, position)

        self._saving = True
        self._call(self._link, Snapshot(), saved, self._deadline)

    # --- rebuilding -----------------------------------------------------------------------------------

    def worker_lost(self, link: Line, why: str, *, to_blame: bool, at_work: bool = False) -> None:
        """Start rebuilding the world if a call is open; otherwise the next call does.

        The failure is counted if the world is `to_blame` for it. If it was only `at_work`, it is counted if that
        happens again and again. When the repetition of a call ends the next worker, too, that is the same failure.
        """
        if link is not self._link:
            return
        self._link, self._saving = None, False
        self._generation += 1
        self._lost_in_row += 1
        self._at_work_in_row += 1 if at_work else 0
        to_blame = to_blame or self._at_work_in_row > AT_WORK
        self._cause = self._failure(why)
        tells = to_blame and not self._blamed_in_row
        if to_blame:
            self.failures += 1
            self._blamed_in_row += 1
            self._cause.counted = True
        waiting = [entry for kind, entry in self.journal.events if kind == "asked" and not entry.answered]
        self._doubtful |= {*waiting, *self._reads}
        for reply in list(self._replies):
            if not reply.done():
                reply.set_exception(WorkerLostError(str(self._cause)))
                reply.exception()  # it may have no waiter
        if (self.journal.open or self._reads) and not self._is_coming and self._dead is None:
            self._coming = asyncio.create_task(self._come(), name=f"bring back {self._spec.name}")
        if tells:
            self._on_failure(self._cause)

    def game_failed(self, why: str) -> None:
        """Count a failure of the game for which no world is known to be to blame."""
        error = self._failure(why)
        error.counted = True
        self._on_failure(error)

    def _failure(self, why: str) -> WorldFailedError:
        return WorldFailedError(f"The game {self._spec.name!r} failed: {why}.")

    @property
    def _where(self) -> str:
        return "" if self._link is None or not self._link.where else f"On {self._link.where}: "

    @property
    def _is_coming(self) -> bool:
        return self._coming is not None and not self._coming.done()

    async def _ready(self) -> None:
        while self._link is None or self._is_coming:
            if self._dead is not None:
                break
            if not self._is_coming:
                self._coming = asyncio.create_task(self._come(), name=f"bring {self._spec.name}")
            assert self._coming is not None
            await asyncio.wait({self._coming})
        if self._dead is not None:
            raise own_copy(self._dead)

    async def _come(self) -> None:
        while self._dead is None:
            if self._blamed_in_row > 1 or self._at_work_in_row > AT_WORK or self._lost_in_row > AGAIN:
                self._die(self._cause or self._failure("its process ended"))
                return
            try:
                await self._make()
            except WorkerLostError:
                continue
            except PluginError as error:
                self._die(_because(WorldFailedError(f"{self._where}{error}"), error))
            except WorldError as error:
                self._die(error)
            except WsapError as error:
                why = f"{self._where}The game {self._spec.name!r} can't be created: {error}"
                self._die(_because(WorldError(why), error))
            except Exception as error:
                failed = WorldFailedError(f"The game {self._spec.name!r} can't be rebuilt: {error!r}")
                self._die(_because(failed, error))
            return

    async def _make(self) -> None:
        link = await self._pool.place(self)
        if link.gone:
            raise WorkerLostError("lost at once")
        self._link = link
        await self._say(self._create, CREATION)
        journal = self.journal
        self.rebuilt += 1 if journal.position else 0
        if journal.state is not None:
            await self._say(self._begun or Begin(self._create.seed))
            for name in journal.seats:
                await self._say(OpenSeat(name))
            await self._say(Restore(base64.b64decode(journal.state)))
        await self._go_through(link)
        for entry in self._reads:
            self._transmit(entry)

    async def _go_through(self, link: Line) -> None:
        # Repeats all calls of the journal in order, and compares the replies.
        repeated: dict[int, asyncio.Future[bytes]] = {}
        done = 0
        while done < len(self.journal.events):
            kind, entry = self.journal.events[done]
            done += 1
            if kind == "asked" and entry.answered:
                repeated[id(entry)] = self._repeat(link, entry)
            elif kind == "asked":
                self._transmit(entry)
            elif kind == "taken back":
                link.take_back(entry.number)
            elif id(entry) in repeated:
                reply = await self._reply(repeated.pop(id(entry)))
                if journals.digest(reply) != entry.digest:
                    raise WorldFailedError(
                        f"The game {self._spec.name!r} gave a different reply to the repeated {entry.operation.what}, "
                        "so its world can't be rebuilt; is the game deterministic for a given seed?"
                    )

    def _repeat(self, link: Line, entry: journals.JournalEntry) -> asyncio.Future[bytes]:
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        entry.number = self._call(link, entry.operation, partial(_settle, reply), entry.deadline)
        self._replies.add(reply)
        return reply

    async def _say(self, operation: Operation[Any], times: float = 1.0) -> Any:
        # A call for rebuilding, which is not in the journal.
        if self._link is None:
            raise WorkerLostError("lost")
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._replies.add(reply)
        self._call(self._link, operation, partial(_settle, reply), self._deadline * times)
        return read_answer(await self._reply(reply))[0]

    async def _reply(self, reply: asyncio.Future[bytes]) -> bytes:
        if self._link is None:
            raise WorkerLostError("lost")
        try:
            return await reply
        finally:
            self._replies.discard(reply)

    def _die(self, error: WorldError) -> None:
        self._dead = error
        self._give_up(error)

    def _give_up(self, error: WorldError) -> None:
        waiting = [entry for kind, entry in self.journal.events if kind == "asked" and not entry.answered]
        for entry in (*waiting, *self._reads):
            if entry.answer is not None and not entry.answer.done():
                entry.answer.set_exception(own_copy(error))
                entry.answer.exception()  # it may have no waiter
        self._reads.clear()


def _settle(waiting: asyncio.Future[Any], reply: bytes) -> None:
    if not waiting.done():
        waiting.set_result(reply)


def _because(error: WorldError, cause: BaseException) -> WorldError:
    error.__cause__ = cause
    return error


def own_copy(error: WorldError) -> WorldError:
    """Return a new error for a caller, so that tracebacks are not shared."""
    own = type(error)(str(error))
    own.__cause__ = error.__cause__
    if isinstance(own, WorldFailedError) and isinstance(error, WorldFailedError):
        own.counted, own.given_up = error.counted, error.given_up
    return own
