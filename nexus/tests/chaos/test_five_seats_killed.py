"""A game with secrets hidden from their owners, elimination and five seats: checked, and killed at random steps."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from lanterns import Lanterns
from warm import run_wsap

from wsap_check import run_checks

KILLS, EPISODES = 20, 6
RUN = ("./lanterns.py:Lanterns", "--agent", "random-legal", "--seed", "5", "--episodes", str(EPISODES), "--json")

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="POSIX signals")]


def test_it_passes_every_check_with_all_its_seats() -> None:
    report = run_checks(Lanterns, steps=80, text_limit=4_000)
    assert not report.findings
    done = {check.name for check in report.checks if check.status == "passed"}
    assert done >= {"secrets", "messages", "snapshot-continues", "turns", "other-process"}


def test_killed_at_twenty_random_steps_it_goes_on_to_the_same_hash(tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parents[1] / "kit" / "lanterns.py", tmp_path)

    def play(*words: str, kill_at: int = 0) -> dict[str, Any] | None:
        env = {**os.environ, "WSAP_HOME": str(tmp_path / "home"), "KILL_AT": str(kill_at)}
        done = run_wsap(["play", *words], env=env, cwd=tmp_path)
        if kill_at:
            assert done.returncode == -signal.SIGKILL, done.stderr
            return None
        assert done.returncode == 0, done.stderr
        summary: dict[str, Any] = json.loads(done.stdout)
        return summary

    straight = play(*RUN, "--no-record")
    assert straight is not None
    assert straight["episodes"] == EPISODES
    moves = straight["steps"] - straight["steps"] // 8  # some are messages, or last results
    for kill_at in sorted(random.Random(32).sample(range(2, moves), KILLS)):
        play(*RUN, kill_at=kill_at)
        resumed = play("--resume", "last", "--json")
        assert resumed is not None
        for part in ("trajectory_hash", "steps", "episodes", "reward", "seats"):
            assert resumed[part] == straight[part], (kill_at, part)
