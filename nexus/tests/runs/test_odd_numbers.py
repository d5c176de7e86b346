"""A run ends and is listed whatever its game counts: rewards that overflow, scores that fail, old recordings."""

from __future__ import annotations

import json
import logging
import math
from pathlib import Path
from typing import Any

import cli_nexus_kit as kit
import pytest

from wsap_core.protocol import ActionResult
from wsap_core.protocol.wire import dumps
from wsap_core.specs import AdapterSpec, ScoreMetric
from wsap_nexus.hub.live_session import SessionStats
from wsap_nexus.runs.record.summary import SeatScore, counts, score_so_far
from wsap_nexus.runs.record.tally import SeatTally, added

# Any, in this module: JSON.

GAME = """
from wsap_core.builtin.echo import EchoWorld
from wsap_core.specs import ScoreMetric
from dataclasses import replace


class Huge(EchoWorld):
    def act(self, action):
        return replace(super().act(action), reward=-1.7e308)


class Unscored(EchoWorld):
    wsap_spec = {"score_metrics": (ScoreMetric("luck", "Luck.", lambda episodes: float("nan")),
                                   ScoreMetric("share", "Share.", lambda episodes: 1 // 0),
                                   ScoreMetric("plain", "Plain.", lambda episodes: 2.5))}
"""


def tally_of(*rewards: float) -> SeatTally:
    tally = SeatTally("seat-1", "random")
    tally.begin_episode(0, 1)
    for number, reward in enumerate(rewards, start=1):
        tally.add("{}", "go", ActionResult(True, reward=reward, done=number == len(rewards)), None)
    return tally


def test_sums_stay_finite_and_can_be_written_and_read_again() -> None:
    tally = tally_of(-1.7e308, -1.7e308, -1.7e308)
    assert tally.reward < -1.79e308
    assert math.isfinite(tally.reward)
    again = SeatTally("seat-1", "random")
    again.restore(json.loads(dumps(tally.state())))
    assert again.reward == tally.reward
    dumps(counts((again,)))
    dumps(SeatScore.of(again, "steps").to_json())
    stats = SessionStats()
    for _ in range(3):
        stats.add("go", True, 1.7e308, ())
    assert math.isfinite(stats.reward)


@pytest.mark.parametrize(
    ("total", "more", "found"),
    [
        (1.0, 2.5, 3.5),
        (1.7e308, 1.7e308, 1.7976931348623157e308),
        (-1.7e308, -1.7e308, -1.7976931348623157e308),
        (1.7e308, -1.7e308, 0.0),
        (1.0, float("inf"), 1.7976931348623157e308),
        (1.0, float("nan"), 0.0),
    ],
)
def test_a_sum_that_overflows_stays_at_the_limit(total: float, more: float, found: float) -> None:
    assert added(total, more) == found


def test_a_score_that_fails_is_left_out_with_a_warning_and_the_others_are_there(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def metric(name: str, compute: Any) -> ScoreMetric:
        return ScoreMetric(name, name, compute)

    def mean(episodes: Any) -> float:
        return sum(e.reward for e in episodes) / len(episodes)

    spec = AdapterSpec(
        "game", "Game.", object, score_metrics=(metric("luck", lambda e: math.nan), metric("mean", mean))
    )
    tally = tally_of(1.0, 2.0)
    with caplog.at_level(logging.WARNING):
        score = SeatScore.of(tally, "steps", spec)
    assert dict(score.whole.score) == {"mean": 3.0}
    assert "The score 'luck' is nan, not a number within 1e+15 of zero; it is left out." in caplog.text
    assert score_so_far(spec, tally) == (("mean", 3.0, ""),)


@pytest.mark.slow
def test_play_of_a_game_that_pays_too_much_ends_with_the_games_fault_and_is_listed(tmp_path: Path) -> None:
    (tmp_path / "game.py").write_text(GAME)
    environ = kit.environ_of(tmp_path / "home")
    done = kit.wsap(environ, "play", f"{tmp_path}/game.py:Huge", "--agent", "random", "--steps", "3")
    assert done.returncode == 4
    assert "with a reward beyond 1e+15: -1.7e+308" in done.stderr
    (row,) = json.loads(kit.wsap(environ, "runs", "--json").stdout)
    assert (row["status"], row["steps"], row["reward"]) == ("failed", 0, 0)


@pytest.mark.slow
def test_play_of_a_game_whose_scores_fail_ends_well_without_them(tmp_path: Path) -> None:
    (tmp_path / "game.py").write_text(GAME)
    environ = kit.environ_of(tmp_path / "home")
    words = ("play", f"{tmp_path}/game.py:Unscored", "--agent", "random", "--episodes", "1", "--json")
    done = kit.wsap(environ, *words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["score"] == {"plain": 2.5}
    assert done.stderr.count("The score 'luck' is nan") == 1
    assert "The score 'share' can't be computed: ZeroDivisionError" in done.stderr
    (row,) = json.loads(kit.wsap(environ, "runs", "--json").stdout)
    assert (row["status"], row["score"]) == ("finished", {"plain": 2.5})
