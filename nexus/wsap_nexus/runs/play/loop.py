"""One agent's loop: observe, decide, act, reflect; recorded, controlled and resumable."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar, runtime_checkable

from wsap_core.errors import AgentError, RecordMismatchError
from wsap_core.protocol import Action, Observation
from wsap_core.protocol.wire import dumps
from wsap_core.seams.agent import NO_USAGE, Agent, DecisionInfo, LooksBack, ReflectionInfo, UsesDefault, UsesVision
from wsap_core.seams.game import ChoiceKey
from wsap_core.untrusted import single_line
from wsap_core.worlds import GAME_OVER, Outcome
from wsap_nexus.runs.play.asking import KeepsTime, TurnTime, ask, decide
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.goals import GoalWatch
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.play.rounds import Between, RoundEnd
from wsap_nexus.runs.record.logged import Logged, LoggedChoice, LoggedLeave, LoggedStep
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.replay_order import LogPosition, ReplayOrder
from wsap_nexus.runs.record.tally import ForcedStreak, SeatTally
from wsap_nexus.runs.record.trajectory import step_line
from wsap_nexus.runs.resume import Checkpoint
from wsap_nexus.worlds.seats import SeatPort, Told, default_action, leave, let_go, take_step

T = TypeVar("T")

TOO_LATE = "it took too long"
"""Why the default action was taken of a decision that missed its deadline."""

THOUGHT = 900.0
"""Seconds that an agent may take to reflect or plan in a world with a deadline, whose other seats wait meanwhile."""


@runtime_checkable
class PlansFrom(Protocol):
    """An agent that plans from what it sees."""

    def plan_from(self, observation: Observation) -> None:
        """Receive the observation that the next plan starts from; called before `plan`."""


@dataclass(frozen=True)
class SeatTerms:
    """How an agent decides in its seat."""

    limit: int | None = None
    """Its decisions in the whole run; None for no limit."""
    deadline: float | None = None
    """Seconds for a decision; None for no limit."""
    decide_along: bool = True
    """Whether it also decides during a replay, to restore its own state; False for a person."""


class SeatLoop:
    """Plays one seat, episode after episode.

    Args:
        past: has the seat's recorded steps, to replay before new decisions.
        order: the recorded order of the seats' actions; None for a world of one seat. With an order, every choice is
            recorded before the world is told.
    """

    def __init__(
        self,
        seat: SeatPort,
        agent: Agent,
        tally: SeatTally,
        recorder: Recorder,
        controls: Controls,
        past: Checkpoint,
        order: ReplayOrder | None,
        terms: SeatTerms,
    ) -> None:
        self.seat = seat
        self.agent = agent
        self.tally = tally
        self._recorder = recorder
        self._controls = controls
        self._limit = terms.limit
        self._deadline = terms.deadline
        self._time = TurnTime(terms.deadline)
        self._history = past.history.get(seat.agent_id, deque[Logged]())
        self._order = order
        self._looked = past.looked.get(seat.agent_id)
        """Position of an observation recorded without a decision."""
        self._decide_along = terms.decide_along
        self._again, self._finished = past.again, past.finished and not past.life
        self.after_step: Callable[[StepTaken], Awaitable[None] | None] | None = None
        """Called after each new decision."""
        self.more_state: Callable[[], Mapping[str, Any]] | None = None
        """Returns what else belongs to its state, JSON-ready."""
        self.own_controls = False
        """Whether its controls are those of this seat alone, so that they can stop it while it waits."""
        self.between: Between | RoundEnd | None = None
        """Passed before each observation: between two ticks of a world that lives, or at the end of a round."""
        self._irreversible = "irreversible" in seat.world.spec.abilities
        self._began: float | None = None  # when the last new decision began
        self._plan: tuple[str, ...] = ()
        self._planned = 1
        self._goals = GoalWatch()
        self.lessons = dict(past.lessons.get(seat.agent_id, {}))
        """The agent's lessons in this run, by the number (from 0) of the decision they follow."""
        self._latest: tuple[int, int, DecisionInfo] | None = None
        self._forced = ForcedStreak(seat.agent_id, agent)
        self.acting = False
        """Whether a choice is recorded whose result is not processed yet."""
        self.taking_in = self.idle = False
        """Whether the loop is processing a result; whether it waits for its next decision."""
        self.deciding_since: float | None = None
        """When the current decision began, in seconds of the monotonic clock; None while none is being made."""
        self.not_deciding = asyncio.Event()
        """Set while `deciding_since` is None."""
        self.not_deciding.set()
        self.let_go = False
        """Whether the seat is being, or was, removed from the world, rather than leaving by choice; then it sees and
        chooses nothing any more."""

    @property
    def at_rest(self) -> bool:
        """Whether it is between two decisions: its agent is not deciding, and no choice of it is being resolved."""
        return self.idle and not self.acting

    @property
    def reached_limit(self) -> bool:
        """Whether this seat has made all decisions of its limit."""
        return not self._history and self._limit is not None and self.tally.steps >= self._limit

    async def initialize(self) -> None:
        """Give the agent the game's description and actions, and the view and default action if it uses them."""
        agent = self.agent
        if isinstance(agent, UsesVision):
            await self._ask(lambda: agent.see_with(self.seat.look))
        if isinstance(agent, UsesDefault):
            await self._ask(lambda: agent.take_default_from(lambda: default_action(self.seat)))
        await self._ask(lambda: self.agent.initialize(self.seat.game_description, self.seat.action_space))

    async def aclose(self) -> None:
        """Release the agent's resources, and the reference to the run, a cycle that would stay in memory."""
        self.after_step = None
        close = getattr(self.agent, "aclose", None)
        if close is not None:
            await self._ask(close)

    def begin_episode(self) -> None:
        """Treat the next decision as the first of an episode, which a plan precedes."""
        self._goals.begin()

    async def episode(self, number: int) -> None:
        """Play an episode, from 0, until it is over, the agent leaves, the limit is reached, or the run is stopped."""
        while not (self.is_over or self.let_go or self.reached_limit):
            if self._history and isinstance(self._history[0], LoggedLeave):
                return
            self.taking_in, self.idle = False, True
            if self.between is not None and not await self.between.passed():
                return
            if self._order is None:
                observation, after = await self.seat.observe(), -1
            else:
                observation, after = await self._observe(self._order, number)
            self.idle = False
            if self._again and not self._history:
                await self._repeated_all()
            if self._history and not self._again:
                if not await self._controls.yield_to_loop():
                    return
            elif not await self._controls.wait_until_running(self._began):
                return
            else:
                self._began = self._controls.clock.now()
            if not self.seat.ended and self._goals.due(observation.current_goals):
                await self._make_plan(number, observation)
            if self._again:
                await self._play_again(number, observation, after)
            elif self._history:
                await self._repeat(observation)
            else:
                await self._decide_and_act(number, observation, after)

    @property
    def next_decision(self) -> int:
        """The number, from 1, of the next recorded or new decision."""
        return 1 + (self._history[0].step if self._history else self.tally.steps)

    @property
    def is_over(self) -> bool:
        """Whether its episode is over, or its agent has left the world."""
        return self.seat.done or self.seat.left is not None

    async def leave(self, episode: int) -> None:
        """Remove the seat from a world where others continue; the removal is replayed if recorded, else recorded.

        A seat whose episode is over by then is not removed.
        """
        order = self._order or ReplayOrder()
        self.let_go = True
        self.taking_in = False  # a tick that comes before the removal must not wait for it
        if isinstance(self.between, Between):
            self.between.moved()
        if self._history and isinstance(logged := self._history[0], LoggedLeave):
            self._history.popleft()
            await order.reach(logged.made)
            order.passed(logged.made)
            if self._again:
                self._recorder.left(self.seat.agent_id, episode, self.tally.steps)
            await leave(self.seat)
            return
        await order.ended(self.seat.agent_id)
        removed = False

        def told() -> None:
            nonlocal removed
            removed = True
            self._recorder.left(self.seat.agent_id, episode, self.tally.steps)

        if not self.is_over:
            await let_go(self.seat, told)
        self.let_go = removed

    async def conclude(self, episode: int) -> None:
        """Let the agent reflect at the end of play, if it implements `LooksBack`."""
        agent = self.agent
        if isinstance(agent, LooksBack):
            await self._ask(agent.conclude)
            self.settle()
            self._record_lessons(episode, max(0, self.tally.steps - 1))

    def state(self) -> dict[str, Any]:
        """Return the loop's own state between two decisions, JSON-ready."""
        return {
            "goals": self._goals.state(),
            "plan": list(self._plan),
            "planned": self._planned,
            **({"let_go": True} if self.let_go else {}),
            **({} if self.more_state is None else self.more_state()),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a state; WireError if it is damaged."""
        if "goals" in state:
            self._goals.set_state(state["goals"])
        self._plan = tuple(single_line(line) for line in state.get("plan") or ())
        self._planned = int(state.get("planned") or 1)
        self.let_go = bool(state.get("let_go", False))

    async def _observe(self, order: ReplayOrder, episode: int) -> tuple[Observation, int]:
        """Return the observation for the next decision, in a run with an order, and the last event by then.

        The seat observes at the recorded position if there is one, and otherwise after everything recorded.
        """
        logged = self._history[0] if self._history else None
        choice = logged.choice if isinstance(logged, LoggedStep) else logged
        if isinstance(choice, LoggedChoice):
            mark: LogPosition | None = choice.seen
        elif logged is None:
            mark, self._looked = self._looked, None
            if mark is None:
                await order.ended(self.seat.agent_id)
                self._all_repeated()
        else:
            mark = None
        if mark is not None:
            await order.reach(mark)
        with order.deadlock.world(self.seat.agent_id):
            observation = await self.seat.observe()
        if mark is not None:
            order.passed(mark)
        if self._again or not isinstance(logged, LoggedStep):
            again = mark is not None and not self._again
            self._recorder.observation(self.seat.agent_id, episode, observation.step, observation, again=again)
        return observation, self._recorder.latest if mark is None or self._again else mark[0]

    async def _decide_and_act(self, episode: int, observation: Observation, after: int) -> None:
        seat, number = self.seat.agent_id, self.tally.steps
        if self._order is None:
            self._recorder.observation(seat, episode, observation.step, observation)
        before = self._told()
        if self.seat.ended:
            action, info = GAME_OVER, None  # the agent is not asked
        else:
            asked = self._ask(lambda: self.agent.decide(observation), deciding=True)
            with self._deciding(), self._turn():
                action, late = await decide(self.seat, asked, self._time.left, self._deadline)
            info = self._how(before, late)
        told: Told | None = None
        if self._order is not None:
            await self._order.ended(seat)
            self.acting = True
            told = partial(self._recorder.chosen, seat, episode, number, action, info, after=after)
            if self._irreversible:
                told()
                await self._recorder.committed()
                told = None
        outcome = await take_step(self.seat, action, self._key(number), told)
        if outcome.stepped and (outcome.result.success or outcome.result.observation.step != observation.step):
            self._time.over()
            if isinstance(self.agent, KeepsTime):
                self.agent.turn_over(late=_was_late(info))
        self.taking_in = True
        await self._take_in(episode, observation, outcome, info, before)
        self.acting = False

    def _how(self, before: DecisionInfo | None, forced: bool) -> DecisionInfo | None:
        info = self._told()
        if forced:
            usage = NO_USAGE if info is None or info is before else info.usage
            return DecisionInfo(forced=True, usage=usage, cause=TOO_LATE)
        return info

    async def _take_in(
        self,
        episode: int,
        observation: Observation,
        outcome: Outcome,
        info: DecisionInfo | None,
        before: DecisionInfo | None,
    ) -> None:
        """Count and record a new step, and let the agent reflect on its result."""
        seat, number, action, result = self.seat.agent_id, self.tally.steps, outcome.action, outcome.result
        line = step_line(seat, action, result)
        self.tally.add(line, action.name, result, info)
        self._recorder.step(seat, episode, number, line, action, result, info, self.tally.worked)
        if outcome.death is not None:
            self._recorder.death(seat, episode, number, outcome.death)
        await self._think(lambda: self.agent.reflect(result))
        self._record_lessons(episode, number)
        self._latest = None if info is None or self._told() is before else (episode, number, info)
        self.settle()
        if self.after_step is not None:
            taken = StepTaken(seat, episode, number + 1, observation, action, result, info, self._plan, self._planned)
            waiting = self.after_step(taken)
            if waiting is not None:
                await waiting
        if self._controls.pauses_when_forced:
            self._forced.check(observation, outcome, info)

    @property
    def unrepeated(self) -> int | None:
        """The number, from 1, of the first recorded step that is not repeated yet; None if there is none."""
        return next((1 + item.step for item in self._history if isinstance(item, LoggedStep)), None)

    async def _repeated_all(self) -> None:
        """Wait until a replay is stopped where the recorded run was; RecordMismatchError if that was over here."""
        if self._finished:
            raise RecordMismatchError(
                f"{self.seat.world.spec.name!r} goes on after step {self.tally.steps} of seat {self.seat.agent_id!r}, "
                "with which the recorded run ended, so the run can't be repeated. Has the game changed?"
            )
        await asyncio.Event().wait()

    async def _play_again(self, episode: int, observation: Observation, after: int) -> None:
        """Take the next recorded choice in a run that replays another, and verify its result."""
        seat, number, logged = self.seat.agent_id, self.tally.steps, self._history.popleft()
        assert not isinstance(logged, LoggedLeave)  # the episode ends before it
        choice = logged.choice if isinstance(logged, LoggedStep) else logged
        if self._order is None:
            self._recorder.observation(seat, episode, observation.step, observation)
        before, info = self._told(), logged.info
        action = logged.action if choice is None else choice.action
        if self._decide_along and not self.seat.ended:
            decided = await self._decide_again(observation, interrupted=_was_late(info))
            action, info = (action, info) if decided is None else (decided, self._told())
        if self._order is not None:

            def again() -> None:
                self.acting = True
                self._recorder.chosen(seat, episode, number, action, info, after=after)

            outcome = await self._act_again(self._order, action, choice, None, again)
        else:
            outcome = await self.seat.step(action)
        if isinstance(logged, LoggedChoice):
            await asyncio.Event().wait()  # the recorded run was stopped before this came of it
            return
        self.taking_in = True
        if not logged.is_repeated_by(outcome.action, outcome.result):
            raise self._diverged(logged, outcome.action)
        await self._take_in(episode, observation, outcome, info, before)
        self.acting = False

    def _diverged(self, logged: LoggedStep, action: Action) -> RecordMismatchError:
        """Return the error of a replayed step with another action or result than recorded."""
        where = f"at step {logged.step + 1} of seat {logged.seat!r}"
        cannot = f"so the run can't be {'repeated' if self._again else 'resumed'}"
        if _as_line(action) != _as_line(logged.action):
            return RecordMismatchError(
                f"The agent {self.tally.agent!r} decides on {action.name!r} {where}, where "
                f"{logged.action.name!r} is recorded, {cannot}. Has the agent changed?"
            )
        game = self.seat.world.spec.name
        return RecordMismatchError(f"{game!r} diverged from the recording {where}, {cannot}. Has the game changed?")

    async def _repeat(self, observation: Observation) -> None:
        """Replay a recorded step and verify its result; if only the choice was recorded, the step is new."""
        logged = self._history.popleft()
        assert not isinstance(logged, LoggedLeave)  # the episode ends before it
        choice = logged.choice if isinstance(logged, LoggedStep) else logged
        before = self._told()
        if self._decide_along and not self.seat.ended and not self._irreversible:
            await self._decide_again(observation, interrupted=logged.info is not None and logged.info.forced)

        def again() -> None:
            self.acting = isinstance(logged, LoggedChoice)
            if isinstance(logged, LoggedChoice) and logged.let_go is None:
                self._all_repeated()

        if self._order is None:
            again()
            outcome = await self.seat.step(logged.action)
        else:
            key = self._key(logged.step, again=True)
            outcome = await self._act_again(self._order, logged.action, choice, key, again)
        self.taking_in = True
        if isinstance(logged, LoggedChoice):
            if logged.info is None or logged.info.forced:
                before = self._told()  # the agent's report is about another decision
            await self._take_in(logged.episode, observation, outcome, logged.info, before)
            self.acting = False
            return
        if not logged.is_repeated_by(outcome.action, outcome.result):
            raise self._diverged(logged, logged.action)
        await self._ask(lambda: self.agent.reflect(outcome.result))
        self._record_lessons(logged.episode, logged.step)
        if self._decide_along and not self._history and logged.info is not None and not logged.info.forced:
            # The run may have ended before the agent had processed this step.
            self._latest = (logged.episode, logged.step, logged.info)
            self.settle()

    def _all_repeated(self) -> None:
        if self.own_controls:
            self._controls.repeated()

    def _key(self, number: int, *, again: bool = False) -> ChoiceKey | None:
        """Return the key of a choice for an irreversible world; None for other worlds."""
        return (
            ChoiceKey(f"{self._recorder.name}/{self.seat.agent_id}/{number + 1}", again) if self._irreversible else None
        )

    async def _act_again(
        self,
        order: ReplayOrder,
        action: Action,
        choice: LoggedChoice | None,
        key: ChoiceKey | None,
        begun: Callable[[], None],
    ) -> Outcome:
        """Carry out a recorded action when it is its turn, and the removal of the seat in the middle of it if that is
        recorded; `begun` is called before the world is told of the action."""
        if choice is None:
            with order.deadlock.world(self.seat.agent_id):
                begun()
                return await self.seat.step(action, key)
        if choice.let_go is None:
            return await self._act_in_turn(order, action, choice, key, begun)
        try:
            async with asyncio.TaskGroup() as both:
                # It waits for its turn already when the action has its own: whatever comes of that may come at once.
                letting_go = both.create_task(self._let_go_again(order, choice.let_go))
                await asyncio.sleep(0)
                outcome = await self._act_in_turn(order, action, choice, key, begun)
                with order.deadlock.place(self.seat.agent_id):
                    await letting_go
                return outcome
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _act_in_turn(
        self,
        order: ReplayOrder,
        action: Action,
        choice: LoggedChoice,
        key: ChoiceKey | None,
        begun: Callable[[], None],
    ) -> Outcome:
        await order.reach(choice.made)
        with order.deadlock.world(self.seat.agent_id):
            begun()
            order.passed(choice.made)
            return await self.seat.step(action, key)  # tells the world in this turn of the event loop

    async def _let_go_again(self, order: ReplayOrder, mark: LogPosition) -> None:
        await order.reach(mark)
        order.passed(mark)
        self.let_go = True
        await leave(self.seat)

    async def _decide_again(self, observation: Observation, *, interrupted: bool) -> Action | None:
        """Let the agent decide during the replay, to restore its own state, and return its decision.

        A decision that was interrupted at its deadline is interrupted again, as soon as the agent awaits something or
        needs a reply that is not recorded; then None is returned.
        """
        asked = self._ask(lambda: self.agent.decide(observation), deciding=True)
        if not interrupted:
            return (await decide(self.seat, asked, None))[0]
        with suppress(TimeoutError, *((RecordMismatchError,) if self._again else ())):
            async with asyncio.timeout(0):
                await asked
        return None

    def settle(self) -> None:
        """Record model usage added to the last decision after its step was logged, such as a memory's summary."""
        now = self._told()
        if self._latest is None or now is None or now.usage == self._latest[2].usage:
            return
        episode, step, info = self._latest
        amended = replace(info, usage=now.usage)
        self._latest = (episode, step, amended)
        self.tally.amend(now.usage)
        self._recorder.decision(self.seat.agent_id, episode, step, amended)

    def _told(self) -> DecisionInfo | None:
        """Return the agent's report on its last decision."""
        info = getattr(self.agent, "last_decision", None)
        return info if isinstance(info, DecisionInfo) else None

    async def _make_plan(self, episode: int, observation: Observation) -> None:
        if isinstance(self.agent, PlansFrom):
            self.agent.plan_from(observation)
        lines = await self._think(lambda: self.agent.plan(list(observation.current_goals)))
        before, self._plan = self._plan, tuple(single_line(line) for line in lines or ())
        self._planned = self.tally.steps + 1
        if (self._plan or before) and not self._history:
            self._recorder.plan(self.seat.agent_id, episode, list(self._plan))

    def _record_lessons(self, episode: int, step: int) -> None:
        found: object = getattr(self.agent, "last_reflection", None)
        # During a replay the agent reflects again, and the recorded lessons stay as they are.
        if isinstance(found, ReflectionInfo) and step not in self.lessons:
            self.lessons[step] = found.lessons
            self._recorder.lessons(self.seat.agent_id, episode, step, found.lessons)

    async def _think(self, question: Callable[[], T | Awaitable[T]]) -> T:
        """Ask the agent something while others may wait for it."""
        limit = None if self._deadline is None else max(self._deadline, THOUGHT)
        try:
            with self._deciding():
                async with asyncio.timeout(limit):
                    return await self._ask(question)
        except TimeoutError:
            raise AgentError.of(
                self.seat.agent_id,
                f"The agent {self.tally.agent!r} in seat {self.seat.agent_id!r} reflected or planned for more than "
                f"{limit:g} s while others waited.",
            ) from None

    @contextmanager
    def _turn(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self._time.took(time.monotonic() - began)

    @contextmanager
    def _deciding(self) -> Iterator[None]:
        self.deciding_since = time.monotonic()
        self.not_deciding.clear()
        try:
            yield
        finally:
            self.deciding_since = None
            self.not_deciding.set()

    async def _ask(self, question: Callable[[], T | Awaitable[T]], *, deciding: bool = False) -> T:
        seat = self.seat.agent_id
        return await ask(question, f"The agent {self.tally.agent!r} in seat {seat!r}", seat, deciding=deciding)


def _was_late(info: DecisionInfo | None) -> bool:
    return info is not None and info.forced and info.cause == TOO_LATE


def _as_line(action: Action) -> str:
    return dumps({"name": action.name, "parameters": action.parameters})
