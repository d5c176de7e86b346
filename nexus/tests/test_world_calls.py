"""A world's calls to its models are part of its run: recorded, counted, and never bought twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from asking_world import A_TICK, Teller, village_host, village_plan
from asking_world_kill import Counting

from wsap_core.errors import RecordMismatchError
from wsap_nexus.api import resume_run
from wsap_nexus.runs.controls import Controls
from wsap_nexus.runs.plan import RunPlan
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_database, open_store
from wsap_nexus.runs.tally import RunSummary
from wsap_nexus.store.repository import Repository


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def recorded(
    plan: RunPlan, teller: Teller, database: str, *, stop: int | None = None, saved: bool = True
) -> RunSummary:
    """Play a recorded run, and stop it after so many ticks."""
    controls, taken = Controls(), []

    def observe(step: Any) -> None:
        taken.append(step)
        if len(taken) == stop:
            controls.stop()

    with (
        open_store(database) as store,
        start(plan, village_host(teller, saved=saved), store, controls=controls, observers=[observe]) as session,
    ):
        return asyncio.run(session.play())


def replayed(teller: Teller, database: str, run: str = "last", **changed: Any) -> RunSummary:
    """Play a recorded run again."""
    from dataclasses import replace

    with open_store(database) as store:
        plan, past = replies_of(run, store)
        plan = replace(plan, options={**plan.options, **changed})
        with start(plan, village_host(teller), store, past=past) as session:
            return asyncio.run(session.play())


def test_a_worlds_calls_are_recorded_and_counted(database: str) -> None:
    teller = Teller()
    summary = recorded(village_plan(5), teller, database)
    assert len(teller.requests) == 5 * A_TICK
    assert summary.world_usage.usage.calls == 5 * A_TICK
    assert summary.to_json()["usage"]["calls"] == 5 * A_TICK
    assert summary.to_json()["world"]["usage"]["cost"] == 10.0


def test_a_replay_gives_each_its_own_reply_and_asks_nobody(database: str) -> None:
    teller = Teller()
    summary = recorded(village_plan(5), teller, database)
    nobody = Teller()
    again = replayed(nobody, database)
    assert again.trajectory_hash == summary.trajectory_hash
    assert again.world_usage == summary.world_usage
    assert not nobody.requests
    assert not nobody.opened
    assert replayed(nobody, database).trajectory_hash == summary.trajectory_hash  # of a replay, too


@pytest.mark.parametrize("saved", [True, False])
def test_a_resumed_run_asks_only_what_was_not_answered(database: str, saved: bool) -> None:
    whole = recorded(village_plan(9, every=4), Teller(), f"{database}.whole")
    teller = Teller()
    recorded(village_plan(9, every=4), teller, database, stop=6, saved=saved)
    assert len(teller.requests) == 6 * A_TICK
    resumed = resume_run(database=database, host=village_host(teller, saved=saved))
    assert len(teller.requests) == 9 * A_TICK
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert resumed.world_usage == whole.world_usage


def test_a_world_that_asks_something_else_is_told_apart_when_it_is_replayed(database: str) -> None:
    recorded(village_plan(3), Teller(), database)
    with pytest.raises(RecordMismatchError, match=r"something else at 1/intent/anna/0 than in the recorded run"):
        replayed(Teller(), database, model="teller/it", keyed=True, words="Who are you?")


@pytest.mark.parametrize("kills", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_killed_between_paid_calls_nothing_that_was_committed_is_asked_again(tmp_path: Path, kills: int) -> None:
    ticks, draw = 2 * kills + 2, random.Random(kills)
    committed: Counter[str] = Counter()
    before = 0
    for _ in range(kills):
        assert killed(tmp_path, ticks, draw.randint(1, 2 * A_TICK - 1), draw.choice((0, 3, 30, 100))) is None
        answered = (tmp_path / "answered").read_text().split()
        assert not committed.keys() & set(answered[before:])  # nothing of what was there before is paid again
        before, committed = len(answered), replies(tmp_path)
        assert committed.keys() <= set(answered)
    end = killed(tmp_path, ticks, 0, 0)
    assert end is not None
    answered = (tmp_path / "answered").read_text().split()
    assert not committed.keys() & set(answered[before:])
    assert set(replies(tmp_path).values()) == {1}
    assert len(replies(tmp_path)) == ticks * A_TICK == int(end[1])
    assert len(answered) - ticks * A_TICK <= int(end[2])  # what was paid twice is counted
    whole = recorded(village_plan(ticks, every=5), Counting(str(tmp_path / "whole"), 0, 0), str(tmp_path / "whole.db"))
    assert end[0] == whole.trajectory_hash


def killed(folder: Path, ticks: int, last: int, turns: int) -> list[str] | None:
    """Go on with a run in a process that dies after so many answers; return what it printed if it came to the end."""
    words = [str(folder / "cut.db"), str(folder / "answered"), str(ticks), str(last), str(turns)]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("asking_world_kill.py")), *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.stdout.split() if done.returncode == 0 else None


def replies(folder: Path) -> Counter[str]:
    """Return the keys of the replies in the log, and how often each is there."""
    with open_database(str(folder / "cut.db"), read_only=True) as opened:
        repository = Repository(opened)
        calls = repository.read_events(repository.get_run("last").id, kinds=("call",))
        return Counter(event.data["key"] for event in calls)
