"""The table: what its figures rest on, by hand-made episodes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from scipy import stats

from wsap_core.errors import UsageError
from wsap_core.specs import AdapterSpec, EpisodeSummary, ScoreMetric
from wsap_eval.planning.due import NO_LIMITS, PILOT, CellLimits, Due
from wsap_eval.planning.plan import Game, Job
from wsap_eval.planning.suite import Entrant, GameEntry
from wsap_eval.records import EpisodeKey, EpisodeRecord, SeatRecord
from wsap_eval.tables.rows import Row, rows_of
from wsap_eval.tables.shown import cells, notes
from wsap_llm.kit import BudgetLimits


def rate_of_gold(episodes: Sequence[EpisodeSummary]) -> float:
    return sum("gold" in e.achievements for e in episodes) / max(1, len(episodes))


POINTS = ScoreMetric("points", "Points", lambda episodes: 0.0)
GOLD = ScoreMetric("gold", "Share of episodes with gold", rate_of_gold, "", 0.0, 1.0, of_set=True)
SOLVED = ScoreMetric("solved", "", lambda episodes: 0.0, "", 0.0, 1.0)
SPEC = AdapterSpec("dig", "A dig.", "x:y", score_metrics=(POINTS, GOLD))


def game(metric: ScoreMetric = POINTS, **about: Any) -> Game:
    return Game(GameEntry(game="dig"), SPEC, metric, **about)


def played(entrant: str, seed: int, value: float | None, outcome: Any = "finished", **about: Any) -> EpisodeRecord:
    found = about.pop("achievements", ())
    seats = (SeatRecord("seat-1", entrant, 10, 0.0, found, True, 0, 0),)
    trajectory = about.pop("trajectory", f"{entrant}{seed}")
    reason = about.pop("reason", "")
    return EpisodeRecord(
        "dig", entrant, seed, 0, outcome, reason, value, {}, 10, 0.0, found, seats, trajectory, **about,
    )  # fmt: skip


def table(records: Sequence[EpisodeRecord], metric: ScoreMetric = POINTS, **how: Any) -> dict[str, Row]:
    return {row.entrant: row for row in rows_of(records, {"dig": game(metric)}, **how)}


def test_the_difference_is_over_common_seeds_alone() -> None:
    records = [played("a", seed, float(seed < 5)) for seed in range(20)]
    records += [played("b", seed, float(seed < 12)) for seed in range(20)] + [played("b", 99, 1.0)]
    row = table(records, SOLVED)["b"]
    assert row.difference is not None
    assert row.difference.seeds == 20
    assert row.difference.difference == pytest.approx(7 / 20)
    assert row.difference.p_value == pytest.approx(stats.binomtest(7, 7).pvalue)
    assert row.p_adjusted == row.difference.p_value  # one comparison
    assert row.difference.verdict == "better"


def test_a_failed_episode_is_not_scored_and_a_forfeited_one_counts_as_the_worst() -> None:
    records = [
        played("a", 0, 4.0),
        played("a", 1, 2.0),
        played("a", 2, None, "forfeited"),
        played("a", 3, None, "failed", reason="the server is gone"),
    ]
    row = table(records, ScoreMetric("points", "", lambda e: 0.0, "", -2.0, 10.0))["a"]
    assert (row.figure.n, row.figure.mean, row.worst, row.played) == (3, pytest.approx(4 / 3), -2.0, 3.0)
    told = " ".join(notes(row))
    assert "Forfeited episodes count as -2; without them the mean is 3." in told
    assert "1 failed and not scored: the server is gone" in told


def test_a_difference_that_does_not_outlast_the_adjustment_is_unknown_and_says_so() -> None:
    records = [played("a", seed, 0.0) for seed in range(20)]
    for name, solved in (("b", 7), ("c", 1), ("d", 1), ("e", 1), ("f", 1)):
        records += [played(name, seed, float(seed < solved)) for seed in range(20)]
    alone = table([r for r in records if r.entrant in "ab"], SOLVED)["b"]
    among = table(records, SOLVED)["b"]
    assert alone.difference is not None
    assert among.difference is not None
    assert (alone.difference.verdict, alone.p_adjusted) == ("better", pytest.approx(2 / 2**7))
    assert (among.difference.verdict, among.difference.interval) == ("unknown", alone.difference.interval)
    assert among.p_adjusted == pytest.approx(5 * 2 / 2**7)
    told = "Alone this difference would count; as one of several comparisons it may be chance."
    assert told in list(notes(among))
    assert told not in list(notes(alone))


def test_nothing_is_normalised_where_random_play_is_the_games_own_agent() -> None:
    spec = replace(SPEC, default_agent="random")
    (row,) = rows_of([played("random", seed, 3.0 + seed) for seed in range(4)], {"dig": replace(game(), spec=spec)})
    assert row.normalised is None


def test_equal_trajectories_have_no_interval_and_say_so() -> None:
    row = table([played("a", seed, 3.0 + seed, trajectory="same") for seed in range(5)])["a"]
    assert row.figure.interval is None
    assert row.trajectories == 1
    assert "same trajectory" in " ".join(notes(row))
    some = table([played("a", seed, 3.0 + seed, trajectory=f"t{seed // 2}") for seed in range(5)])["a"]
    assert "5 episodes have only 3 distinct trajectories." in list(notes(some))


def test_a_metric_of_a_set_is_of_all_episodes_and_a_forfeited_one_achieves_nothing() -> None:
    records = [played("a", seed, None, achievements=("gold",)) for seed in range(9)]
    records += [played("a", 9, None, "forfeited", achievements=("gold",)), played("a", 10, None, "failed")]
    row = table(records, GOLD)["a"]
    assert row.sets["gold"].estimate.value == pytest.approx(0.9)
    assert row.figure.mean is None
    assert cells(row)[3] == "0.9"


def job(seed: int, entrant: str = "a") -> Job:
    who = Entrant(agent=entrant)
    return Job(
        EpisodeKey("dig", entrant, seed), GameEntry(game="dig"), who, {"seat-1": who}, ("seat-1",), f"run-{seed}", 0.2
    )


async def taken(due: Due) -> list[Job]:
    return [job async for job in due]


def test_a_pilot_hands_out_two_episodes_of_a_cell_whoever_is_quick() -> None:
    jobs = [job(seed, entrant) for seed in range(5) for entrant in ("a", "b")]
    due = Due(jobs, {"dig": game()}, {jobs[0].key: played("a", 0, 1.0)}, CellLimits(episodes=PILOT))
    assert [j.key for j in asyncio.run(taken(due))] == [job(0, "b").key, job(1, "a").key, job(1, "b").key]


def test_a_cell_stops_at_its_cost_and_a_failed_episode_is_played_again() -> None:
    jobs = [job(seed) for seed in range(4)]
    known = {jobs[0].key: played("a", 0, 1.0, cost=0.4), jobs[1].key: played("a", 1, None, "failed", cost=0.3)}
    due = Due(jobs, {"dig": game()}, known, CellLimits(cost=1.2))
    handed = []

    async def play() -> None:
        async for found in due:
            handed.append(found.key.seed)
            known[found.key] = played("a", found.key.seed, 1.0, cost=0.2)
            due.ended(known[found.key])

    asyncio.run(play())
    assert handed == [1, 2]
    assert due.stopped == {("dig", "a"): "its limit of cost"}


def test_a_limit_of_cost_is_refused_where_a_price_is_not_known() -> None:
    jobs = [job(seed) for seed in range(2)]
    due = Due(jobs, {"dig": game()}, {jobs[0].key: played("a", 0, 1.0, cost=None)}, CellLimits(cost=1.0))
    with pytest.raises(UsageError, match=r"limit of \$1 per cell can't be enforced: a model's price is unknown"):
        asyncio.run(taken(due))


def ended(due: Due, known: dict[EpisodeKey, EpisodeRecord], job: Job, calls: int) -> None:
    known[job.key] = played(job.key.entrant, job.key.seed, 1.0, calls=calls)
    due.ended(known[job.key])


def test_what_is_in_flight_counts_at_the_mean_size_of_its_cell() -> None:
    known: dict[EpisodeKey, EpisodeRecord] = {}
    due = Due([job(seed) for seed in range(20)], {"dig": game()}, known, CellLimits(calls=100))
    offer = due.those(lambda job: True)
    first = offer.at_once()
    assert first is not None
    assert offer.at_once() is None, "the size of an episode is not known yet"
    ended(due, known, first, 10)
    flying = list(iter(offer.at_once, None))
    assert len(flying) == 9, "10 made, 9 in flight of 10 each"
    for each in flying[:-1]:
        ended(due, known, each, 9)
    assert offer.at_once() is None
    ended(due, known, flying[-1], 9)
    assert sum(record.calls for record in known.values()) == 91
    last = offer.at_once()  # 91 and one of 9.1 expected: 100.1
    assert last is None
    assert due.stopped == {("dig", "a"): "its limit of calls"}


def test_a_limit_on_all_holds_back_what_costs_and_lets_the_rest_go_on() -> None:
    known: dict[EpisodeKey, EpisodeRecord] = {}
    jobs = [job(seed, entrant) for seed in range(4) for entrant in ("model", "random")]
    due = Due(jobs, {"dig": game()}, known, NO_LIMITS, BudgetLimits(calls=25))
    offer = due.those(lambda job: True)
    for calls in (10, 0):
        each = offer.at_once()
        assert each is not None
        ended(due, known, each, calls)
    flying = list(iter(offer.at_once, None))
    assert [f"{each.key.entrant}{each.key.seed}" for each in flying] == ["model1", "random1", "random2", "random3"]
    assert due.limit == ""
    for each in flying:
        ended(due, known, each, 10 if each.key.entrant == "model" else 0)
    assert offer.at_once() is None
    assert due.limit.startswith("The next episode is expected to exceed the limit of 25 calls in all (spent: 20 calls,")


@pytest.mark.slow
def test_until_a_half_width_the_contiguous_seeds_alone_are_looked_at() -> None:
    bounded = ScoreMetric("points", "", lambda e: 0.0, "", 0.0, 1.0)
    jobs = [job(seed) for seed in range(400)]
    known = {j.key: played("a", j.key.seed, float(j.key.seed % 2)) for j in jobs if j.key.seed != 5}
    due = Due(jobs, {"dig": game(bounded)}, known, CellLimits(half_width=0.2))
    assert due.settled("dig", "a") is None  # seeds 0 to 4 alone
    known[jobs[5].key] = played("a", 5, 1.0)
    count = due.settled("dig", "a")
    assert count is not None
    assert 10 < count < 200
    row = table([known[j.key] for j in jobs], bounded, settled=due.settled)["a"]
    assert row.figure.n == count
    assert math.isclose(row.figure.mean or 0, (count // 2) / count)
    assert row.figure.interval is not None
    assert row.figure.interval.method == "confidence sequence, exact (betting)"


def test_a_model_that_changes_in_the_middle_is_told_of() -> None:
    names = ["x-old fp_1"] * 3 + ["x-new fp_1"]
    row = table([played("m", seed, 1.0, conditions={"served": name}) for seed, name in enumerate(names)])["m"]
    assert row.served == ("x-old fp_1", "x-new fp_1")
    assert "The model changed during the evaluation; the server reported: x-old fp_1, x-new fp_1." in notes(row)
