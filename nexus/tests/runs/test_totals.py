"""Totals in the log: what they hold, and that resuming and looking back read no more than what comes after them."""

from __future__ import annotations

import asyncio
import json
import math
import random
import re
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hosts import host_with_ours
from several_seats import Log
from several_seats import play as play_on

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, AdapterSpec, Context, Observation
from wsap_core.errors import StorageError
from wsap_core.hookspecs import hookimpl
from wsap_core.specs import EpisodeSummary, ScoreMetric
from wsap_nexus.cli.replay import replay
from wsap_nexus.cli.runs import runs
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import resume, start
from wsap_nexus.runs.store import open_database, open_store
from wsap_nexus.runs.totals import COUNTED, TOTALS, count, read_totals, silent, with_progress
from wsap_nexus.store.log.bodies import BodyDecoder
from wsap_nexus.store.repository import Repository
from wsap_nexus.terminal.recorded import Recording
from wsap_nexus.terminal.story import Stage


class Climb:
    """A stair with a find on some steps; an episode ends at the top, at times after one step."""

    game_description = "Climb."
    action_space = ActionSpace((ActionDef("up", "Climb"), ActionDef("rest", "Stay")))

    def __init__(self, context: Context) -> None:
        self._random = random.Random()
        self.reset(context.seed)

    def reset(self, seed: int | None = None) -> Observation:
        self._random.seed(seed)
        self._left = self._random.randint(1, 6)
        self._step = 0
        return self.observe()

    def observe(self) -> Observation:
        return Observation(status={"left": self._left}, step=self._step)

    def act(self, action: Action) -> ActionResult:
        self._step += 1
        self._left -= action.name == "up"
        found = self._random.choice([(), (), (), ("coin",), ("coin", "hat")])
        reward = self._random.choice([0.0, 0.1, 1 / 3])
        return ActionResult(True, "", reward, found, self._left <= 0, self.observe())

    def snapshot(self) -> bytes:
        return json.dumps([self._left, self._step, self._random.getstate()]).encode()

    def restore(self, data: bytes) -> None:
        self._left, self._step, (version, numbers, rest) = json.loads(data)
        self._random.setstate((version, tuple(numbers), rest))


def hats(episodes: Sequence[EpisodeSummary]) -> float:
    return float(sum("hat" in episode.achievements for episode in episodes))


CLIMB = AdapterSpec("climb", "", Climb, abilities=("seed", "snapshot"), score_metrics=(ScoreMetric("hats", "", hats),))


class Plugin:
    @hookimpl
    def wsap_adapters(self) -> list[AdapterSpec]:
        return [CLIMB]


HOST = host_with_ours()
HOST.register(Plugin(), "climb")


def climb(steps: int, every: int) -> RunPlan:
    return RunPlan("climb", (SeatPlan("seat-1", "random"),), 3, steps, snapshot_every=every)


def rounds(steps: int, every: int) -> RunPlan:
    seats = (SeatPlan("row", "random"), SeatPlan("column", "random"))
    return RunPlan("matrix", seats, 3, steps, {"rounds": 5}, snapshot_every=every)


def record(path: Path, plan: RunPlan, *, stop: int | None = None) -> dict[str, Any]:
    """Record a run, stopped after so many steps, and return its summary."""
    controls, taken = Controls(), 0

    def watch(step: object) -> None:
        nonlocal taken
        taken += 1
        if taken == stop:
            controls.stop()

    with open_store(str(path)) as store, start(plan, HOST, store, controls=controls, observers=[watch]) as session:
        return asyncio.run(session.play()).to_json()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that has an item for each body of an event that was decoded."""
    found: list[None] = []
    decode = BodyDecoder.decode

    def noting(self: BodyDecoder, encoded: Any) -> bytes:
        found.append(None)
        return decode(self, encoded)

    monkeypatch.setattr(BodyDecoder, "decode", noting)
    return found


class Opened:
    """A recorded run, for reading."""

    def __init__(self, path: Path) -> None:
        self._database = open_database(str(path), read_only=True)
        self.repository = Repository(self._database)
        self.run = self.repository.get_run("last")

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *error: object) -> None:
        self._database.close()

    def recording(self, tell: Callable[[str], None] = silent) -> Recording:
        return Recording(self.repository, self.run, HOST, tell=tell)


@pytest.mark.parametrize("plan", [climb(300, 4), rounds(60, 7)], ids=["one seat", "two seats"])
def test_totals_are_what_counting_from_the_beginning_gives(tmp_path: Path, plan: RunPlan, decoded: list[None]) -> None:
    summary = record(tmp_path / "a.db", plan)
    with Opened(tmp_path / "a.db") as opened:
        counted, seen = plan.tallies(), 0
        for event in opened.repository.read_events(opened.run.id, kinds=(*COUNTED, TOTALS)):
            if event.kind != TOTALS:
                count(counted, event)
                continue
            seen += 1
            decoded.clear()
            totals = read_totals(opened.repository, event, plan.tallies())
            assert {n: t.state() for n, t in totals.tallies.items()} == {n: t.state() for n, t in counted.items()}
            assert totals.steps == event.step
            assert len(decoded) <= math.log2(seen)
        # Among several seats they wait until the steps that are recorded are also the first that were made.
        every = plan.snapshot_every
        assert summary["steps"] // (every + 2) < seen <= summary["steps"] // every


@pytest.mark.parametrize("game", ["climb", "matrix"])
@pytest.mark.slow
def test_resuming_reads_what_comes_after_the_last_totals_and_state(
    tmp_path: Path, decoded: list[None], game: str
) -> None:
    whole = climb(600, 20) if game == "climb" else rounds(300, 20)
    ended = record(tmp_path / "whole.db", whole)
    record(tmp_path / "a.db", whole, stop=575)
    with open_store(str(tmp_path / "a.db")) as store:
        decoded.clear()
        with resume("last", HOST, store) as session:
            assert len(decoded) < 150, "of more than 600 events"
            assert asyncio.run(session.play()).to_json() | VOLATILE == ended | VOLATILE


VOLATILE = {"run": None, "seconds": None}


def test_a_run_goes_on_the_same_wherever_it_was_cut() -> None:
    agents = {"seat-1": HOST.agents.get("random")}
    plan, whole = climb(30, 4), Log()
    hashes = play_on(whole, plan, CLIMB, agents)
    assert hashes == whole.hashes()
    assert whole.of(TOTALS)
    for length in range(1, len(whole.events) + 1):
        log = whole.cut(length)
        assert play_on(log, plan, CLIMB, agents) == hashes == log.hashes(), length


def test_three_steps_are_shown_without_reading_the_rest(tmp_path: Path, decoded: list[None]) -> None:
    record(tmp_path / "a.db", climb(600, 20))
    with Opened(tmp_path / "a.db") as opened:
        for first in (1, 303, 598):
            decoded.clear()
            recording = opened.recording()
            assert [note.number for note in recording.notes(first, first + 2)] == [first, first + 1, first + 2]
            assert recording.spending().decisions == 600
            assert len(decoded) <= 4
        decoded.clear()
        assert opened.recording().stage(303).seat.steps == 303
        assert len(decoded) < 300, "the last 200 steps, which are shown, and what comes with them"


def seen(stage: Stage) -> list[object]:
    seats = [replace(seat, notes=tuple(replace(note, seq=-1) for note in seat.notes)) for seat in stage.seats]
    return [seats, stage.scores, stage.spending]


@pytest.mark.parametrize("plan", [climb(520, 19), rounds(40, 3)], ids=["one seat", "two seats"])
@pytest.mark.slow
def test_every_moment_is_the_same_with_totals_and_without(tmp_path: Path, plan: RunPlan) -> None:
    summary = record(tmp_path / "with.db", plan)
    record(tmp_path / "without.db", replace(plan, snapshot_every=0))
    with Opened(tmp_path / "with.db") as opened, Opened(tmp_path / "without.db") as other:
        new, old = opened.recording(), other.recording()
        assert len(new) == len(old) == summary["steps"]
        for position in range(0, len(new) + 1, len(new) // 20):
            assert seen(new.stage(position)) == seen(old.stage(position))
        last = new.stage(len(new))
        assert [seat.reward for seat in last.seats] == pytest.approx([seat["reward"] for seat in summary["seats"]])
        found = [at for at, note in enumerate(new.notes(1, len(new)), start=1) if note.achievements]
        for recording in (new, old):
            for position in range(0, len(new) + 1, len(new) // 50):
                assert recording.next_achievement(position) == next((at for at in found if at > position), None)
                earlier = [at for at in found if at < position]
                assert recording.previous_achievement(position) == (earlier[-1] if earlier else None)


def test_long_reading_tells_its_progress_ever_more_seldom(tmp_path: Path) -> None:
    record(tmp_path / "a.db", climb(90, 0))
    told: list[str] = []
    with Opened(tmp_path / "a.db") as opened:
        clock = iter(range(1000))
        events = opened.repository.read_events(opened.run.id, kinds=("step",))
        read = with_progress(events, opened.repository, opened.run.id, told.append, lambda: next(clock))
        assert len(list(read)) == 90
        last = opened.repository.count_events(opened.run.id)
        assert len(told) == 6, "after 2, 4, 8, 16, 32 and 64 of 90 seconds"
        assert re.fullmatch(rf"Reading run {opened.run.id}: \d+ of {last} events", told[0])
    assert sorted(told, key=lambda line: int(line.split()[3])) == told


def test_verifying_says_between_which_totals_the_log_was_changed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(tmp_path / "a.db", climb(60, 10))
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("DELETE FROM event WHERE kind = 'step' AND step = 27")
    connection.close()
    with pytest.raises(StorageError, match=r"Steps 21 to 29 of run .* do not give the hash"):
        replay.main(["last", "--verify", "--database", str(tmp_path / "a.db")], standalone_mode=False)


def test_a_killed_run_is_listed_with_what_was_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = record(tmp_path / "a.db", climb(200, 10), stop=95)
    with sqlite3.connect(tmp_path / "a.db") as connection:  # as a kill leaves it
        connection.execute("UPDATE run SET status = 'running', summary = NULL")
    connection.close()
    runs.main(["--json", "--database", str(tmp_path / "a.db")], standalone_mode=False)
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["status"], row["resumable"], row["steps"]) == ("interrupted", True, 95)
    for part in ("episodes", "reward", "achievements", "decisions"):
        assert row[part] == summary[part]
