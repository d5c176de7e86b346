"""A world's own model calls, recorded in the event log of its run and replayed from it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

from wsap_core.errors import RecordMismatchError, WireError
from wsap_core.protocol.wire import encode
from wsap_core.seams.model import Abilities, Backend, OnText, Reply, Request
from wsap_core.seams.model_errors import PAUSES, BackendError
from wsap_core.seams.options import with_prefix
from wsap_core.seams.services import Services, WorldModels
from wsap_core.untrusted import single_line
from wsap_llm.keys import request_key
from wsap_llm.middleware import Model, each_sent
from wsap_llm.middleware.record import failure_of
from wsap_llm.secrets import clean, secrets_in
from wsap_nexus.runs.record.journal import read_reply
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.replay_order import ReplayOrder
from wsap_nexus.runs.record.tally import NO_WORLD_USAGE, WorldUsage
from wsap_nexus.store.history import LATE
from wsap_nexus.store.records import EventRecord
from wsap_nexus.tasks import ended

WORLD_CALLS = ("asked", "call", "failure", "given", "model", "step", "tick", "run", "rewound")
"""Kinds of events that replaying a world's calls needs."""

Answer = Reply | BackendError
"""The outcome of a call."""


@dataclass(frozen=True)
class Recorded:
    """A recorded call."""

    request: str
    """The request's hash."""
    answer: Answer
    late: bool = False
    """Whether it was made before the run was rewound, so that a replay has recorded it already."""
    given: int = -1
    """The event after which the world had the answer."""
    tick: int = 0
    """The tick in which it was made, of a world that lives."""


@dataclass
class _Part:
    """The recorded calls of a unit: up to the next tick of a world that lives, or the next step of any other."""

    tick: int = 0
    """The tick that it leads to, of a world that lives."""

    kept: list[tuple[str, Recorded]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    """All requests, answered or not."""
    models: dict[str, Abilities] = field(default_factory=dict)
    settled: bool = False
    """Whether their tick or step is recorded, too."""
    rewound: bool = False
    """Whether the run was rewound at its end."""


class WorldJournal:
    """Records the model calls of a run's world, and replays those recorded before.

    An answer is found by the request's key. Until the tick or step that it leads to is recorded, its request must also
    have the same hash, since the world may have changed meanwhile. Afterwards the key suffices, and the recorded tick
    or step tells whether the world is still the same. A request without a key is found by its hash.

    A world that lives may begin a tick again, so within a tick each key and request has one answer, which is given as
    often as it is asked for. In other worlds each recorded answer is given once, in order. A replay gives it to a world
    that lives when it is its turn in the `order` of what the world was told.

    The record is read lazily, up to the next rewind.

    Args:
        past: recorded events of the kinds `WORLD_CALLS`, oldest first.
        offline: no model may be called: a recorded run is replayed.
        strict: a request must have the recorded hash at any time.
        lives: the world lives, so that only a tick settles calls.
        usage: the usage of the world's calls so far.
    """

    def __init__(
        self,
        recorder: Recorder,
        past: Iterable[EventRecord] = (),
        *,
        offline: bool = False,
        strict: bool = False,
        lives: bool = False,
        usage: WorldUsage = NO_WORLD_USAGE,
    ) -> None:
        self.offline = offline
        """Whether a recorded run is replayed."""
        self.usage = usage
        """The usage of the world's calls so far."""
        self.order: ReplayOrder | None = None
        """The recorded order of what the world was told, in a run with seats."""
        self._recorder = recorder
        self._strict = strict
        self._lives = lives
        self._parts = _read(past, lives=lives)
        self._unreadable: Exception | None = None
        self._kept: dict[str, list[Recorded]] = {}
        self._settled: set[str] = set()
        self._models: dict[str, Abilities] = {}
        self._lost: Counter[str] = Counter()
        self._asking: list[str] = []
        self._telling: asyncio.Future[None] | None = None
        self._rewound = False
        self._tick = 0
        self._flights: dict[tuple[str, str], asyncio.Task[Answer]] = {}
        self._asked = 0
        self._ungiven: dict[tuple[str, str], int] = {}  # key and request -> the event of the answer

    @property
    def asks(self) -> bool:
        """Whether the world waits for a model."""
        return self._asked > 0

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Count a request to a model as open within the block."""
        self._asked += 1
        try:
            yield
        finally:
            self._asked -= 1

    def find(self, key: str, request: str) -> Recorded | None:
        """Return the recorded answer to a request; None if the model has to be called.

        Raises:
            RecordMismatchError: offline, no answer is recorded, or, if `strict`, only one to another request.
        """
        name = key or request
        again = self._lives and bool(key)
        while True:
            kept = self._kept.get(name, [])
            same = [each for each in kept if each.request == request]
            if same:
                return replace(same[-1], given=same[0].given) if again else self._take(name, same[0])
            if (again and name in self._settled) or not self._read_on():
                break
        if kept and name in self._settled and not self._strict:
            return replace(kept[-1], given=kept[0].given) if again else self._take(name, kept[0])
        if kept and self.offline:
            raise RecordMismatchError(
                f"The world's request {single_line(name)[:80]} to its model differs from the recorded one. "
                "Have the game or its options changed?"
            )
        if self.offline:
            raise RecordMismatchError(
                f"The recorded run has no reply to the world's request {single_line(name)[:80]} to its model: it ends "
                "earlier, or the game has changed."
            )
        return None

    async def is_due(self, found: Recorded) -> None:
        """Return once a recorded answer may be given to the world again."""
        if self._lives and self.order is not None and not found.late:
            await self.order.reply_is_due(found.given)

    def gave(self, key: str, request: str) -> None:
        """Note that the world gets an answer, in the log if the order of a replay could not be told without that."""
        answered = self._ungiven.pop((key, request), None)
        if answered is not None and self._recorder.moved > answered:
            self._recorder.write("given", {"key": key, "request": request})

    def ends(self) -> None:
        """Note that a tick is over, before it is recorded: what was answered in vain was not given before its end."""
        for key, request in list(self._ungiven):
            self.gave(key, request)

    def passed(self, tick: int) -> None:
        """Note that a tick is over, and forget the answers that nothing asks for any more."""
        self._tick = tick
        old = [name for name, kept in self._kept.items() if kept[-1].tick <= tick - LATE]
        for name in old:
            del self._kept[name]
        self._settled.difference_update(old)

    async def ask(self, key: str, request: str) -> None:
        """Record a request before it is sent, in one event with concurrent ones, and return when that is committed.

        So requests in flight when the process dies are known, and counted when they are repeated.
        """
        self._asking.append(key or request)
        if self._telling is None:
            self._telling = asyncio.ensure_future(self._tell_asking())
        await asyncio.shield(self._telling)

    async def reply(self, key: str, request: str, model: str, purpose: str, reply: Reply) -> None:
        """Record a reply, and return when it is committed."""
        body = {"key": key, "request": request, "model": model, "purpose": purpose, "reply": reply}
        if times := self._lost.pop(key or request, 0):
            body["again"] = times
        self.usage = WorldUsage(self.usage.usage + reply.usage, self.usage.asked_again + times)
        self._recorder.write("call", body)
        self._answered(key, request)
        if not self.offline:
            if self._lives and key:
                recorded = Recorded(request, reply, given=self._recorder.latest, tick=self._tick + 1)
                self._kept.setdefault(key, []).append(recorded)
            await self._recorder.committed()

    async def fail(self, key: str, request: str, model: str, error: BackendError) -> None:
        """Record a failure, and return when it is committed."""
        self._lost.pop(key or request, None)
        body = {"key": key, "request": request, "model": model, "failed": type(error).__name__, "words": str(error)}
        self._recorder.write("failure", body)
        self._answered(key, request)
        if not self.offline:
            await self._recorder.committed()

    def _answered(self, key: str, request: str) -> None:
        if self._lives and key and self.order is not None:
            self._ungiven[key, request] = self._recorder.latest

    async def once(self, key: str, request: str, asked: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
        """Return the answer of a model, which is asked and recorded even if nobody waits for it any more.

        A tick of a world that lives may be begun again, or fail, while its calls are in flight: they are paid, so the
        same request under the same key gets the answer that is on its way.
        """
        if not (self._lives and key):
            return await asked()
        flight = self._flights.get((key, request))
        if flight is None:
            flight = self._flights[key, request] = asyncio.create_task(asked())
            flight.add_done_callback(lambda done: self._landed((key, request), done))
        return await asyncio.shield(flight)

    def _landed(self, name: tuple[str, str], flight: asyncio.Task[Answer]) -> None:
        if self._flights.get(name) is flight:
            del self._flights[name]
        if not flight.cancelled():
            flight.exception()  # nobody may be waiting

    async def all_landed(self) -> None:
        """Return once no call is in flight."""
        while self._flights:
            await asyncio.wait(self._flights.values())

    async def close(self) -> None:
        """Call off the calls in flight."""
        await ended(*self._flights.values())

    def note_model(self, address: str, abilities: Abilities) -> None:
        """Record a model's abilities, as prompts may depend on them."""
        if self.offline or self._models.get(address) != abilities:
            self._models[address] = abilities
            self._recorder.write("model", {"model": address, "abilities": encode(abilities)})

    def abilities(self, address: str) -> Abilities:
        """Return a model's recorded abilities; RecordMismatchError if the recorded world did not use it."""
        while address not in self._models:
            if not self._read_on():
                raise RecordMismatchError(
                    f"The recorded world did not use the model {single_line(address)[:80]}. "
                    "Have the game or its options changed?"
                )
        return self._models[address]

    def rewind(self) -> None:
        """Forget the calls recorded before the run was rewound: the numbers of ticks repeat from here on."""
        while self._read_on():
            pass
        self._rewound = False
        self._kept.clear()
        self._settled.clear()
        self._lost.clear()
        self._ungiven.clear()

    async def _tell_asking(self) -> None:
        asking, self._asking, self._telling = self._asking, [], None
        self._recorder.asked(asking)
        await self._recorder.committed()

    def _take(self, name: str, found: Recorded) -> Recorded:
        """Take out an answer with those before it, and return it."""
        kept = self._kept[name]
        del kept[: kept.index(found) + 1]
        if not kept:
            del self._kept[name]
        return found

    def _read_on(self) -> bool:
        """Read the next part of the record; return False if there is none before the next rewind.

        What could not be read once is not read again: without it, nothing that comes later could be trusted.
        """
        if self._unreadable is not None:
            raise self._unreadable
        try:
            part = None if self._rewound else next(self._parts, None)
        except Exception as error:
            self._unreadable = error
            raise
        if part is None:
            return False
        self._models |= part.models
        self._rewound = part.rewound
        self._lost.update(part.asked)
        for name, kept in part.kept:
            self._lost.pop(name, None)
            if self._lives and not part.settled and not isinstance(kept.answer, Reply):
                continue  # it may have ended an attempt at the tick, which is made anew
            self._kept.setdefault(name, []).append(replace(kept, tick=part.tick))
            if part.settled:
                self._settled.add(name)
            elif self._lives and not self.offline and name != kept.request:
                self._ungiven[name, kept.request] = kept.given
        return True


class JournalledModels:
    """The service `models` in a game's context, whose calls are recorded."""

    def __init__(self, models: WorldModels, journal: WorldJournal | None = None) -> None:
        self._models = models
        self.journal = journal
        """Records the calls; None until the world belongs to a run."""

    async def open(self, name: str, options: Mapping[str, Any] | None = None) -> Backend:
        """Return the model of an address; see `wsap_core.seams.services.WorldModels`.

        Raises:
            RecordMismatchError: offline, the model was not opened in the recorded run.
            WsapError: there is no such backend, or it can't be used.
        """
        name, journal = name.strip(), self.journal
        backend = None
        if journal is not None and journal.offline:
            abilities = journal.abilities(name)
        else:
            backend = await self._models.open(name, options)
            abilities = backend.abilities
        if journal is not None:
            journal.note_model(name, abilities)
        return _WorldModel(name, abilities, backend, self, secrets_in(with_prefix(options or {}, "model.")))


def journalled(services: Services, journal: WorldJournal | None = None) -> Services:
    """Return services for a game with its model calls journalled; the journal may be set later."""
    if services.models is None and (journal is None or not journal.offline):
        return services
    return replace(services, models=JournalledModels(cast(WorldModels, services.models), journal))


class _WorldModel:
    """A model whose calls are journalled; the run closes it."""

    def __init__(
        self, model: str, abilities: Abilities, backend: Backend | None, owner: JournalledModels, secrets: Sequence[str]
    ) -> None:
        self.model = model
        self.abilities = abilities
        self._backend = backend
        self._owner = owner
        self._secrets = secrets
        self.elsewhere = False
        """Whether the world is in another process; then `gave` is called when it gets an answer there."""

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        journal = self._owner.journal
        asked = self._asked(request, on_text) if journal is None else self._journalled(request, on_text, journal)
        answer = await asked
        if not self.elsewhere:
            self.gave(request)
        if isinstance(answer, BackendError):
            raise answer
        return answer

    def gave(self, request: Request) -> None:
        """Note that the world gets the answer to a request."""
        if self._owner.journal is not None and request.key:
            self._owner.journal.gave(request.key, request_key(self.model, request))

    async def _journalled(self, request: Request, on_text: OnText | None, journal: WorldJournal) -> Answer:
        digest = request_key(self.model, request)
        found = journal.find(request.key, digest)
        if found is None:
            return await journal.once(request.key, digest, partial(self._call, request, on_text, journal, digest))
        await journal.is_due(found)
        if found.late or not journal.offline:
            return found.answer
        return await self._recorded(request, journal, digest, found.answer)

    async def _call(self, request: Request, on_text: OnText | None, journal: WorldJournal, digest: str) -> Answer:
        told = False

        async def tell() -> None:
            nonlocal told
            if not told:
                told = True
                await journal.ask(request.key, digest)

        @asynccontextmanager
        async def sending() -> AsyncIterator[None]:
            await tell()
            yield

        if not isinstance(self._backend, Model):
            await tell()
        with journal.asking():
            with each_sent(sending):
                answer = await self._asked(request, on_text)
            return await self._recorded(request, journal, digest, answer)

    async def _recorded(self, request: Request, journal: WorldJournal, digest: str, answer: Answer) -> Answer:
        if isinstance(answer, BackendError):
            await journal.fail(request.key, digest, self.model, answer)
        else:
            await journal.reply(request.key, digest, self.model, request.purpose, answer)
        return answer

    async def _asked(self, request: Request, on_text: OnText | None) -> Answer:
        """Return the model's answer; an error that pauses the run, such as a reached limit, is raised instead."""
        try:
            return await cast(Backend, self._backend).complete(request, on_text)
        except PAUSES:
            raise
        except BackendError as error:
            clean(error, self._secrets)
            return error

    async def aclose(self) -> None:
        """Do nothing: other parts of the run may use the same model."""


def _read(events: Iterable[EventRecord], *, lives: bool) -> Iterator[_Part]:
    part, rewound = _Part(tick=1), -1
    for event in events:
        if event.kind == "tick" or (event.kind == "step" and not lives):
            part.settled = True
            part.tick = event.step or 0
            yield part
            part = _Part(tick=part.tick + 1)
        elif event.kind == "rewound":
            part.rewound, rewound = True, event.seq
            yield part
            part = _Part(tick=int(event.data["to"]) + 1)
        elif event.seat is None:
            try:
                _add(part, event.kind, event.data, event.seq, late=event.seq < rewound)
            except (KeyError, TypeError) as error:
                raise WireError(f"Event {event.seq} of the run, a world's call, is damaged: {error}.") from error
    yield part


def _add(part: _Part, kind: str, data: Mapping[str, Any], seq: int, *, late: bool) -> None:
    name = str(data.get("key") or data.get("request"))
    match kind:
        case "asked":
            part.asked += data["keys"]
        case "call":
            part.kept.append((name, Recorded(data["request"], read_reply(data["reply"]), late, seq)))
        case "failure":
            failed = failure_of(data["failed"], data["words"])
            part.kept.append((name, Recorded(data["request"], failed, late, seq)))
        case "given":
            part.kept = [
                (each, replace(kept, given=seq) if (each, kept.request) == (name, data["request"]) else kept)
                for each, kept in part.kept
            ]
        case "model":
            part.models[data["model"]] = Abilities(**data["abilities"])
        case "run" if "error" in data:
            # The run ended with an error: repeat failed calls, and keep replies.
            part.kept = [each for each in part.kept if isinstance(each[1].answer, Reply)]
