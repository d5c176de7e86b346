"""Seeds until a half-width is known: reached, not reached, and remembered."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from scipy import stats

from wsap_core.errors import CutOffError
from wsap_core.host import PluginHost
from wsap_eval.cli import main
from wsap_eval.planning.due import CellLimits, Due
from wsap_eval.planning.plan import Job, Plan, games_of
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.reading import played_of
from wsap_eval.records import EpisodeKey, EpisodeRecord
from wsap_eval.results import read_results
from wsap_eval.stats import bounds, sequence

LEVELS = Path(__file__).with_name("levels.py")


def run(out: Path, *more: str, game: str = "Levels", action: str = "a10") -> Result:
    words = ("--game", f"{LEVELS}:{game}", "--entrant", f"always,action={action},label=a", "--jobs", "1")
    return CliRunner().invoke(main, [*words, "--out", str(out), *more])


@pytest.mark.slow
def test_until_plays_as_many_seeds_as_it_takes_and_no_more(tmp_path: Path) -> None:
    result = run(tmp_path, "--until", "half-width=0.15")
    assert result.exit_code == 0, result.output
    (row,) = played_of(tmp_path).rows()
    values = [float(seed % 20 < 10) for seed in range(row.figure.n)]
    width, _ = sequence(values, low=0, high=1)
    before, _ = sequence(values[:-1], low=0, high=1)
    assert width is not None
    assert before is not None
    assert width.half_width <= 0.15 < before.half_width
    assert 10 < row.figure.n < 200
    assert f"stopped, {row.figure.n} seeds give the requested half-width" in result.output
    assert "not reached" not in result.output
    assert "biased towards values with little spread" in result.output
    assert played_of(tmp_path).missing == 0


@pytest.mark.slow
def test_a_half_width_that_was_not_reached_is_told(tmp_path: Path) -> None:
    result = run(tmp_path, "--until", "half-width=0.01", "--seeds", "30")
    assert "a in " in result.output
    assert "the half-width 0.01 is not reached; after 30 seeds it is 0." in result.output
    assert "Continue with a larger --seeds." in result.output
    shown = CliRunner().invoke(main, ["show", str(tmp_path)]).output
    assert "the half-width 0.01 is not reached; after 30 seeds" in shown
    assert len(json.loads(CliRunner().invoke(main, ["show", str(tmp_path), "--json"]).stdout)["unreached"]) == 1


@pytest.mark.slow
def test_looks_are_remembered_by_later_commands_without_them(tmp_path: Path) -> None:
    run(tmp_path, "--until", "half-width=0.3")
    stopped = len(read_results(tmp_path)[1])
    later = run(tmp_path, "--seeds", str(stopped + 10))
    assert later.exit_code == 0, later.output
    for printed in (later.output, CliRunner().invoke(main, ["show", str(tmp_path)]).output):
        assert "are those of confidence sequences" in " ".join(printed.split())
    (row,) = played_of(tmp_path).rows()
    assert row.figure.n == stopped + 10
    assert row.interval == sequence([float(seed % 20 < 10) for seed in range(stopped + 10)], low=0, high=1)[0]


@pytest.mark.slow
def test_a_seed_that_fails_ends_the_search_instead_of_playing_all_seeds(tmp_path: Path) -> None:
    for _ in range(2):
        result = run(tmp_path, "--until", "half-width=0.05", game="Faulty")
        assert isinstance(result.exception, CutOffError)
        assert "stopped, seed 3 failed, and a half-width is known up to the first missing seed" in result.output
        assert len(read_results(tmp_path)[1]) < 200
    assert "not reached; after 3 seeds" in result.output
    assert "Continue with a larger --seeds." not in result.output, "a seed that failed is in the way of all later ones"
    shown = CliRunner().invoke(main, ["show", str(tmp_path)]).output
    assert "not reached; after 3 seeds" in shown
    assert "Continue with a larger --seeds." not in shown


@pytest.mark.slow
def test_episodes_that_are_all_alike_end_the_search_and_nothing_more_is_promised(tmp_path: Path) -> None:
    result = run(tmp_path, "--until", "half-width=0.3", action="a20")
    assert len(read_results(tmp_path)[1]) < 300
    assert re.search(
        r"stopped, all episodes of the first \d+ seeds have the same trajectory and count as one", result.output
    )
    shown = CliRunner().invoke(main, ["show", str(tmp_path)]).output
    for told in (result.output, shown):
        assert "the half-width 0.3 is not reached" in told
        assert "larger --seeds" not in told
    assert "Missing or failed" not in shown


@pytest.mark.slow
def test_of_a_plan_of_many_seeds_only_those_are_made_that_are_played() -> None:
    host, made = PluginHost.discovered(), Counter[EpisodeKey]()
    game = GameEntry(game=f"{LEVELS}:Levels")
    entrants = tuple(Entrant(agent="always", label=f"a{n}", options={"action": "a1"}) for n in range(3))
    suite = Suite(name="many", games=(game,), entrants=entrants, seeds=Seeds(count=10_000))
    games = games_of(suite, host)

    def counted(job: Job) -> Job:
        made[job.key] += 1
        return job

    plan = Plan(suite, games, entrants, host, counted)
    assert len(plan) == 30_000
    known: dict[EpisodeKey, EpisodeRecord] = {}
    due = Due(plan, games, known, CellLimits(half_width=0.3))
    odd, even = (due.those(lambda job, rest=rest: int(job.entrant.label[1:]) % 2 == rest) for rest in (1, 0))
    played = []
    for offer in (odd, even, odd, even):
        while (job := offer.at_once()) is not None:
            value = float(job.key.seed % 2)
            key = job.key
            known[key] = EpisodeRecord(
                key.game, key.entrant, key.seed, 0, "finished", "", value, {}, 1, value, (), (), f"t{key.seed}"
            )
            due.ended(known[key])
            played.append(key)
    count = sum(key.entrant == "a0" for key in played)
    assert 10 < count < 100
    assert Counter(key.entrant for key in played) == dict.fromkeys((f"a{n}" for n in range(3)), count)
    assert all(due.settled(f"{LEVELS}:Levels", f"a{n}") == count for n in range(3))
    assert max(made.values()) == 1
    assert len(made) < 3000


@pytest.mark.parametrize(("alike", "reached"), [(8, True), (40, False)])
def test_first_seeds_that_are_alike_count_as_one_however_many_later_ones_are_known(alike: int, reached: bool) -> None:
    host, name = PluginHost.discovered(), f"{LEVELS}:Levels"
    entrants = (Entrant(agent="always", label="a", options={"action": "a1"}),)
    suite = Suite(name="m", games=(GameEntry(game=name),), entrants=entrants, seeds=Seeds(count=300))
    games = games_of(suite, host)

    def searched(at_once: int) -> tuple[int | None, str]:
        known: dict[EpisodeKey, EpisodeRecord] = {}
        due = Due(Plan(suite, games, entrants, host), games, known, CellLimits(half_width=0.3))
        offer = due.those(lambda job: True)
        while flying := [job.key for _ in range(at_once) if (job := offer.at_once()) is not None]:
            for key in flying:
                value, path = (1.0, "same") if key.seed < alike else (float(key.seed % 2), f"t{key.seed}")
                known[key] = EpisodeRecord(name, "a", key.seed, 0, "finished", "", value, {}, 1, value, (), (), path)
                due.ended(known[key])
        return due.settled(name, "a"), due.stopped[name, "a"]

    count, why = searched(1)
    assert searched(64)[0] == count
    assert (count is not None and count > alike) == reached
    assert ("same trajectory" in why) != reached
    assert ("same trajectory" in searched(64)[1]) != reached


@pytest.mark.slow
def test_a_plan_that_is_looked_at_bit_by_bit_offers_all_its_episodes_in_order() -> None:
    host = PluginHost.discovered()
    entrants = tuple(Entrant(agent="always", label=f"a{n}", options={"action": "a1"}) for n in range(2))
    seeds = Seeds(first=5, count=800, repeats=2, salt="ours")
    suite = Suite(name="m", games=(GameEntry(game=f"{LEVELS}:Levels"),), entrants=entrants, seeds=seeds)
    games = games_of(suite, host)
    plan = Plan(suite, games, entrants, host)
    jobs = list(plan)
    assert len(jobs) == len(plan) == 3200
    assert jobs == sorted(jobs, key=lambda job: plan.order(job.key))
    assert all(plan.get(job.key) == job for job in jobs[::97])
    offer = Due(plan, games, {}, CellLimits()).those(lambda job: True)
    assert list(iter(offer.at_once, None)) == jobs


@pytest.mark.slow
def test_a_half_width_from_episodes_that_are_all_alike_is_not_called_reached(tmp_path: Path) -> None:
    result = run(tmp_path, "--until", "half-width=0.2", action="a20")
    assert "have the same trajectory and count as one" in result.output
    assert "give the requested half-width" not in result.output
    assert "the half-width 0.2 is not reached" in result.output
    assert len(read_results(tmp_path)[1]) < 150  # as many as play side by side may have begun


@pytest.mark.slow
def test_the_bias_of_a_stopped_score_is_the_documented_one() -> None:
    # docs/explanation/intervals.md: 0/1 scores of mean 0.1, until a half-width of 0.12.
    rows = (np.random.default_rng(6).random((400, 200)) < 0.1).astype(np.float64)
    stopped = np.zeros(400, dtype=int)
    for n in range(2, 200):
        going = np.flatnonzero(stopped == 0)
        low, high = bounds.betting(rows[going, :n], bets=bounds.SEQUENCE_BETS)
        stopped[going[(high - low) / 2 <= 0.12]] = n
    assert stopped.all()
    means = [row[:n].mean() for row, n in zip(rows, stopped, strict=True)]
    assert np.mean(means) == pytest.approx(0.078, abs=0.01)  # four standard errors of 400 evaluations
    assert stats.ttest_1samp(means, 0.1).pvalue < 1e-6
