"""Worlds and agents for runs of several seats, and a log in memory that can be cut anywhere."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import idle_time

from wsap_core import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    AdapterSpec,
    AgentSpec,
    Barrier,
    Context,
    Observation,
)
from wsap_core.protocol import Goal
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.seams.clock import Clock
from wsap_core.worlds.legality import check_action, index_actions
from wsap_nexus.runs.controls import Controls
from wsap_nexus.runs.loop import StepTaken
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.recorder import Recorder
from wsap_nexus.runs.resume import read_past
from wsap_nexus.runs.run import Run
from wsap_nexus.store.records import EventRecord

RUN = "run-of-several"


@dataclass
class Log:
    """A run's events, in memory; a recorder's log and as much of a repository as resuming asks for."""

    events: list[EventRecord] = field(default_factory=list)

    def append(
        self, run_id: str, kind: str, body: str | bytes, *, seat: str | None, episode: int, step: int | None
    ) -> int:
        packed = body.encode() if isinstance(body, str) else body
        self.events.append(
            EventRecord(
                run_id=run_id, seq=len(self.events), kind=kind, seat=seat, episode=episode, step=step, time=0.0,
                body=packed, is_text=isinstance(body, str),
            )
        )  # fmt: skip
        return len(self.events) - 1

    def read_events(
        self, run_id: str, *, from_seq: int = 0, to_seq: int | None = None, kinds: Sequence[str] = (), **_: object
    ) -> Iterator[EventRecord]:
        for event in self.events[from_seq:to_seq]:
            if not kinds or event.kind in kinds:
                yield event

    def last_event(self, run_id: str, kind: str) -> EventRecord | None:
        return next((e for e in reversed(self.events) if e.kind == kind), None)

    def cut(self, length: int) -> Log:
        """Return what a kill has left that came after so many events."""
        return Log(self.events[:length])

    def of(self, kind: str, seat: str | None = None) -> list[EventRecord]:
        return [e for e in self.events if e.kind == kind and seat in (None, e.seat)]

    def actions(self, seat: str) -> list[str]:
        """Return the names of what a seat did."""
        return [json.loads(e.body)["step"]["action"]["name"] for e in self.of("step", seat)]

    def hashes(self) -> dict[str, str]:
        """Return each seat's trajectory hash, as the documentation says how: chained from step to step."""
        digests: dict[str, str] = {}
        for event in self.of("step"):
            line = json.dumps(json.loads(event.body)["step"], sort_keys=True, separators=(",", ":"))
            before = digests.get(str(event.seat), hashlib.sha256().hexdigest())
            digests[str(event.seat)] = hashlib.sha256(f"{before}{line}\n".encode()).hexdigest()
        return digests


def play(
    log: Log,
    plan: RunPlan,
    spec: AdapterSpec,
    agents: Mapping[str, AgentSpec],
    *,
    watch: Callable[[StepTaken, Mapping[str, Controls]], None] | None = None,
    clock: Clock | None = None,
) -> dict[str, str]:
    """Play a run to its end, from where its log ends, and return each seat's trajectory hash as the run has it."""
    LIVES.append(None)
    codec = Codec()
    past = None
    if log.events:
        past = read_past(log, RUN, plan, spec, dict(agents), codec)  # type: ignore[arg-type]
    controls = {seat.name: Controls() for seat in plan.seats}
    recorder = Recorder(log, RUN)
    recorder.note("resumed" if past else "started")

    def watched(step: StepTaken) -> None:
        if watch is not None:
            watch(step, controls)

    run = Run(
        plan, spec, agents, recorder=recorder, run_id=RUN, past=past, observers=[watched], seat_controls=controls,
        clock=clock,
    )  # fmt: skip

    async def to_end() -> dict[str, str]:
        summary = await asyncio.wait_for(run.play(), 300)
        return {seat.name: seat.digest for seat in summary.seats}

    return idle_time.run(to_end())


# --- agents ---------------------------------------------------------------------------------------------


class Noted:
    """An agent that decides by a function of how often it was asked; what it saw is kept for the test."""

    saw: dict[str, list[str]]

    def __init__(self, context: Context, choose: Callable[[Context, int, Observation], str]) -> None:
        self._context = context
        self._choose = choose
        self._asked = 0
        self.seen = SEEN.setdefault(str(context.agent_id), [])

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        self.seen.clear()

    async def decide(self, observation: Observation) -> Action:
        self.seen.append(dumps(observation))
        self._asked += 1
        name = self._choose(self._context, self._asked, observation)
        for _ in range(random.Random(f"{len(LIVES)} {self._context.agent_id} {self._asked}").randrange(5)):
            await asyncio.sleep(0)  # in each life others are faster
        if name == "never":
            await asyncio.Event().wait()
        return Action(name, reasoning=f"thought {self._asked}")

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []


LIVES: list[None] = []
"""One for each time that a run was played, from its beginning or on, in this test: who is faster follows from it."""
SEEN: dict[str, list[str]] = {}
"""What each seat's agent saw in the last run, as canonical JSON."""


def agent(name: str, choose: Callable[[Context, int, Observation], str], *, interactive: bool = False) -> AgentSpec:
    """Return an agent that decides by a function."""
    return AgentSpec(name, "", lambda context: Noted(context, choose), interactive=interactive)


# --- a world of withheld results --------------------------------------------------------------------------

SEATS = ("ann", "bob", "cid", "dora")
WAKE_ACTIONS = ActionSpace(
    (
        ActionDef("left", "Go left"),
        ActionDef("right", "Go right"),
        ActionDef("peek", "Look around; it takes no time, and everybody notices"),
    )
)


class Wake:
    """Each round wakes some of four; whoever acted hears what came of it when woken next, or when all is over.

    `peek` is done at once and is seen in everybody's next observation, so that the order in which
    things are done matters. One who is out is woken no more.
    """

    game_description = "Wake, choose, sleep."
    action_space = WAKE_ACTIONS

    def __init__(self, context: Context) -> None:
        self._rounds = int(context.config.get("rounds", 8))
        self._random = random.Random()
        self.reset(context.seed)

    def reset(self, seed: int | None = None) -> Observation:
        self._random.seed(seed)
        self.wakes = [sorted(self._random.sample(SEATS, self._random.randint(1, 3))) for _ in range(self._rounds)]
        self.out: list[str] = []
        self.round = 0
        self.tally = dict.fromkeys(WAKE_ACTIONS.names, 0)
        self.held: list[str] = []
        self.barrier = Barrier(
            SEATS, self.resolve, lambda seat: Action("left"), observe=self.observation, expects=self.expects
        )
        return Observation()

    def expects(self) -> list[str]:
        while self.round < self._rounds:
            if awake := [s for s in self.wakes[self.round] if s not in self.out]:
                return awake
            self.round += 1
        return []

    def resolve(self, actions: Mapping[str, Action]) -> Mapping[str, ActionResult]:
        for seat, action in actions.items():
            self.tally[action.name] += 1
            if self.tally["right"] % 5 == 4 and seat not in self.out and len(self.out) < 2:
                self.out.append(seat)
        self.round += 1
        self.held += [s for s in actions if s not in self.held]
        upcoming = self.expects()
        told = [s for s in self.held if not upcoming or s in upcoming]
        self.held = [s for s in self.held if s not in told]
        return {
            s: ActionResult(True, f"heard in {self.round}", 1.0, (), not upcoming, self.observation(s)) for s in told
        }

    def observation(self, seat: str) -> Observation:
        status = {**self.tally, "round": self.round, "out": seat in self.out}
        return Observation(status=status, step=self.round)

    def observe(self) -> Observation:
        raise AssertionError("ask a seat")

    def act(self, action: Action) -> ActionResult:
        raise AssertionError("ask a seat")

    def seat(self, agent_id: str) -> WakeSeat:
        return WakeSeat(self, agent_id)

    def leave(self, agent_id: str) -> None:
        self.barrier.leave(agent_id, replaced=True)


class WakeSeat:
    """One who sleeps and wakes."""

    game_description = Wake.game_description
    action_space = WAKE_ACTIONS

    def __init__(self, world: Wake, seat: str) -> None:
        self._world, self._seat, self._round = world, seat, 0
        self._declared = index_actions(WAKE_ACTIONS)

    async def observe(self) -> Observation:
        self._round = await self._world.barrier.turn(self._seat)
        return self._world.observation(self._seat)

    async def act(self, action: Action) -> ActionResult:
        action, wrong = check_action(action, self._declared)
        assert not wrong
        if action.name == "peek" and not self._world.barrier.over:
            self._world.tally["peek"] += 1
            return ActionResult(True, "You look around.", observation=self._world.observation(self._seat))
        return await self._world.barrier.act(self._seat, action, round_seen=self._round)

    def reset(self) -> Observation:
        raise AssertionError("reset the world")

    def default_action(self) -> Action:
        return Action("left")


WAKE = AdapterSpec(
    "wake", "Some wake each round.", Wake, seats=(4, 4), abilities=("seed", "multi-seat"), timing="simultaneous"
)
