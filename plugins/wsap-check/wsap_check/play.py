"""Plays a world as the runtime does, each seat in its own loop, and records every step."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar, cast

from wsap_check.raised import called, describe
from wsap_check.steps import Step, first_difference, fresh_text, place
from wsap_check.subject import TICKING, Fault, Notes, NothingToCheck, Subject
from wsap_core.authoring.rounds import RoundGame
from wsap_core.errors import WsapError
from wsap_core.protocol import AVATAR_ACTIONS, Action, ActionDef, ActionResult, Observation
from wsap_core.protocol.availability import choices_of
from wsap_core.sampling import sample
from wsap_core.seams.context import derive_seed
from wsap_core.seams.game import Lives
from wsap_core.worlds import GAME_OVER, Seat, World
from wsap_core.worlds.legality import narrowed
from wsap_core.worlds.mailbox import SHARED_NAMES

T = TypeVar("T")

_OVERTIME = 200
"""Additional steps after which play stops although a seat waits for its result: in turns, and where some seats are
asked often in a round, one always does."""
_SOON = 10
"""The same where what play of a few steps leaves is used on, and where a check asks for fewer steps than these, as of a
slow game."""
_SPINS = 20
"""Turns of the event loop after which all that does not wait is done."""

Chooser = Callable[[Seat, Observation], Action | Awaitable[Action]]
"""Decides for a seat."""

Mood = Literal["any", "mixed", "available"]


class RandomPlayer:
    """Picks among a game's own actions, with a generator per seat: `any` declared, `available`, or 75 % available
    ones (`mixed`)."""

    def __init__(self, seed: int, mood: Mood = "mixed") -> None:
        self._seed = seed
        self._mood = mood
        self._generators: dict[str, random.Random] = {}

    def __call__(self, seat: Seat, observation: Observation) -> Action:
        """Return the seat's next action."""
        if seat.agent_id not in self._generators:
            self._generators[seat.agent_id] = random.Random(derive_seed(self._seed, seat.agent_id))
        generator = self._generators[seat.agent_id]
        candidates = own_actions(seat)
        if self._mood == "available" or (self._mood == "mixed" and generator.random() < 0.75):
            closed = {a.name for a in observation.available_actions or () if not a.available}
            candidates = [a for a in candidates if a.name not in closed] or candidates
        return fill(offered(candidates[generator.randrange(len(candidates))], observation), generator)


def own_actions(seat: Seat) -> list[ActionDef]:
    """Return the game's own actions, without avatar and message actions unless there are no others."""
    declared = [a for a in seat.action_space.actions if a.name in seat.own_actions]
    return [a for a in declared if a.name not in SHARED_NAMES] or declared or list(AVATAR_ACTIONS.actions[1:])


def offered(definition: ActionDef, observation: Observation) -> ActionDef:
    """Return an action narrowed to the parameter values that are possible now."""
    told = observation.is_available(definition.name)
    return definition if told is None else narrowed(definition, choices_of(told))


def fill(definition: ActionDef, generator: random.Random) -> Action:
    """Return an action with random valid parameters."""
    wanted = [p for p in definition.parameters if not p.optional or generator.random() < 0.5]
    return Action(definition.name, {p.name: sample(p.json_schema(), generator) for p in wanted})


@dataclass
class _Run:
    """The shared state of the seats' loops."""

    choose: Chooser
    steps: int
    each: Callable[[Step], None] | None
    trace: list[Step]
    overtime: int | None
    """Additional steps after which play stops although a seat waits; None to play until none does."""
    doing: dict[str, str] = field(default_factory=dict)

    def enough(self, overtime: int = 0) -> bool:
        return len(self.trace) >= self.steps + overtime

    def stopping(self) -> bool:
        late = self.overtime is not None and self.enough(self.overtime)
        return self.enough() and (late or "acting" not in self.doing.values())


class Table:
    """A world with all its seats taken: a fresh one, or `world`, whose seats must be free. `seed` is by default the
    subject's, `seats` the game's minimum."""

    def __init__(
        self, subject: Subject, seed: int | None = None, *, seats: int = 0, world: World | None = None
    ) -> None:
        self.subject = subject
        self.seed = subject.seed if seed is None else seed
        self.episode = 0
        self.world = world or subject.world(self.seed)
        names = subject.spec.names_of_seats(seats or max(1, subject.spec.seats[0]))
        self.seats = [self.world.open_seat(name) for name in names]
        self._numbers: dict[str, int] = {}
        self._ticks: asyncio.Task[None] | None = None

    @property
    def seat(self) -> Seat:
        """The first seat."""
        return self.seats[0]

    @property
    def over(self) -> bool:
        """Whether the episode is over for every seat."""
        return all(seat.done or seat.left is not None for seat in self.seats)

    async def begin(self, seed: int | None = None) -> Table:
        """Start an episode (by default of the table's seed) and return the table."""
        self._numbers = {}
        if self._ticks is not None:
            self._ticks.cancel()
            await asyncio.gather(self._ticks, return_exceptions=True)
            self._ticks = None
        await self.world.reset(seed=self.seed if seed is None else seed)
        self._live()
        return self

    def _live(self) -> None:
        """Start the ticks of a world that lives."""
        if self.subject.can("lives") and self._ticks is None:
            self._ticks = asyncio.create_task(_advance(cast(Lives, self.world.adapter)))
            TICKING.get().add(self._ticks)

    async def next_episode(self) -> None:
        """Start the next episode of the same seed, as the runtime does."""
        self.episode += 1
        await self.begin(derive_seed(self.seed, self.episode))

    def where(self, seat: Seat | None = None, action: Action | None = None) -> str:
        """Return the current place, for findings."""
        number = self._numbers.get((seat or self.seat).agent_id, 0)
        return place(self.seed, self.episode, number, seat.agent_id if seat and len(self.seats) > 1 else "", action)

    async def tried(self, seat: Seat, action: Action) -> ActionResult | None:
        """Return the game's own result of an action, without the seat's checks; None if it waits."""
        return await settle(seat.face.act(action), self.subject)

    async def seen(self, seat: Seat | None = None) -> str:
        """Return the text of the game's own observation of a seat."""
        return fresh_text(await settle((seat or self.seat).face.observe(), self.subject))

    async def now(self, seen: T | Awaitable[T], limit: float) -> T | None:
        """Return what a seat observes; None if it waits for its turn.

        It waits if the game has given nothing within `limit` seconds. Seats of a `RoundGame` wait for nothing but each
        other, so that of them it is known at once.
        """
        return await settle(seen, self.subject, limit=0.0 if isinstance(self.world.adapter, RoundGame) else limit)

    async def ready(self) -> Seat | None:
        """Return the first seat that can decide now, or None if all wait."""
        for seat in self.seats:
            seen: Observation | None = None if seat.done else await self.now(seat.observe(), 0.2)
            if seen is not None:
                return seat
        return None

    async def play(
        self,
        choose: Chooser,
        steps: int,
        *,
        episodes: bool = False,
        each: Callable[[Step], None] | None = None,
        cut: bool | int = False,
    ) -> list[Step]:
        """Play about `steps` steps of all seats, if possible until no seat waits for a result, and return them.

        With `cut`, or in turns, play stops soon, or after so many more steps, although a seat waits for a result; what
        it has done then may be lost.
        With `episodes`, play continues after the end of an episode. `each` is called after every step. `Fault` if the
        game raises or is stuck.
        """
        trace: list[Step] = []
        self._live()
        if isinstance(cut, bool):
            late = _OVERTIME if self.subject.steps >= _SOON else _SOON
            overtime = late if cut or self.subject.spec.timing == "alternating" else None
        else:
            overtime = cut
        while len(trace) < steps:
            before = len(trace)
            await self._stretch(_Run(choose, steps, each, trace, overtime))
            if not (episodes and self.over) or len(trace) == before:
                break
            await self.next_episode()
        return trace

    async def _stretch(self, run: _Run) -> None:
        tasks = [asyncio.create_task(self._loop(seat, run)) for seat in self.seats]
        pending = set(tasks)
        loop, patience = asyncio.get_running_loop(), self.subject.patience
        seen, since, used = -1, 0.0, 0.0
        try:
            while pending:
                if len(run.trace) != seen:
                    seen, since, used = len(run.trace), loop.time(), time.process_time()
                limit = 0.001 if run.enough() else patience
                done, pending = await asyncio.wait(pending, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
                if self._ticks is not None and self._ticks.done() and (error := self._ticks.exception()):
                    raise Fault(describe(error, called("advance")), self.where()) from error
                if done or len(run.trace) != seen:
                    continue
                if run.stopping():
                    await spin(2 * _SPINS)
                    if len(run.trace) == seen and run.stopping():
                        return  # the others wait for a turn that will not come
                waited = loop.time() - since
                # A world that is slow on a busy machine uses the processor; one that is stuck does not.
                idle = time.process_time() - used < 0.01 * waited
                if waited > 0.9 * patience and (idle or waited > 12 * patience):
                    doing = "; ".join(f"{name} is {what}" for name, what in sorted(run.doing.items()))
                    hint = " A seat must get its turn when the others have acted." if len(self.seats) > 1 else ""
                    quiet = f"nothing has happened for {waited:.0f} s"
                    raise Fault(f"The world is stuck: {quiet}, and {doing}.{hint}", self.where())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _loop(self, seat: Seat, run: _Run) -> None:
        name = seat.agent_id
        while not seat.done and seat.left is None:
            run.doing[name] = "deciding"
            if run.enough():
                await spin(_SPINS if len(self.seats) > 1 else 0)
                if run.stopping():
                    break
            run.doing[name] = "waiting for its turn"
            await spin(1 if len(self.seats) > 1 else 0)  # so that seats with free timing alternate, too
            observation = await self._guarded(seat.observe(), seat, None)
            if run.stopping():
                break
            chosen = GAME_OVER if seat.ended else run.choose(seat, observation)
            action = await chosen if inspect.isawaitable(chosen) else chosen
            run.doing[name] = "acting"
            result = (await self._guarded(seat.step(action), seat, action)).result
            run.doing[name] = "deciding"
            number = self._numbers.get(name, 0)
            self._numbers[name] = number + 1
            step = Step(self.seed, self.episode, number, name, observation, action, result)
            run.trace.append(step)
            if run.each is not None:
                run.each(step)
        run.doing[name] = "finished"

    async def _guarded(self, value: Awaitable[T], seat: Seat, action: Action | None) -> T:
        try:
            return await value
        except asyncio.CancelledError:
            raise
        except Exception as error:
            call = called("observe") if action is None else called("act", action)
            raise Fault(describe(error, call), self.where(seat, action)) from error


async def unless_interrupted(
    notes: Notes, subject: Subject, look: Callable[[Subject, bool | int], Awaitable[tuple[str, str] | None]]
) -> None:
    """Add an error with what a look at a subject returns, if anything: a message and a place.

    The look plays with the given `cut`. Where seats act in phases, one nearly always waits, and play to a moment in
    which none does may last a whole episode; so the first look stops a few steps later. What it finds, or what it
    raises, may be due to that interruption alone, and a second one waits for that moment.
    """
    if subject.spec.timing == "phased":
        with contextlib.suppress(Exception):
            if await look(subject, _SOON) is None:
                return
    if (found := await look(subject, False)) is not None:
        notes.error(*found)


async def spin(times: int) -> None:
    """Yield to the event loop `times` times."""
    for _ in range(times):
        await asyncio.sleep(0)


async def _advance(world: Lives) -> None:
    """Carry out the ticks of a world that lives."""
    while True:
        if (await world.advance()).done:
            return
        await asyncio.sleep(0)  # so that seats can act in a world whose ticks wait for nothing


async def walk(
    subject: Subject,
    player: int,
    mood: Mood = "mixed",
    steps: int | None = None,
    *,
    episodes: bool = True,
    cut: bool = True,
) -> list[Step]:
    """Return about `steps` (by default the subject's) steps of random play in a fresh world."""
    table = await Table(subject).begin()
    return await table.play(
        RandomPlayer(player, mood), subject.steps if steps is None else steps, episodes=episodes, cut=cut
    )


async def undisturbed(subject: Subject, play_seed: int, steps: int, *, cut: bool = False) -> list[Step]:
    """Return a trace of one episode for comparison; before a difference from it is told, call `must_repeat`."""
    return await walk(subject, play_seed, steps=steps, episodes=False, cut=cut)


async def must_repeat(subject: Subject, play_seed: int, steps: int, *, cut: bool = False) -> None:
    """Raise `NothingToCheck` if two undisturbed traces differ, so that a difference from one of them means nothing."""
    traces = [await undisturbed(subject, play_seed, steps, cut=cut) for _ in range(2)]
    if first_difference(*traces):
        raise NothingToCheck("the same seed gives different trajectories, see `same-seed`")


async def must_not_disturb(
    notes: Notes, subject: Subject, play_seed: int, act: Callable[[Table, int, Step], None], what: str
) -> None:
    """Call `act` with the table, the number of earlier steps and the step, after each; add an error if that changes
    the game. `what` starts the message, as in "Drawing changes"."""
    steps = min(subject.steps, 100)
    table = await Table(subject).begin()
    count = itertools.count()
    trace = await table.play(RandomPlayer(play_seed), steps, each=lambda step: act(table, next(count), step), cut=True)
    if subject.can("seed"):
        difference = first_difference(await undisturbed(subject, play_seed, steps, cut=True), trace)
        if difference is not None:
            await must_repeat(subject, play_seed, steps, cut=True)
        notes.expect_same(difference, f"{what} the game: {{}}.")


async def settle(value: T | Awaitable[T], subject: Subject, *, limit: float = 1.0) -> T | None:
    """Await what a member of an adapter returned; None if it takes longer than `limit` seconds."""
    if not inspect.isawaitable(value):
        return value
    task: asyncio.Future[T] = asyncio.ensure_future(value)
    for _ in range(_SPINS):
        if task.done():
            return task.result()
        await asyncio.sleep(0)
    done, _ = await asyncio.wait({task}, timeout=min(limit, subject.patience))
    if done:
        return task.result()
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return None


async def refused(call: Callable[[], object]) -> str:
    """Return what a call did instead of raising a `WsapError`, or an empty text."""
    try:
        value = call()
        if inspect.isawaitable(value):
            value = await asyncio.wait_for(value, 1.0)
    except WsapError:
        return ""
    except TimeoutError:
        return "it waits"
    except Exception as error:
        return describe(error)
    return f"it returned a {type(value).__name__}"
