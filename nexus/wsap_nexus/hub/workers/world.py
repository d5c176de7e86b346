"""A world in a worker, with the face of any other; it outlives the worker."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

from wsap_core.errors import PluginError, WireError, WorldError, WsapError
from wsap_core.models import Avatar, AvatarSpec, DeathEvent, Entry, Receipt, TransitPackage, View
from wsap_core.specs import AdapterSpec, resolve
from wsap_core.wire import Codec
from wsap_nexus.hub.errors import WorldFailedError
from wsap_nexus.hub.workers import journal as journals
from wsap_nexus.hub.workers.frames import FAILED, TAKEN_BACK, read_answer, request
from wsap_nexus.hub.workers.host import spec_to_json
from wsap_nexus.hub.workers.journal import Journal
from wsap_nexus.hub.workers.link import Link
from wsap_nexus.hub.workers.pool import CREATION, WorkerPool
from wsap_nexus.hub.workers.seat import WorkerSeat

# Any, in this module: JSON.

T = TypeVar("T")

SNAPSHOT_EVERY = 50
"""Steps between two saved states of a world."""
CLOSING = 5.0
"""Seconds that a game has to close; it is not waited for any longer."""
AGAIN = 20
"""How often a world is brought back without getting on, if it is not to blame for it."""

OnFailure = Callable[["WorkerWorld", WorldFailedError], None]


class WorkerLostError(WorldFailedError):
    """The worker is gone in the middle of it. Never leaves this package."""


class WorkerWorld:
    """A world in one of the pool's workers. When the worker is lost, it is made again in another.

    Args:
        spec: the game.
        seed: of the world.
        options: the game's own.
        factory: what names the game in any process.
        pool: the workers.
        on_failure: told each time the world brought its worker down.
        snapshot_every: steps between two saved states.
    """

    def __init__(
        self,
        spec: AdapterSpec,
        seed: int,
        options: Mapping[str, Any],
        *,
        factory: str,
        pool: WorkerPool,
        on_failure: OnFailure | None = None,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> None:
        self.number = pool.new_number()
        """Its number in the pool."""
        self.failures = 0
        """How often it brought its worker down."""
        self.rebuilt = 0
        """How often it was made again."""
        self._spec = spec
        self._create = {"spec": spec_to_json(spec, factory), "seed": seed, "options": dict(options)}
        self._pool = pool
        self._on_failure = on_failure
        self._every = snapshot_every
        self._can_snapshot = "snapshot" in spec.abilities
        self._journal = Journal()
        self._reads: list[journals.Entry] = []
        self._seats: dict[str, WorkerSeat] = {}
        self._begun_with: int = seed
        self._steps = 0
        self._saving = False
        self._pondering: set[str] = set()
        self._unsettled: set[str] = set()
        self._generation = 0
        self._link: Link | None = None
        self._coming: asyncio.Task[None] | None = None
        self._replies: set[asyncio.Future[bytes]] = set()
        self._dead: WorldError | None = None
        self._cause: WorldFailedError | None = None
        self._blamed_in_row = 0
        self._lost_in_row = 0

    # --- the face of a world ------------------------------------------------------------------------

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        return self._spec

    @property
    def can_snapshot(self) -> bool:
        """Whether its state can be taken and given back."""
        return self._can_snapshot

    @property
    def last_state(self) -> bytes | None:
        """The newest state that was saved on the way."""
        return None if self._journal.state is None else base64.b64decode(self._journal.state)

    async def begin(self, seed: int) -> None:
        """Begin the first episode."""
        self._begun_with = seed
        said = await self.ask("begin", seed=seed)
        self._can_snapshot = bool(said["can_snapshot"])
        self._take_states(said["seats"])

    async def open_seat(self, agent_id: str) -> WorkerSeat:
        """Bind an agent to the avatar it has, or a new one."""
        said = await self.ask("open_seat", seat=agent_id)
        # An agent that comes back gets a seat of its own, as in any world.
        self._seats.pop(agent_id, None)
        seat = self._seats[agent_id] = WorkerSeat(self, agent_id, said)
        return seat

    async def avatars(self, agent_id: str) -> Sequence[Avatar]:
        """Return the bodies that an agent has."""
        said = await self.ask("avatars", changes=False, agent=agent_id)
        return [self.decode(Avatar, body) for body in said]

    async def create_avatar(self, agent_id: str, wanted: AvatarSpec) -> Avatar | None:
        """Make a body, if the game has bodies of its own."""
        said = await self.ask("create_avatar", agent=agent_id, wanted=wanted)
        return None if said is None else self.decode(Avatar, said)

    async def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        """Let skills and items in."""
        said = await self.ask("admit", avatar=avatar_id, entry=entry)
        self._take_states(said["seats"])
        return self.decode(Receipt, said["receipt"])

    async def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        """Take out what is portable."""
        return self.decode(TransitPackage, await self.ask("release", avatar=avatar_id, transfer=transfer_id))

    async def death(self, avatar_id: str) -> DeathEvent | None:
        """Return what happened to a destroyed body."""
        said = await self.ask("death", avatar=avatar_id)
        return None if said is None else self.decode(DeathEvent, said)

    async def respawn(self, agent_id: str, avatar_id: str, option: str) -> str:
        """Bring a destroyed body back."""
        said = await self.ask("respawn", agent=agent_id, avatar=avatar_id, option=option)
        self._take_states(said["seats"])
        return str(said["message"])

    async def snapshot(self) -> bytes:
        """Return the whole state."""
        await self._ready()
        position = self._journal.position if self._is_settled else None
        seats, generation = list(self._seats), self._generation
        state = str(await self.ask("snapshot", changes=False))
        if position is not None and generation == self._generation:
            self._journal.rebase(state, seats, position)
            self._steps = 0
        return base64.b64decode(state)

    async def restore(self, data: bytes) -> None:
        """Become what the snapshot was taken of."""
        said = await self.ask("restore", state=base64.b64encode(data).decode("ascii"))
        self._take_states(said["seats"])

    async def render(self) -> View | None:
        """Return what a viewer can draw."""
        said = await self.ask("render", changes=False)
        return None if said is None else self.decode(View, said)

    async def close(self) -> None:
        """Let go of it; the worker stays for others."""
        link, self._link = self._link, None
        self._dead = self._dead or WorldError(f"This world of {self._spec.name!r} is closed.")
        if self._coming is not None:
            self._coming.cancel()
        self._give_up(self._dead)
        if link is not None and not link.gone:
            closed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self._call(link, request("close", self.number), partial(_settle, closed), self._deadline)
            await asyncio.wait({closed, link.ended}, timeout=CLOSING, return_when=asyncio.FIRST_COMPLETED)
        self._pool.leave(self)

    # --- asking -----------------------------------------------------------------------------------------

    async def ask(self, op: str, *, changes: bool = True, **values: Any) -> Any:
        """Ask the world and return what it says; made again elsewhere if the worker is lost meanwhile.

        Raises:
            WsapError: what the world raised.
            WorldFailedError: it can't be brought back.
        """
        said, _ = await self.ask_seat(op, changes=changes, **values)
        return said

    async def ask_seat(
        self, op: str, *, changes: bool = True, waits: bool = False, **values: Any
    ) -> tuple[Any, bytes | None]:
        """Ask as `ask` does, and return the text of the observation that goes with the answer, too.

        Args:
            op: what is asked.
            changes: whether it may change the world.
            waits: whether it may wait for other seats.
            values: what the operation takes.
        """
        await self._ready()
        what = f"{op} of {values['seat']!r}" if "seat" in values else op
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        deadline = None if waits and self._spec.seats[1] > 1 else self._deadline
        seat = str(values.get("seat", ""))
        entry = journals.Entry(request(op, self.number, **values), what, answer, deadline, seat)
        self._follow(op, seat)
        if changes:
            self._journal.ask(entry)
        else:
            self._reads.append(entry)
        self._transmit(entry)
        try:
            reply = await answer
        except asyncio.CancelledError:
            self._take_back(entry)
            raise
        if reply[:1] == TAKEN_BACK:
            raise WorldFailedError(f"The game {self._spec.name!r} gave up on {what}.")
        return read_answer(reply)

    def decode(self, cls: type[T], said: Any) -> T:
        """Return what the world said as a protocol type.

        Raises:
            WorldFailedError: it is none.
        """
        try:
            return self.codec.decode(cls, said, where="world's answer")
        except WireError as error:
            raise WorldFailedError(f"The game {self._spec.name!r} broke the protocol: {error}") from error

    @cached_property
    def codec(self) -> Codec:
        """What reads the game's messages; types that can't be loaded here are read as what they extend."""
        known = []
        for reference in self._spec.wire_types:
            try:
                known.append(resolve(reference))
            except WsapError:
                continue
        return Codec(known)

    @property
    def _deadline(self) -> float:
        return max(self._pool.patience.deadline, self._spec.deadline or 0.0)

    def _follow(self, op: str, seat: str) -> None:
        """Keep in mind which seats are at something that no saved state tells of."""
        if op == "observe":
            self._pondering.add(seat)
        elif op in ("resolve", "leave"):
            self._pondering.discard(seat)
        if op == "leave":
            self._unsettled.discard(seat)
        elif op in ("begin", "restore"):
            self._pondering.clear()
            self._unsettled.clear()

    @property
    def _is_settled(self) -> bool:
        """Whether a state that is saved now is all there is to know.

        It is not while a call is open, nor while a seat has seen its turn and not acted, because many a game
        keeps in mind who has seen which round; nor while it is unknown what is left of a move taken back.
        """
        return not (self._journal.open or self._pondering or self._unsettled)

    def _transmit(self, entry: journals.Entry) -> None:
        if self._link is not None:
            entry.number = self._call(self._link, entry.content, partial(self._on_reply, entry), entry.deadline)

    def _call(self, link: Link, content: bytes, on_reply: Callable[[bytes], None], deadline: float | None) -> int:
        return link.call(self.number, content, on_reply, deadline)

    def _on_reply(self, entry: journals.Entry, reply: bytes) -> None:
        self._blamed_in_row = self._lost_in_row = 0
        if entry in self._reads:
            self._reads.remove(entry)
        else:
            self._journal.answer(entry, reply)
            self._steps += 1
        _settle(entry.answer, reply)
        # Each step is observed and resolved.
        due = self._can_snapshot and 0 < 2 * self._every <= self._steps
        if due and self._is_settled and not self._saving and not self._is_coming:
            self._save()

    def _take_back(self, entry: journals.Entry) -> None:
        if entry in self._reads:
            self._reads.remove(entry)
        elif not entry.answered and self._dead is None:
            self._journal.take_back(entry)
            self._unsettled.add(entry.seat)
        else:
            return
        if self._link is not None and not self._is_coming:
            self._link.take_back(entry.number)

    def _save(self) -> None:
        """Have the state saved as it is after everything that was answered; nobody waits for it."""
        if self._link is None:
            return
        position, seats = self._journal.position, list(self._seats)

        def saved(reply: bytes) -> None:
            self._saving = False
            self._steps = 0
            if reply[:1] == FAILED:
                self._every = 0  # then everything is kept from here on
            else:
                self._journal.rebase(read_answer(reply)[0], seats, position)

        self._saving = True
        self._call(self._link, request("snapshot", self.number), saved, self._deadline)

    def _take_states(self, states: Mapping[str, Any]) -> None:
        for name, state in states.items():
            if name in self._seats:
                self._seats[name].take_state(state)

    # --- losing the worker, and coming back -----------------------------------------------------------

    def worker_lost(self, link: Link, why: str, *, to_blame: bool) -> None:
        """Begin to come back in another worker, if anybody waits for an answer; else when somebody asks."""
        if link is not self._link:
            return
        self._link, self._saving = None, False
        self._generation += 1
        self._lost_in_row += 1
        self._cause = WorldFailedError(f"The game {self._spec.name!r} failed: {why}.")
        if to_blame:
            self.failures += 1
            self._blamed_in_row += 1
            self._cause.counted = True
        for reply in list(self._replies):
            if not reply.done():
                reply.set_exception(WorkerLostError(str(self._cause)))
                reply.exception()  # not everyone who could be told is waiting
        if (self._journal.open or self._reads) and not self._is_coming and self._dead is None:
            self._coming = asyncio.create_task(self._come(), name=f"bring back {self._spec.name}")
        if to_blame and self._on_failure is not None:
            self._on_failure(self, self._cause)

    @property
    def _is_coming(self) -> bool:
        return self._coming is not None and not self._coming.done()

    async def _ready(self) -> None:
        """Return when the world is in a worker, and what it was before."""
        while self._link is None or self._is_coming:
            if self._dead is not None:
                break
            if not self._is_coming:
                self._coming = asyncio.create_task(self._come(), name=f"bring {self._spec.name}")
            assert self._coming is not None  # made just now, or on its way
            await asyncio.wait({self._coming})
        if self._dead is not None:
            raise _again(self._dead)

    async def _come(self) -> None:
        """Make the world in a worker and bring it to where it was; try again if that worker is lost, too."""
        while self._dead is None:
            if self._blamed_in_row > 1 or self._lost_in_row > AGAIN:
                self._die(self._cause or WorldFailedError(f"The game {self._spec.name!r} failed."))
                return
            try:
                await self._make()
            except WorkerLostError:
                continue
            except PluginError as error:
                self._die(WorldFailedError(str(error)))
            except WorldError as error:
                self._die(error)
            except WsapError as error:
                failed = WorldError(f"The game {self._spec.name!r} can't be made: {error}")
                failed.__cause__ = error
                self._die(failed)
            except Exception as error:
                self._die(WorldFailedError(f"The game {self._spec.name!r} can't be brought back: {error!r}"))
            return

    async def _make(self) -> None:
        link = await self._pool.place(self)
        if link.gone:
            raise WorkerLostError("lost at once")
        self._link = link
        await self._say("create", CREATION, **self._create)
        journal = self._journal
        self.rebuilt += 1 if journal.position else 0
        if journal.state is not None:
            await self._say("begin", seed=self._begun_with)
            for name in journal.seats:
                await self._say("open_seat", seat=name)
            await self._say("restore", state=journal.state)
        await self._go_through(link)
        for entry in self._reads:
            self._transmit(entry)

    async def _go_through(self, link: Link) -> None:
        """Make all calls of the journal again, in the order in which everything happened, and compare."""
        repeated: dict[int, asyncio.Future[bytes]] = {}
        done = 0
        while done < len(self._journal.events):
            kind, entry = self._journal.events[done]
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
                        f"The game {self._spec.name!r} did not go the same way again at {entry.what}, so what it was "
                        "can't be brought back; is something in it left to chance?"
                    )

    def _repeat(self, link: Link, entry: journals.Entry) -> asyncio.Future[bytes]:
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        entry.number = self._call(link, entry.content, partial(_settle, reply), entry.deadline)
        self._replies.add(reply)
        return reply

    async def _say(self, op: str, times: float = 1.0, **values: Any) -> Any:
        """Ask for what brings the world back; it stands in no journal."""
        if self._link is None:
            raise WorkerLostError("lost")
        reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._replies.add(reply)
        self._call(self._link, request(op, self.number, **values), partial(_settle, reply), self._deadline * times)
        return read_answer(await self._reply(reply))[0]

    async def _reply(self, reply: asyncio.Future[bytes]) -> bytes:
        if self._link is None:
            raise WorkerLostError("lost")
        try:
            return await reply
        finally:
            self._replies.discard(reply)

    def _die(self, error: WorldError) -> None:
        """Be no more: whoever waits, and whoever asks from now on, is told why."""
        self._dead = error
        self._give_up(error)

    def _give_up(self, error: WorldError) -> None:
        waiting = [entry for kind, entry in self._journal.events if kind == "asked" and not entry.answered]
        for entry in (*waiting, *self._reads):
            if not entry.answer.done():
                entry.answer.set_exception(_again(error))
        self._reads.clear()


def _settle(waiting: asyncio.Future[Any], reply: bytes) -> None:
    if not waiting.done():
        waiting.set_result(reply)


def _again(error: WorldError) -> WorldError:
    """Return an error of its own for each who is told, so that none carries another's history."""
    own = type(error)(str(error))
    own.__cause__ = error.__cause__
    if isinstance(own, WorldFailedError) and isinstance(error, WorldFailedError):
        own.counted = error.counted
    return own
