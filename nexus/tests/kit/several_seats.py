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
    Context,
    Observation,
)
from wsap_core.authoring.rounds import RoundGame
from wsap_core.protocol import TOOL, Goal
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.references import load_adapter_spec
from wsap_core.seams.clock import Clock
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.resume import read_past
from wsap_nexus.runs.run import Run, RunSetup
from wsap_nexus.store.records import EventRecord, NewMoment

RUN = "run-of-several"


@dataclass
class Log:
    """A run's events, in memory; a recorder's log and as much of a repository as resuming asks for."""

    events: list[EventRecord] = field(default_factory=list)

    async def flushed(self) -> None: ...

    def append(
        self, run_id: str, kind: str, body: str | bytes, *, seat: str | None = None, episode: int = 0,
        step: int | None = None, moments: Sequence[NewMoment] = (), agent: str = "",
    ) -> int:  # fmt: skip
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

    def keep_state(self, *_: object, **__: object) -> None:
        """Keep no state beside the log, from which alone these runs are gone on with."""

    def kept_states(self, run_id: str) -> list[tuple[EventRecord, bool]]:
        return []

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
    stopped: Sequence[str] = (),
) -> dict[str, str]:
    """Play a run to its end, from where its log ends, and return each seat's trajectory hash as the run has it.

    The seats `stopped` are taken out as soon as what they chose is repeated.
    """
    LIVES.append(None)
    codec = Codec()
    past = None
    if log.events:
        past = read_past(log, RUN, plan, spec, dict(agents), codec)  # type: ignore[arg-type]
    controls = {seat.name: Controls() for seat in plan.seats}
    for name in stopped:
        controls[name].finish()
    recorder = Recorder(log, RUN)
    recorder.note("resumed" if past else "started")

    def watched(step: StepTaken) -> None:
        if watch is not None:
            watch(step, controls)

    run = Run(
        plan,
        spec,
        agents,
        RunSetup(recorder=recorder, run_id=RUN, past=past, observers=[watched], seat_controls=controls, clock=clock),
    )

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
        ActionDef("peek", "Look around; it takes no time, and everybody notices", category=TOOL),
    )
)


class Wake(RoundGame):
    """Each round wakes some of four; whoever acted hears what came of it when woken next, or when all is over.

    `peek` is done at once and is seen in everybody's next observation, so that the order in which
    things are done matters. One who is out is woken no more.
    """

    game_description = "Wake, choose, sleep."
    action_space = WAKE_ACTIONS
    seats = SEATS
    timing = "phased"

    def __init__(self, context: Context) -> None:
        self.rounds = int(context.config.get("rounds", 8))
        super().__init__(context)

    def begin(self) -> None:
        self.wakes = [sorted(self.random.sample(SEATS, self.random.randint(1, 3))) for _ in range(self.rounds)]
        self.resting: list[str] = []
        self.tally = dict.fromkeys(WAKE_ACTIONS.names, 0)
        self.woken = dict.fromkeys(SEATS, 0.0)

    def to_move(self) -> Sequence[str]:
        awake = [[seat for seat in seats if seat not in self.resting] for seats in self.wakes]
        return next(filter(None, awake), ())

    def legal(self, seat: str) -> Sequence[str]:
        return WAKE_ACTIONS.names

    def apply(self, moves: Mapping[str, Action]) -> None:
        while not set(self.wakes.pop(0)) - {*self.resting}:
            pass
        for seat, action in moves.items():
            self.woken[seat] += 1
            self.tally[action.name] += 1
            if self.tally["right"] % 5 == 4 and seat not in self.resting and len(self.resting) < 2:
                self.resting.append(seat)

    def look_up(self, seat: str, action: Action) -> tuple[bool, str]:
        self.tally["peek"] += 1
        return True, "You look around."

    def see(self, seat: str) -> Observation:
        return Observation(status={**self.tally, "round": self.round, "out": seat in self.resting})

    def message(self, seat: str, pay: float) -> str:
        return f"heard in {self.round}"

    def returns(self) -> Mapping[str, float]:
        return self.woken

    def dump(self) -> JsonValue:
        return [self.wakes, self.resting, self.tally, self.woken]

    def load(self, data: JsonValue) -> None:
        self.wakes, self.resting, self.tally, self.woken = data


WAKE = load_adapter_spec(Wake)
