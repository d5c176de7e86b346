"""A run: agents in one world, new or resumed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from wsap_core.errors import RecordMismatchError, WsapError
from wsap_core.protocol import Tick
from wsap_core.seams.agent import Agent, Usage
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.context import Context, derive_seed
from wsap_core.seams.game import Snapshots
from wsap_core.seams.options import Options, check_used
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_core.worlds import World
from wsap_llm.middleware.measure import Meter
from wsap_nexus.runs.memory import RunMemories
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.living import Inbox, Life, Passages
from wsap_nexus.runs.play.loop import SeatLoop
from wsap_nexus.runs.play.observers import Observer, StepTaken
from wsap_nexus.runs.play.rounds import Between, RoundEnd
from wsap_nexus.runs.play.saving import Saver
from wsap_nexus.runs.play.seated import Seating
from wsap_nexus.runs.play.stopping import play_until_stopped, side_by_side, stuck_at
from wsap_nexus.runs.record.journal import PictureBook
from wsap_nexus.runs.record.life_log import Notes
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.record.replay_order import ReplayOrder
from wsap_nexus.runs.record.summary import CutOffBy, RunSummary, cut_off, score, warn
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.runs.record.trajectory import WORLD
from wsap_nexus.runs.record.world_calls import WorldJournal, journalled
from wsap_nexus.runs.resume import Checkpoint
from wsap_nexus.runs.totals import TotalsWriter, silent, tell_repeating
from wsap_nexus.runs.venue import LivingVenue, OwnVenue, Venue
from wsap_nexus.worlds.port import LivingPort
from wsap_nexus.worlds.seats import SeatPort

OVERTIME = 1000
"""Decisions of a seat beyond the step limit after which even an episode of several seats is cut off."""


@dataclass(frozen=True)
class RunSetup:
    """What a run is played with, beside its plan, its game and its agents."""

    recorder: Recorder | None = None
    """Records it; by default nothing does."""
    run_id: str | None = None
    past: Checkpoint | None = None
    """Where a recorded run goes on, or what of it is repeated."""
    controls: Controls | None = None
    observers: Iterable[Observer] = ()
    """Called after each new decision."""
    clock: Clock | None = None
    """For measuring time, and for agents and games that wait; by default the system's."""
    services: Services | None = None
    """Passed to the game and the agents."""
    venue: Venue | None = None
    """The world; by default one of the run's own."""
    memories: RunMemories | None = None
    """Restores and saves the agents' memories."""
    seat_controls: Mapping[str, Controls] | None = None
    """Pauses and stops single seats; the others follow `controls`."""
    departed: Callable[[str], Awaitable[None]] | None = None
    """Called with each seat that has left or was removed while others play on."""
    inbox: Inbox = tuple
    """Returns the waiting influences on a world that lives."""
    on_tick: Callable[[Tick], None] | None = None
    """Called with each new tick of such a world."""
    passages: Passages | None = None
    """Lets agents into and out of an open world."""
    make_world: Callable[[Context], LivingPort] | None = None
    """Makes the world of a run without seats of its own, given the game's context; by default in this process."""


class Run:
    """One run of a plan."""

    def __init__(
        self, plan: RunPlan, spec: AdapterSpec, agents: Mapping[str, AgentSpec], setup: RunSetup | None = None
    ) -> None:
        setup = setup or RunSetup()
        past = setup.past
        self.plan, self.spec, self.run_id = plan, spec, setup.run_id
        self.controls = setup.controls or Controls()
        self.controls.pauses_when_forced &= past is None or not past.offline
        self.failed_seat: str | None = None
        """The seat whose error ended the run, if any."""
        self._agent_specs = agents
        self._recorder = setup.recorder or Recorder(None, None)
        self._past = past or Checkpoint()
        self._recorder.open_choices = self._past.open_choices
        self._observers: list[Observer] = list(setup.observers)
        self._clock = setup.clock or SystemClock()
        self.services = setup.services or Services()
        self._tallies = self._past.tallies or plan.tallies()
        self._seating = Seating(
            spec, plan.seed, self._past, self._clock, self.services, self._tallies, self._recorder,
            PictureBook(self._recorder),
        )  # fmt: skip
        self._totals = TotalsWriter(self._recorder, plan.snapshot_every, self._past.totals)
        self._seat_controls = {} if setup.seat_controls is None else setup.seat_controls
        self._departed = setup.departed
        self._gone: set[str] = set()
        self._memories = setup.memories or RunMemories()
        known, offline, skills = self._past.world_calls, self._past.offline, self._memories.skills
        self.world_journal = WorldJournal(
            self._recorder, known, offline=offline, strict=self._past.again, lives=plan.lives,
            usage=self._past.world_usage,
        )  # fmt: skip
        self._notes = Notes(self._recorder, self._past.notes, tick=self._past.tick or 0)
        own_services = replace(self.services, log=self._notes) if plan.lives else self.services
        around = journalled(own_services, self.world_journal)
        venue = setup.venue
        if venue is None and setup.make_world is not None:
            venue = LivingVenue(setup.make_world, Context(clock=self._clock, services=around))
        self._venue = venue or OwnVenue(
            spec, plan.seed, plan.options, self._clock, around, skills=skills, offline=offline
        )
        self._venue.keep_calls(self.world_journal)
        self._loops: list[SeatLoop] = []
        self._life: Life | None = None
        self._between = Between(waited_for=spec.timing != "free")
        # So many are replayed again if the run is stopped before the next snapshot.
        since = 0 if self._past.again else sum(map(len, self._past.history.values())) + len(self._past.life)
        self._saver = Saver(plan.snapshot_every, self._recorder, self._venue, agents, self._loops, self._gone, since)
        self._saver.open = plan.open
        self._together = len(plan.seats) > 1 and not plan.lives and spec.timing != "free"
        end = RoundEnd(self._saver.is_due, lambda: self._saver.save(self._episode), self._saver.put_off, self._clock)
        self._round_end = end if self._together else None
        self._inbox, self._observers_of_ticks = setup.inbox, [setup.on_tick] if setup.on_tick is not None else []
        self._order: ReplayOrder | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._more = asyncio.Event()
        self._passages = setup.passages
        self._episode = self._past.first_episode
        self._started = time.monotonic()
        self._failed_scores: set[str] = set()

    def observe(self, observer: Observer) -> None:
        """Add an observer, called after each new decision."""
        self._observers.append(observer)

    def observe_ticks(self, observer: Callable[[Tick], None]) -> None:
        """Add an observer, called after each new tick of a world that lives."""
        self._observers_of_ticks.append(observer)

    def summary(self, *, failed: bool = False, reason: str | None = None) -> RunSummary:
        """Return the summary so far, with the `reason` of an error or a pause."""
        plan, tallies, seconds = self.plan, self.tallies, self.seconds
        left = any(loop.seat.left is not None and not loop.let_go for loop in self._loops)
        by: CutOffBy = "failed" if failed else "left" if left else "steps" if self._used_up() else "stopped"
        unplayed = None if plan.lives else cut_off(tallies, plan.asked_episodes, by)
        return RunSummary(
            self.run_id, self.spec.name, plan.agent_label, plan.seed, tallies,
            score(self.spec, tallies, by, self._left_out), seconds,
            self.meter.tokens_per_second, unplayed, self.world_journal.usage, self._tallies.get(WORLD),
            self.meter.retries, reason,
        )  # fmt: skip

    @property
    def usage(self) -> Usage:
        """The usage of models so far, of all seats and of the world itself, with that before it was resumed."""
        return sum((tally.usage for tally in self.tallies), self.world_journal.usage.usage)

    def stop(self) -> None:
        """End it at once; decisions that are being made are dropped. It can be resumed."""
        self.controls.stop()

    @property
    def tallies(self) -> tuple[SeatTally, ...]:
        """The totals of each seat so far."""
        return tuple(self._tallies[seat.name] for seat in self.plan.seats)

    @property
    def world(self) -> World | None:
        """The world, once play has started, if it is in this process."""
        return self._venue.world

    @property
    def living(self) -> LivingPort:
        """The world, once play has started, if it lives."""
        assert self._venue.living is not None, "it lives, and is played"
        return self._venue.living

    async def close_world(self) -> None:
        """Close a world that lives once it is not played any more."""
        if self._venue.living is not None:
            await self._venue.living.close()

    def loop(self, name: str) -> SeatLoop:
        """Return the loop of an open seat, once play has started."""
        return next(loop for loop in self._loops if loop.seat.agent_id == name)

    def agent(self, name: str) -> Agent | None:
        """Return the agent in a seat; None before play has started, and for an unknown seat."""
        return next((loop.agent for loop in self._loops if loop.seat.agent_id == name), None)

    @property
    def meter(self) -> Meter:
        """The throughput of the models in this run; empty if it is not measured."""
        meter = getattr(self.services.models, "meter", None)
        return meter if isinstance(meter, Meter) else Meter()

    def _left_out(self, error: WsapError) -> None:
        """Warn once of each score that fails."""
        if str(error) not in self._failed_scores:
            self._failed_scores.add(str(error))
            warn(error)

    @property
    def seconds(self) -> float:
        """The seconds of this run, with those before it was resumed."""
        return self._past.seconds + self.own_seconds()

    def deciding(self) -> dict[str, float]:
        """Return the seats whose agents are deciding, with the seconds for which they have been."""
        now = time.monotonic()
        since = {loop.seat.agent_id: loop.deciding_since for loop in self._loops}
        return {seat: now - began for seat, began in since.items() if began is not None}

    async def until_decided(self, counts: Callable[[str], bool]) -> None:
        """Wait until no seat that `counts` has an agent that is deciding."""
        while waits := [
            loop.not_deciding.wait()
            for loop in self._loops
            if not loop.not_deciding.is_set() and counts(loop.seat.agent_id)
        ]:
            await asyncio.gather(*waits)

    def _decides_here(self, seat: str) -> bool:
        return self._passages is None or not self._passages.decides_elsewhere(seat)

    @property
    def ticking(self) -> float | None:
        """Seconds for which the current tick of a world that lives has been carried out; None between two ticks."""
        began = None if self._life is None else self._life.ticking_since
        return None if began is None else time.monotonic() - began

    def own_seconds(self) -> float:
        """Return the seconds since this run was started or resumed."""
        return time.monotonic() - self._started

    async def play(self) -> RunSummary:
        """Play to the end of the plan, or until stopped, and return the summary.

        Raises:
            WorldError: the game broke its contract.
            PluginError: an agent or the game could not be created, or an agent failed.
            StorageError: an event could not be recorded.
        """
        self._started = time.monotonic()
        known = {} if self._past.again else self._past.history  # a replay shows its steps itself
        telling = None
        if any(known.values()):
            telling = asyncio.create_task(tell_repeating(known, self.services.progress or silent))
        try:
            await self._set_up()
            summary = await self._play()
        except BaseException as error:
            with suppress(WsapError):  # the error that ended the run matters more
                self._keep_memories(error)
            raise
        else:
            self._keep_memories()
            return summary
        finally:
            if telling is not None:
                telling.cancel()
            await self.world_journal.close()
            for loop in self._loops:
                await loop.aclose()

    def _keep_memories(self, error: BaseException | None = None) -> None:
        for loop in self._loops:
            self._memories.keep(loop.seat.agent_id, loop.tally.steps, loop.lessons, error)

    async def _play(self) -> RunSummary:
        # An irreversible world does not show any more that its last episode had ended.
        over = self.plan.irreversible and self._past.last_episode >= 0 and all(tally.done for tally in self.tallies)
        while True:
            if self._episode > self._past.last_episode:
                seed = derive_seed(self.plan.seed, self._episode)
                self._recorder.episode(self._episode, seed)
                for tally in self._tallies.values():
                    tally.begin_episode(self._episode, seed)
            if not over:
                await self._play_episode()
            over = False
            if self._is_over():
                break
            self._episode += 1
            await self._venue.reset(derive_seed(self.plan.seed, self._episode))
            for loop in self._loops:
                loop.begin_episode()
            if self._episode > self._past.last_episode:
                await self._saver.save_if_due(self._episode)
        if not self.controls.stopping:
            self._check_all_repeated()
            for loop in self._loops:
                if loop.seat.agent_id not in self._gone:
                    await loop.conclude(self._episode)
        return self.summary()

    def _check_all_repeated(self) -> None:
        """Raise RecordMismatchError if a replay is over before all recorded steps are repeated."""
        for loop in self._loops if self._past.again else ():
            if loop.unrepeated is not None:
                raise RecordMismatchError(
                    f"{self.spec.name!r} ended before step {loop.unrepeated} of seat {loop.seat.agent_id!r}, which is "
                    "recorded, so the run can't be repeated. Has the game changed?"
                )

    def _is_over(self) -> bool:
        if self._life is not None and not self._life.done:
            return True  # stopped, at the limit, or left by all
        if self.controls.stopping or self._venue.one_episode or any(loop.seat.left is not None for loop in self._loops):
            return True
        if self._episode < self._past.last_episode:
            return False
        return self._used_up() or self._episode + 1 >= (self.plan.asked_episodes or inf)

    def _used_up(self) -> bool:
        """Return whether a seat has reached the plan's step limit."""
        limit = self.plan.steps
        return limit is not None and any(tally.steps >= limit for tally in self._tallies.values())

    @property
    def whole_episodes(self) -> bool:
        """Whether an open episode is finished after the step limit, as it is if seats wait for each other."""
        return self._together and not self.spec.persistent and not self._venue.one_episode

    async def _set_up(self) -> None:
        plan = self.plan
        seated = () if plan.open else plan.seats
        seats = await self._venue.open([s.name for s in seated], derive_seed(plan.seed, self._episode))
        if self._passages is not None:
            self._passages.opened()
        agent_options: list[Options] = []
        self._order = self._saver.order = self._past.order(self._clock) if plan.in_order else None
        self.world_journal.order = self._order
        for seat_plan in seated:
            self.failed_seat = seat_plan.name  # until it is created
            limit = None if plan.steps is None else plan.steps + OVERTIME * self.whole_episodes
            spec = self._agent_specs[seat_plan.name]
            self._loops.append(self._loop(seat_plan, spec, seats[seat_plan.name], agent_options, limit))
        if plan.lives and (world := self._venue.living) is not None:
            past = self._past
            self._life = Life(
                world, self._tallies[WORLD], self._recorder, self.controls, limit=plan.steps, history=past.life,
                order=self._order, inbox=self._inbox, passages=self._passages, again=past.again, number=past.tick or 0,
                between=self._between, loops=self._loops, notes=self._notes, journal=self.world_journal,
                all_decided=partial(self.until_decided, self._decides_here),
                count=self._count, save=self._save_after_tick,
                go_back=world.restore, observers=self._observers_of_ticks,
            )  # fmt: skip
        check_used(f"The agent {' or '.join(sorted({repr(s.agent) for s in seated}))}", *agent_options)
        for loop in self._loops:
            self.failed_seat = loop.seat.agent_id
            await loop.initialize()
        for loop, seat_plan in zip(self._loops, seated, strict=True):
            self.failed_seat = seat_plan.name
            self._memories.begin(seat_plan, loop.agent)
        self.failed_seat = None
        if self._past.world is not None:
            await self._restore(self._past.world)

    async def _save_after_tick(self, tick: int) -> None:
        await self._saver.save_if_due(self._episode, tick)
        await self._saver.keep_after_tick(tick)

    def _loop(
        self, seat_plan: SeatPlan, spec: AgentSpec, seat: SeatPort, given: list[Options], limit: int | None
    ) -> SeatLoop:
        """Return the loop of a seat with its agent, whose options are appended to `given`."""
        controls = self._seat_controls.get(seat_plan.name, self.controls)
        loop = self._seating.loop(seat_plan, spec, seat, self._order, limit, controls, given)
        loop.after_step = self._after_step
        # In a view of an earlier tick nobody is let go whose removal is not recorded.
        loop.own_controls = self.plan.in_order and seat_plan.name in self._seat_controls and not self._past.offline
        loop.between = self._between if self.plan.lives else self._round_end
        return loop

    async def _restore(self, world: bytes) -> None:
        await self._venue.port.restore(world)
        for loop in self._loops:
            name = loop.seat.agent_id
            loop.restore(self._past.seats.get(name, {}))
            if (state := self._past.agents.get(name)) is None:
                self._gone.add(name)
            elif isinstance(loop.agent, Snapshots):
                loop.agent.restore(state)

    async def _play_episode(self) -> None:
        """Play all seats concurrently until the episode is over for each, or the run is stopped.

        In a world that lives it lasts until the world's end or limit; without a limit, until it is over for all seats.
        """
        order = self._order or ReplayOrder()
        playing = [loop for loop in self._loops if loop.seat.agent_id not in self._gone]
        if self._round_end is not None:
            self._round_end.elsewhere = self.world is None
            self._round_end.begin(playing)
        order.deadlock.begin([*(loop.seat.agent_id for loop in playing), *([WORLD] if self._life else [])])
        tasks = self._tasks = [asyncio.create_task(self._play_seat(loop, order)) for loop in playing]
        life = [asyncio.create_task(self._live(self._life, order, tasks[:]))] if self._life else []
        tasks += life
        life_alone = life and self._loops and self.plan.steps is None and not self.plan.open
        try:
            stuck = await side_by_side(
                tasks, self.controls, None if self._order is None else order.deadlock,
                ends_before=life if life_alone else (), more=self._more if self.plan.open else None,
            )  # fmt: skip
        finally:
            order.stop()
        if stuck is not None:
            raise stuck_at(stuck, self.spec.name, self._loops, again=self._past.again)
        if self._life is not None:
            await self._life.port.settle()
            if self._life.interrupted or self._life.passing:
                return  # the state is none between two ticks, and the last one that was kept serves
            if not self._loops:
                # Then a version with other ticks can resume it, too, or show its last tick.
                await self._saver.save_at_stop(self._episode, self._life.number)
            elif not self._life.done:
                await self._saver.keep_after_tick(self._life.number, now=True)

    async def _live(self, life: Life, order: ReplayOrder, seats: list[asyncio.Task[None]]) -> None:
        await life.play(self._episode, order, seats)

    async def _play_seat(self, loop: SeatLoop, order: ReplayOrder) -> None:
        try:
            await self._play_out(loop)
        except Exception:
            self.failed_seat = self.failed_seat or loop.seat.agent_id
            raise
        finally:
            order.deadlock.leave(loop.seat.agent_id)
            loop.taking_in = False
            self._between.moved()
            if self._round_end is not None:
                self._round_end.out(loop)

    async def _play_out(self, loop: SeatLoop) -> None:
        among_others = self.plan.in_order
        controls = self._seat_controls.get(loop.seat.agent_id) if among_others else None
        await play_until_stopped(loop, self._episode, controls, self.controls)
        among_others = among_others and not self.controls.stopping
        if among_others and not loop.is_over:
            # It reached its limit or was stopped: the others must not wait for it.
            await loop.leave(self._episode)
        if among_others and not self.controls.stopping and loop.seat.left is not None:
            await self._depart(loop)

    async def _depart(self, loop: SeatLoop) -> None:
        """Finish a seat that has left while others play on."""
        name = loop.seat.agent_id
        if all(other is loop or other.seat.done or other.seat.agent_id in self._gone for other in self._loops):
            return  # the last one ends the run
        self._gone.add(name)
        await self._finish(loop)
        if self._departed is not None:
            await self._departed(name)

    async def _finish(self, loop: SeatLoop) -> None:
        if not loop.let_go or loop.reached_limit:
            await loop.conclude(self._episode)
        self._memories.keep(loop.seat.agent_id, loop.tally.steps, loop.lessons)
        await loop.aclose()

    def _count(self, new: bool = True) -> None:
        self._saver.since += new
        self._totals.update(self._tallies, self._past.seconds, self.world_journal.usage)

    async def _after_step(self, step: StepTaken) -> None:
        self._count()
        if len(self._loops) == 1 and not self.plan.lives and not step.result.done:
            await self._saver.save_if_due(self._episode)
        for observer in self._observers:
            observer(step)
        stops = self._past.again and not self._past.finished and not self.plan.lives
        if stops and all(loop.unrepeated is None for loop in self._loops):
            self.controls.stop()  # where the recorded run stopped
