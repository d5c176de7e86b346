"""The line to a world that lives in a worker, which keeps the order in which the world was told of what.

Nothing is kept for rebuilding: when the worker ends, so does the run, which goes on from its log in another worker. So
the log must have everything in the order in which the world had it. What a worker sends, it sends in that order; it
arrives here one message at a time, and whoever waits for one has recorded what it means before the next is read. While
one task is `alone` with the world, nothing that others ask reaches it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Protocol

from wsap_core.errors import PluginError, StorageError, WorldError, WsapError
from wsap_core.protocol.wire import dumps, encode
from wsap_core.seams.model import Backend, Request
from wsap_core.seams.services import Services, WorldModels
from wsap_core.spec_json import spec_to_json
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.tasks import ended
from wsap_nexus.worlds.operations import Create, Operation, Reached
from wsap_nexus.worlds.port import TellsWhenGiven
from wsap_nexus.worlds.seats import Told
from wsap_nexus.worlds.workers.asked import read_request
from wsap_nexus.worlds.workers.frames import TAKEN, TAKEN_BACK, error_body, read_answer
from wsap_nexus.worlds.workers.link import WorkerLink
from wsap_nexus.worlds.workers.pool import CREATION, WorkerPool
from wsap_nexus.worlds.workers.rebuild import CLOSING, own_copy

# Any, in this module: JSON.


class OnLoss(Protocol):
    """Judges the end of a world's worker."""

    def __call__(self, why: str, *, to_blame: bool, at_work: bool) -> WorldError:
        """Return the error that ends the run: `WorldInterruptedError`, after which it goes on, or `WorldFailedError`.

        The world may be `to_blame`, or only have been `at_work`.
        """
        ...


Quiet = Callable[[Collection[str]], Awaitable[None]]


@dataclass(eq=False)
class _Question:
    operation: Operation[Any]
    answer: asyncio.Future[bytes]
    taken: asyncio.Future[bytes]
    began: float = field(default_factory=time.monotonic)
    number: int = 0

    @property
    def waits(self) -> bool:
        """Whether it may wait for seats and models."""
        return self.operation.in_turn or self.operation.is_long

    @property
    def has_been_taken(self) -> bool:
        """Whether the world has got it."""
        taken = self.taken
        return taken.done() and taken.exception() is None and taken.result() == TAKEN


class LivingLine:
    """Calls a world that lives in a worker of its own, and answers what it asks; a `Resident` of the pool.

    Args:
        services: what the game gets: its models and its log.
        quiet: given the seats that wait for the world, returns once nothing is under way in the others that would have
            to be paid for again, before a loss is told. From then on no reply to the world is withheld.
    """

    can_move = False
    is_suspect = True
    """It has a worker of its own, so that whatever ends that is its own doing, unless it comes from outside."""

    def __init__(
        self,
        spec: AdapterSpec,
        seed: int,
        options: Mapping[str, Any],
        *,
        factory: str,
        pool: WorkerPool,
        services: Services,
        on_loss: OnLoss,
        quiet: Quiet | None = None,
    ) -> None:
        self.number = pool.new_number()
        self._spec, self._pool, self._services = spec, pool, services
        self._create = Create(spec_to_json(spec), factory, seed, dict(options), lives=True)
        self._on_loss, self._quiet = on_loss, quiet
        self._link: WorkerLink | None = None
        self._making = asyncio.Lock()
        self._error: Exception | None = None
        self._losing: asyncio.Task[None] | None = None
        self._waiting: set[str] = set()
        """The seats that wait for the end of that."""
        self._more_wait = asyncio.Event()
        self._open: set[_Question] = set()
        self._playing: set[str] = set()
        """The seats whose agents are there."""
        self._moved = time.monotonic()
        """When something was last told or asked."""
        self._arrived: deque[Callable[[], None]] = deque()
        self._all_read = asyncio.Event()
        self._all_read.set()
        self._turns = asyncio.Lock()
        """Held while something that may change the world is sent to it, or a task is alone with it."""
        self._owner: asyncio.Task[Any] | None = None
        """The task that is alone with it."""
        self._backends: dict[int, Backend] = {}
        self._asked: dict[int, asyncio.Task[None]] = {}
        """What the world asked and has no answer to yet."""
        self._giving: dict[int, tuple[TellsWhenGiven, Request]] = {}
        """The requests to models of which the world has not got the answer yet."""

    @property
    def game(self) -> str:
        """The name of its game."""
        return self._spec.name

    @property
    def asked(self) -> tuple[str, float] | None:
        """The oldest unanswered call that waits for nobody, such as "influence", and its seconds."""
        found = [question for question in self._open if not question.waits]
        oldest = min(found, key=lambda question: question.began, default=None)
        return None if oldest is None else (oldest.operation.what, time.monotonic() - oldest.began)

    @property
    def is_held(self) -> bool:
        """Whether its game has not returned for long from a call, and holds its worker."""
        return self._pool.held_by(self) is not None

    # --- calls ------------------------------------------------------------------------------------------

    async def call(self, operation: Operation[Any], told: Told | None = None) -> tuple[Any, bytes | None]:
        """Return the reply to an operation and the text of its observation, if any.

        `told` is called when it reaches the world; for one that is long, when all that was told before has reached it.
        If that is cancelled too late, it returns.

        Raises:
            WsapError: raised by the world.
            WorldInterruptedError: its worker has ended, and the world goes on from its log.
            WorldFailedError: it failed.
        """
        if operation.ends:
            await self._close(operation)
            return None, None
        return await (self._call_long if operation.is_long else self._call)(operation, told)

    async def _call(self, operation: Operation[Any], told: Told | None) -> tuple[Any, bytes | None]:
        async with self._turn() if operation.changes else nullcontext():
            link = await self._ready(operation.at)
            question = self._send(link, operation)
        try:
            if told is not None and await question.taken == TAKEN:
                told()
                told = None
            reply = await question.answer
        except asyncio.CancelledError:
            if operation.changes:
                await self._taken_back(link, question)
            else:
                link.take_back(question.number)
            if told is not None and question.has_been_taken:
                told()
            raise
        finally:
            self._open.discard(question)
        return self._read(question, reply)

    async def _call_long(self, operation: Operation[Any], told: Told | None) -> tuple[Any, bytes | None]:
        async with self.alone():
            link = await self._ready()
            if told is not None:
                told()
            question = self._send(link, operation)
        watching = asyncio.create_task(self._watch(link), name=f"watch over {self.game}")
        try:
            reply = await question.answer
        except asyncio.CancelledError:
            too_late = await self._taken_back(link, question, ends=True)
            if too_late is None or too_late == TAKEN_BACK:
                raise
            reply = too_late
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        finally:
            self._open.discard(question)
            watching.cancel()
        return self._read(question, reply)

    async def _taken_back(self, link: WorkerLink, question: _Question, *, ends: bool = False) -> bytes | None:
        """Cancel a call, and return its reply once the world has none of it under way; None if its worker has ended.

        If the run `ends`, a worker that the game holds is killed.
        """
        link.take_back(question.number)
        answer, both = question.answer, {question.answer, link.ended}
        while not any(each.done() for each in both):
            await asyncio.wait(both, timeout=self._pool.timeouts.beat, return_when=asyncio.FIRST_COMPLETED)
            if ends and self.is_held:
                link.kill("its world was stopped", self.number)
        return answer.result() if answer.done() and answer.exception() is None else None

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Let only the calling task ask, once all that others asked has reached the world."""
        async with self._turn():
            outer, self._owner = self._owner, asyncio.current_task()
            try:
                if outer is None and self._link is not None:
                    await self.call(Reached())
                yield
            finally:
                self._owner = outer

    def _turn(self) -> AbstractAsyncContextManager[object]:
        """Let tasks ask one after the other, in the order in which they came here."""
        return nullcontext() if self._owner is asyncio.current_task() else self._turns

    async def _close(self, operation: Operation[Any]) -> None:
        """Close the world, and kill its worker if the game holds that; otherwise the worker may be used again."""
        self._error = self._error or WorldError(f"This world of {self.game!r} is closed.")
        link, self._link = self._link, None
        await ended(self._losing, *self._asked.values())
        self._fail(self._error)
        if link is not None and not link.gone:
            if self._pool.held_by(self) is not None:
                link.kill("its world was closed", self.number)
            closed: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            link.call(self.number, operation, closed.set_result, self._deadline)
            await asyncio.wait({closed, link.ended}, timeout=CLOSING, return_when=asyncio.FIRST_COMPLETED)
            link.listeners.pop(self.number, None)
        self._pool.leave(self)

    @property
    def _deadline(self) -> float:
        return max(self._pool.timeouts.deadline, self._spec.deadline or 0.0)

    def _send(self, link: WorkerLink, operation: Operation[Any]) -> _Question:
        loop = asyncio.get_running_loop()
        question = _Question(operation, loop.create_future(), loop.create_future())
        self._open.add(question)
        self._moved = time.monotonic()

        def arrived(reply: bytes) -> None:
            both = (question.taken,) if reply == TAKEN else (question.taken, question.answer)
            self._arrive(lambda: _settle(both, reply))

        deadline = None if question.waits else self._deadline
        question.number = link.call(self.number, operation, arrived, deadline)
        return question

    def _read(self, question: _Question, reply: bytes) -> tuple[Any, bytes | None]:
        operation = question.operation
        if reply == TAKEN_BACK:
            raise WorldFailedError(f"The game {self.game!r} cancelled {operation.what}.")
        said, text = read_answer(reply)
        if operation.enters:
            self._playing.add(operation.at)
        elif operation.leaves(said):
            self._playing.discard(operation.at)
        return said, text

    def _arrive(self, deliver: Callable[[], None]) -> None:
        """Deliver what arrived after all that arrived before, each to be recorded before the next."""
        self._moved = time.monotonic()
        self._arrived.append(deliver)
        if self._all_read.is_set():
            self._all_read.clear()
            self._next()

    def _next(self) -> None:
        if not self._arrived:
            self._all_read.set()
            return
        self._arrived.popleft()()
        # A task that waits for this runs in the next turn of the event loop.
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._next)

    async def _watch(self, link: WorkerLink) -> None:
        """Give the world up when a tick takes as long as a call may, while it waits for no seat and no model."""
        while True:
            still = time.monotonic() - self._moved
            deciding = self._playing - {question.operation.at for question in self._open}
            if not deciding and not self._asked and still >= self._deadline:
                link.give_up(self.number, f"a tick waited for nothing for {self._deadline:g} s")
                return
            await asyncio.sleep(self._pool.timeouts.beat)

    # --- its worker ---------------------------------------------------------------------------------------

    async def _ready(self, seat: str = "") -> WorkerLink:
        if self._losing is not None:
            self._waiting.add(seat)
            self._more_wait.set()
        async with self._making:
            if self._losing is not None:
                await asyncio.wait({self._losing})
            if self._error is not None:
                raise _again(self._error)
            if self._link is None:
                await self._make()
        assert self._link is not None
        return self._link

    async def _make(self) -> None:
        link = await self._pool.place(self)
        link.listeners[self.number] = lambda asked: self._arrive(lambda: self._take(link, asked))
        self._link = link
        made: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        link.call(self.number, self._create, made.set_result, CREATION * self._deadline)
        await asyncio.wait({made, link.ended}, return_when=asyncio.FIRST_COMPLETED)
        if not made.done():
            if self._losing is not None:
                await asyncio.wait({self._losing})
            raise _again(self._error or WorldFailedError(f"The game {self.game!r} failed: its process ended."))
        where = f"On {link.where}: " if link.where else ""
        try:
            read_answer(made.result())
        except PluginError as error:
            raise WorldFailedError(f"{where}{error}") from error
        except WorldError:
            raise
        except WsapError as error:
            raise WorldError(f"{where}The game {self.game!r} can't be created: {error}") from error

    def worker_lost(self, link: WorkerLink, why: str, *, to_blame: bool, at_work: bool = False) -> None:
        """Tell all that wait for the world that its worker has ended; see `Resident`."""
        if link is not self._link:
            return
        self._link = None
        self._losing = asyncio.create_task(self._lose(why, to_blame, at_work), name=f"end of {self.game}")

    def game_failed(self, why: str) -> None:
        """Do nothing: it was told of the loss."""

    async def _lose(self, why: str, to_blame: bool, at_work: bool) -> None:
        try:
            await self._all_read.wait()
            if self._quiet is not None:
                await self._until_quiet(self._quiet)
        finally:
            self._error = self._error or self._on_loss(why, to_blame=to_blame, at_work=at_work)
            self._fail(self._error)

    async def _until_quiet(self, quiet: Quiet) -> None:
        while True:
            # An agent that has asked the world something for its decision gets no answer, so nobody may wait for it.
            self._more_wait.clear()
            waiting = self._waiting | {question.operation.at for question in self._open}
            enough = asyncio.create_task(self._enough(quiet, waiting))
            more = asyncio.create_task(self._more_wait.wait())
            try:
                await asyncio.wait({enough, more}, return_when=asyncio.FIRST_COMPLETED)
                if enough.done():
                    enough.result()
                    return
            finally:
                await ended(enough, more)

    async def _enough(self, quiet: Quiet, waiting: Collection[str]) -> None:
        await quiet(waiting)
        if self._asked:  # the log is to have these replies
            await asyncio.wait(set(self._asked.values()))

    def _fail(self, error: Exception) -> None:
        for question in list(self._open):
            for waiting in (question.taken, question.answer):
                if not waiting.done():
                    waiting.set_exception(_again(error))
                    waiting.exception()  # it may have no waiter

    # --- what it asks -------------------------------------------------------------------------------------

    def _take(self, link: WorkerLink, asked: Mapping[str, Any]) -> None:
        what, number = asked["ask"], asked.get("id", 0)
        if what == "no more":
            self._giving.pop(number, None)
            if (task := self._asked.get(number)) is not None:
                task.cancel()
        elif what == "heard":
            if (given := self._giving.pop(number, None)) is not None:
                model, request = given
                model.gave(request)
        elif what == "note":
            try:
                if self._services.log is not None:
                    self._services.log.note(asked["kind"], asked["body"])
            except Exception as error:
                self._end_with(error)
        else:
            task = self._asked[number] = asyncio.create_task(self._serve(link, what, number, asked))
            task.add_done_callback(lambda task: self._served(number))

    def _served(self, number: int) -> None:
        self._asked.pop(number, None)
        self._moved = time.monotonic()

    async def _serve(self, link: WorkerLink, what: str, number: int, asked: Mapping[str, Any]) -> None:
        try:
            said = await self._answer(what, number, asked)
        except StorageError as error:
            self._end_with(error)  # the machine's fault, not the game's
            return
        except WsapError as error:
            said = {"failed": error_body(error)}
        except Exception as error:
            self._end_with(error)
            return
        link.tell(dumps({"op": "told", "world": self.number, "id": number, "said": said}).encode())

    async def _answer(self, what: str, number: int, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        if what == "open":
            models: WorldModels = self._services.require("models")
            backend = await models.open(str(asked["name"]), asked["options"])
            self._backends[number] = backend
            if isinstance(backend, TellsWhenGiven):
                backend.elsewhere = True
            return {"model": backend.model, "abilities": encode(backend.abilities), "backend": number}
        backend, to_send = self._backends[asked["backend"]], read_request(asked["request"])
        if isinstance(backend, TellsWhenGiven):
            self._giving[number] = backend, to_send
        return {"reply": await backend.complete(to_send)}

    def _end_with(self, error: Exception) -> None:
        self._error = self._error or error
        self._fail(self._error)


def _settle(waiting: Iterable[asyncio.Future[bytes]], reply: bytes) -> None:
    for each in waiting:
        if not each.done():
            each.set_result(reply)


def _again(error: Exception) -> Exception:
    return own_copy(error) if isinstance(error, WorldError) else error
