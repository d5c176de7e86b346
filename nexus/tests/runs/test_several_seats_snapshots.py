"""Runs of several seats are saved at the end of a round, and gone on with from there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from several_seats import LIVES, SEEN, WAKE, Log, Noted, play

from wsap_core import Action, ActionDef, ActionSpace, AgentSpec, Context, Observation
from wsap_core.authoring.rounds import RoundGame
from wsap_core.protocol.values import JsonValue
from wsap_core.references import load_adapter_spec
from wsap_core.specs import Timing
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken

SEATS = ("ann", "bob", "cid")


@pytest.fixture(autouse=True)
def own_lives() -> None:
    LIVES.clear()


class Chorus(RoundGame):
    """All sing at once, twenty times; whoever sings what nobody else does is paid. Each round takes time."""

    game_description = "Sing."
    action_space = ActionSpace((ActionDef("high", "Sing high"), ActionDef("low", "Sing low")))
    seats = SEATS
    timing = "simultaneous"

    def begin(self) -> None:
        self.sung: list[list[str]] = []
        self.paid = dict.fromkeys(self.seats, 0.0)

    def to_move(self) -> Sequence[str]:
        return self.seats if len(self.sung) < 20 else ()

    def legal(self, seat: str) -> Sequence[str]:
        return self.action_space.names

    async def apply(self, moves: Mapping[str, Action]) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        names = [action.name for action in moves.values()]
        for seat, action in moves.items():
            self.paid[seat] += names.count(action.name) == 1
        self.sung.append(names)

    def see(self, seat: str) -> Observation:
        return Observation(status={"last": "".join(name[0] for name in self.sung[-1])} if self.sung else {})

    def returns(self) -> Mapping[str, float]:
        return self.paid

    def dump(self) -> JsonValue:
        return [self.sung, self.paid]

    def load(self, data: JsonValue) -> None:
        self.sung, self.paid = data


CHORUS = load_adapter_spec(Chorus)


class Saved(Noted):
    """An agent whose state is how often it was asked; it answers by that, and by what it sees."""

    def snapshot(self) -> bytes:
        return str(self._asked).encode()

    def restore(self, data: bytes) -> None:
        self._asked = int(data)


def choose(context: Context, asked: int, observation: Observation) -> str:
    number = sum(map(ord, str(observation.status))) + asked * len(str(context.agent_id)) + ord(str(context.agent_id)[0])
    return "high" if number * 7 % 5 < 2 else "low"


def saved(name: str, choose: Callable[[Context, int, Observation], str] = choose) -> AgentSpec:
    return AgentSpec(name, "", lambda context: Saved(context, choose), abilities=("snapshot",))


def plan_of(*names: str, every: int = 6) -> RunPlan:
    return RunPlan("game", tuple(SeatPlan(n, "agent") for n in names), seed=3, snapshot_every=every)


AGENTS = {name: saved(name) for name in SEATS}


@pytest.mark.slow
def test_a_run_is_saved_at_the_end_of_rounds_and_only_what_came_later_is_gone_through_again() -> None:
    whole = Log()
    hashes = play(whole, plan_of(*SEATS), CHORUS, AGENTS)
    snapshots = whole.of("snapshot")
    assert len(snapshots) == 6  # six steps are two rounds, and the end of the round after them is the next moment
    open_choices = set()
    for event in whole.events:
        if event.kind == "snapshot":
            assert not open_choices
        elif event.kind in ("chosen", "step"):
            (open_choices.add if event.kind == "chosen" else open_choices.discard)((event.seat, event.step))
    for length in range(1, len(whole.events) + 1, 2):
        log = whole.cut(length)
        assert play(log, plan_of(*SEATS), CHORUS, AGENTS) == hashes == log.hashes(), length
        last = max((e.seq for e in snapshots if e.seq < length), default=-1)
        decided = sum(e.kind == "step" for e in whole.events[last + 1 :])
        assert sum(len(SEEN[name]) for name in SEATS) == decided, length


@pytest.mark.slow
def test_who_was_taken_out_before_the_state_was_saved_stays_out() -> None:
    def kick(step: StepTaken, controls: Mapping[str, Controls]) -> None:
        if step.seat == "bob" and step.step == 5:
            controls["bob"].stop()

    whole = Log()
    hashes = play(whole, plan_of(*SEATS), CHORUS, AGENTS, watch=kick)
    (left,) = whole.of("left")
    later = [e.seq for e in whole.of("snapshot") if e.seq > left.seq]
    assert len(later) > 2
    for length in range(later[0], len(whole.events) + 1):
        log = whole.cut(length)
        assert play(log, plan_of(*SEATS), CHORUS, AGENTS) == hashes == log.hashes(), length
        assert len(log.of("left")) == 1


@pytest.mark.parametrize("timing", ["phased", "free"])
def test_where_results_are_held_back_or_nobody_waits_the_run_goes_on_unsaved(timing: Timing) -> None:
    def wakes(context: Context, asked: int, observation: Observation) -> str:
        return "left" if asked % 2 else "right"

    names = ("ann", "bob", "cid", "dora")
    agents = {name: saved(name, wakes) for name in names}
    spec = replace(WAKE, timing=timing)
    whole = Log()
    assert play(whole, plan_of(*names, every=2), spec, agents) == whole.hashes()
    for length in range(1, len(whole.events) + 1, 3):
        log = whole.cut(length)
        assert play(log, plan_of(*names, every=2), spec, agents) == log.hashes()
