"""Worlds that can't be rewound: what was chosen is committed first, acted once, and asked about after a crash."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace as with_more
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from irreversible_worlds import BELL, Bell

from wsap_check import run_checks
from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Observation
from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.protocol import Goal
from wsap_core.seams.game import ChoiceKey
from wsap_llm.decision.turn import outcome_of
from wsap_llm.prompts import words_of
from wsap_nexus.cli.replay import replay
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.tally import SeatTally
from wsap_nexus.runs.run import Run, RunSetup
from wsap_nexus.runs.session import RunHandle, replies_of, resume, start
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.store.records import EventRecord, RunStatus
from wsap_nexus.terminal.plain import summary_lines

GAME = "irreversible_worlds:BELL"
KILLS = int(os.environ.get("WSAP_LIVE_KILLS", "6"))


def plan(tmp_path: Path, steps: int) -> RunPlan:
    return RunPlan(GAME, (SeatPlan("seat-1", "random"),), steps=steps, options={"file": str(tmp_path / "bell")})


@contextmanager
def opened(tmp_path: Path, steps: int = 0) -> Iterator[tuple[RunHandle, Store]]:
    """Give a run of so many steps that begins, or the one that began before."""
    host = PluginHost.discovered()
    with open_store(str(tmp_path / "runs.db")) as store:
        begun = start(plan(tmp_path, steps), host, store, run_id="r") if steps else resume("r", host, store)
        with begun as session:
            yield session, store


def keys(tmp_path: Path, word: str) -> list[str]:
    return [line.split()[1] for line in (tmp_path / "bell").read_text().splitlines() if line.startswith(word)]


def events(tmp_path: Path, *kinds: str) -> list[EventRecord]:
    with open_store(str(tmp_path / "runs.db")) as store:
        return list(store.repository.read_events("r", kinds=kinds))


def results(tmp_path: Path) -> list[dict[str, Any]]:
    return [event.data["step"]["result"] for event in events(tmp_path, "step")]


def test_a_choice_is_committed_before_the_world_hears_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    committed: list[int] = []
    with opened(tmp_path, 3) as (session, store):

        def act_once(bell: Bell, action: Action, key: ChoiceKey) -> ActionResult:
            last = store.repository.last_event("r", "chosen")
            assert last is not None
            assert key == ChoiceKey(f"r/seat-1/{(last.step or 0) + 1}")
            committed.append(store.writer.committed("r") - last.seq)
            return ring(bell, action, key)

        ring = Bell.act_once
        monkeypatch.setattr(Bell, "act_once", act_once)
        asyncio.run(session.play())
    assert committed == [0, 0, 0]
    assert keys(tmp_path, "rung") == ["r/seat-1/1", "r/seat-1/2", "r/seat-1/3"]


def cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str) -> None:
    """Play to the second stroke, whose answer is lost after this line of the bell."""

    def write(bell: Bell, word: str, key: str) -> None:
        put(bell, word, key)
        if (word, key) == (after, "r/seat-1/2"):
            raise OSError("connection lost")

    put = Bell._write
    with monkeypatch.context() as patch, opened(tmp_path, 4) as (session, _):
        patch.setattr(Bell, "_write", write)
        with pytest.raises(Exception, match="connection lost"):
            asyncio.run(session.play())


def test_a_resumed_run_attaches_to_the_present_and_acts_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(tmp_path, monkeypatch, after="rung")
    assert len(results(tmp_path)) == 1
    with (tmp_path / "bell").open("a") as file:
        file.write("rung somebody-else\n")  # the world has gone on
    with opened(tmp_path) as (session, _):
        summary = asyncio.run(session.play())
    assert keys(tmp_path, "heard") == [f"r/seat-1/{number}" for number in (1, 2, 3, 4)]
    messages = [result["message"] for result in results(tmp_path)]
    assert messages == ["It rings.", "It has rung.", "It rings.", "It rings."]
    assert all("outcome" not in result for result in results(tmp_path))
    last = events(tmp_path, "step")[-1].data["step"]["observation"]["status"]
    assert last == {"rung": 5}
    assert summary.seats[0].steps == 4


def test_what_nobody_knows_is_recorded_as_unknown_and_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut_off(tmp_path, monkeypatch, after="heard")
    with opened(tmp_path) as (session, _):
        summary = asyncio.run(session.play())
    assert keys(tmp_path, "heard") == [f"r/seat-1/{number}" for number in (1, 2, 3, 4)]
    assert keys(tmp_path, "rung") == [f"r/seat-1/{number}" for number in (1, 3, 4)]
    assert [result.get("outcome") for result in results(tmp_path)] == [None, "unknown", None, None]
    told = invoked("r", "--plain", "--database", str(tmp_path / "runs.db"))
    assert told.splitlines()[1].split("\t") == ["2", "ring", "outcome unknown: Nobody heard it."]
    assert summary.to_json()["outcomes"] == {"unknown": 1}
    assert "outcomes: 1 unknown" in summary_lines(summary.to_json(), units={}, catalogue=0)
    tallied = SeatTally("seat-1", "random")
    tallied.restore(json.loads(json.dumps(summary.seats[0].state())))
    assert tallied.outcomes == {"unknown": 1}


def invoked(*words: str) -> str:
    said = CliRunner().invoke(replay, words)
    assert said.exit_code == 0, said.output
    return said.output


def test_such_a_run_is_looked_back_at_and_verified_but_not_played_again(tmp_path: Path) -> None:
    with opened(tmp_path, 2) as (session, _):
        asyncio.run(session.play())
    said = invoked("r", "--verify", "--database", str(tmp_path / "runs.db"))
    assert said.endswith("as recorded. The world can't be rewound, so the run can't be played again.\n")
    with open_store(str(tmp_path / "runs.db")) as store, pytest.raises(UsageError, match="can't be rewound"):
        replies_of("r", store)
    assert len(keys(tmp_path, "rung")) == 2


def test_the_checks_of_games_act_nothing_in_it(tmp_path: Path) -> None:
    report = run_checks(BELL, config={"file": str(tmp_path / "bell")}, subprocesses=False)
    checks = {check.name: check for check in report.checks}
    assert not (tmp_path / "bell").exists()
    assert checks["abilities"].status == "passed"
    assert checks["play"].reason == "the game is 'irreversible', and the actions of the check can't be undone"
    assert not report.findings


def test_a_model_is_told_in_words_that_nobody_knows() -> None:
    result = ActionResult(False, "The connection broke.", outcome="unknown")
    assert outcome_of(result, 100).startswith("nobody knows whether it was done; The connection broke")
    assert outcome_of(result, 100, words_of("ru")).startswith("неизвестно, сделано ли это; The connection broke")


def test_a_run_that_was_cut_off_at_the_end_of_its_episode_is_over(tmp_path: Path) -> None:
    options = {"file": str(tmp_path / "bell"), "ends": 2}
    whole = RunPlan(GAME, (SeatPlan("seat-1", "random"),), options=options)
    with open_store(str(tmp_path / "runs.db")) as store:
        with start(whole, PluginHost.discovered(), store, run_id="r") as session:
            asyncio.run(session.play())
        store.writer.set_status("r", RunStatus.INTERRUPTED)
    with opened(tmp_path) as (session, _):
        summary = asyncio.run(session.play())
    assert keys(tmp_path, "rung") == ["r/seat-1/1", "r/seat-1/2"]
    assert (summary.steps, summary.cut_off) == (2, None)


@pytest.mark.slow
def test_killed_at_any_moment_it_never_acts_twice_and_loses_nothing(tmp_path: Path) -> None:
    chance, steps = random.Random(14), 3 * KILLS
    for number in range(KILLS + 1):
        kill, dies = 0, ""
        if number < KILLS and number % 2:
            kill = chance.randint(1, 8)
        elif number < KILLS:
            dies = f"{chance.choice(['heard', 'rung'])} {chance.randint(1, 2)}"
        words = [tmp_path / "runs.db", "r", tmp_path / "bell", str(steps), str(kill)]
        ended = subprocess.run(
            [sys.executable, Path(__file__).parents[1] / "chaos/irreversible_kill.py", *words],
            cwd=Path(__file__).parents[1] / "kit", check=False, env={**os.environ, "BELL_DIES": dies},
        )  # fmt: skip
        assert ended.returncode == (0 if number == KILLS else -signal.SIGKILL)
    everything = [f"r/seat-1/{number + 1}" for number in range(steps)]
    assert keys(tmp_path, "heard") == everything  # each once
    taken = events(tmp_path, "step")
    assert [event.step for event in taken] == list(range(steps))
    known = {everything[event.step or 0] for event in taken if "outcome" not in event.data["step"]["result"]}
    assert set(keys(tmp_path, "rung")) == known


class Clock:
    """A clock that goes on by what is slept, and by what decisions take."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


class Slow:
    """Takes so many seconds for each decision."""

    def __init__(self, clock: Clock, seconds: list[float]) -> None:
        self.clock, self.seconds = clock, seconds
        self.began: list[float] = []

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        self.began.append(self.clock.time)
        self.clock.time += self.seconds[len(self.began) - 1]
        return Action("ring")

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: list[Goal]) -> list[str]:
        return []


def test_a_pace_is_a_beat_that_skips_rather_than_piles_up(tmp_path: Path) -> None:
    clock = Clock()
    slow = Slow(clock, [0.25, 0.25, 3.5, 0.0, 0.0])
    controls = Controls(pace=2.0, clock=clock)
    spec = AgentSpec("slow", "", lambda: slow)
    asyncio.run(Run(plan(tmp_path, 5), BELL, {"seat-1": spec}, RunSetup(controls=controls)).play())
    assert slow.began == [0.5, 1.0, 1.5, 5.0, 5.5]


class Never(Slow):
    async def decide(self, observation: Observation) -> Action:  # type: ignore[override]  # either is allowed
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


def test_a_deadline_holds_with_one_seat(tmp_path: Path) -> None:
    spec = AgentSpec("never", "", lambda: Never(Clock(), []))
    hurried = with_more(BELL, deadline=0.0)
    controls = Controls(pauses_when_forced=False)
    summary = asyncio.run(Run(plan(tmp_path, 2), hurried, {"seat-1": spec}, RunSetup(controls=controls)).play())
    assert summary.seats[0].forced == 2
