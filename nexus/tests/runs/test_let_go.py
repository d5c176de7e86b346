"""A seat that is taken out while what comes of its choice is still open: cut after every event, and gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from several_seats import LIVES, RUN, Log, agent

from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Observation
from wsap_core.protocol import Goal
from wsap_core.protocol.wire import Codec
from wsap_matrix import plugin
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.logged import read_step
from wsap_nexus.runs.record.recorder import Recorder
from wsap_nexus.runs.resume import read_past
from wsap_nexus.runs.run import Run, RunSetup

(MATRIX,) = [spec for spec in plugin.wsap_adapters() if spec.name == "matrix"]
PLAN = RunPlan(
    "matrix", (SeatPlan("row", "a"), SeatPlan("column", "b")), seed=3, options={"rounds": 5}, snapshot_every=3
)


@pytest.fixture(autouse=True)
def own_lives() -> None:
    """Have what is chosen by lot depend on nothing that was played before this test."""
    LIVES.clear()


class Impatient:
    """Has the other taken out at its third decision, once that has chosen, and only then chooses itself."""

    def __init__(self, log: Log, controls: Controls) -> None:
        self._log = log
        self._controls = controls
        self._asked = 0

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    async def decide(self, observation: Observation) -> Action:
        self._asked += 1
        if self._asked == 3:
            while len(self._log.of("chosen", "row")) < 3:  # noqa: ASYNC110 (the log tells nobody)
                await asyncio.sleep(0)
            if not self._log.of("left", "row"):
                self._controls.stop()
            while not self._log.of("left", "row"):  # noqa: ASYNC110
                await asyncio.sleep(0)
        return Action("cooperate")

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []


def play_on(log: Log) -> dict[str, str]:
    """Play to the end, from where the log ends, and return each seat's trajectory hash as the run has it."""
    controls = {"row": Controls(), "column": Controls()}
    agents = {
        "row": agent("a", lambda context, asked, observation: "defect"),
        "column": AgentSpec("b", "", lambda: Impatient(log, controls["row"])),
    }
    past = read_past(log, RUN, PLAN, MATRIX, agents, Codec()) if log.events else None  # type: ignore[arg-type]
    recorder = Recorder(log, RUN)
    recorder.note("resumed" if past else "started")
    run = Run(PLAN, MATRIX, agents, RunSetup(recorder=recorder, run_id=RUN, past=past, seat_controls=controls))

    async def to_end() -> dict[str, str]:
        summary = await asyncio.wait_for(run.play(), 300)
        return {seat.name: seat.digest for seat in summary.seats}

    return asyncio.run(to_end())


def test_what_it_had_chosen_counts_and_it_is_taken_out_again_wherever_the_run_was_cut() -> None:
    whole = Log()
    hashes = play_on(whole)
    assert hashes == whole.hashes()
    kinds = [event.kind for event in whole.events if event.seat == "row" and event.kind in ("chosen", "left", "step")]
    assert kinds == ["chosen", "step"] * 2 + ["chosen", "left", "step"]
    # Twice it defected against a cooperator, and a third time with nobody there to be paid.
    steps = [read_step(e.seq, e.episode, e.step or 0, e.body, Codec()) for e in whole.of("step", "column")]
    rewards = [step.result.reward for step in steps]
    assert rewards == [0, 0, 0, 3, 3]
    for length in range(1, len(whole.events) + 1):
        log = whole.cut(length)
        assert play_on(log) == hashes, length
        assert log.events[:length] == whole.events[:length]
        assert len(log.of("left", "row")) == 1
        assert len(log.of("step", "column")) == 5
