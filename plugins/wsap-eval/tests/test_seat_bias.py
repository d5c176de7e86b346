"""Round robins in games whose first seat has an advantage: no entrant's score may show it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_eval.planning.due import CellLimits
from wsap_eval.planning.plan import Plan, games_of
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.records import EpisodeRecord, SeatRecord
from wsap_eval.run import Evaluation, evaluate
from wsap_eval.tables.rows import rows_of, standings_of


def suite_of(seeds: int, *names: str) -> Suite:
    entrants = tuple(Entrant(agent="random", label=name) for name in names)
    entry = GameEntry(game="matrix", pairs="round-robin", metric="reward")
    return Suite(name="rr", games=(entry,), entrants=entrants, seeds=Seeds(count=seeds))


def played(suite: Suite, strength: dict[str, float]) -> tuple[list[EpisodeRecord], dict]:  # type: ignore[type-arg]
    """Return all episodes of a game in which the first seat gets 1 more than the second, besides the strengths."""
    host = PluginHost.discovered()
    games = games_of(suite, host)
    records = []
    for job in Plan(suite, games, suite.entrants, host):
        metric = games[job.key.game].metric.name
        seats = tuple(
            SeatRecord(
                name, who.name, 1, 0.0, (), True, 0, 0, {metric: strength[who.name] + (place == 0)}, name in job.own
            )
            for place, (name, who) in enumerate(job.seats.items())
        )
        own = [seat.metrics[metric] for seat in seats if seat.own]
        value = sum(own) / len(own)
        records.append(
            EpisodeRecord(
                job.key.game, job.key.entrant, job.key.seed, 0, "finished", "", value, {metric: value}, 1, 0.0, (),
                seats, f"{job.key}",
            )
        )  # fmt: skip
    return records, games


@pytest.mark.parametrize("seeds", [1, 2, 3, 5])
def test_neither_standings_nor_rows_favour_a_seat_at_any_number_of_seeds(seeds: int) -> None:
    strength = {"a": 0.0, "b": 0.0, "c": 0.0}
    records, games = played(suite_of(seeds, *strength), strength)
    assert {s.rating.entrant: s.mean for s in standings_of(records, games)} == dict.fromkeys(strength, 0.5)
    rows = {(row.entrant, row.game): row.figure.mean for row in rows_of(records, games)}
    assert rows == dict.fromkeys(rows, 0.5)
    strength = {"a": 1.0, "b": 0.0, "c": 3.0}
    records, games = played(suite_of(seeds, *strength), strength)
    assert {s.rating.entrant: s.mean for s in standings_of(records, games)} == {"a": 1.5, "b": 0.5, "c": 3.5}
    for row in rows_of(records, games):
        assert row.figure.clusters == seeds
        assert row.figure.mean == strength[row.entrant] + 0.5, row.game
        assert row.difference is None or row.difference.difference == strength[row.entrant] - 1.0


def test_a_seed_whose_return_game_is_missing_or_failed_is_left_out() -> None:
    strength = {"a": 0.0, "b": 0.0}
    records, games = played(suite_of(3, *strength), strength)
    failed = replace(records[-2], outcome="failed", value=None)
    assert (failed.entrant, failed.game, failed.seed) == ("a", "matrix against b", 2)
    rows = {(row.entrant, row.game): row for row in rows_of([*records[:-2], failed, records[-1]], games)}
    for cell in (("a", "matrix against b"), ("b", "matrix against a")):
        assert (rows[cell].figure.mean, rows[cell].figure.clusters, rows[cell].seeds) == (0.5, 2, 3), cell
    # Without its opponent's games a row has only its own.
    alone = [record for record in records if record.entrant == "a"]
    (_, against) = rows_of(alone, games)
    assert against.figure.clusters == 3


def test_games_of_other_conditions_are_no_return_games() -> None:
    strength = {"a": 0.0, "b": 0.0}
    records, games = played(suite_of(2, *strength), strength)
    of_a, of_b = {"nexus": "1", "agent": "a 1", "opponent": "b 1"}, {"nexus": "1", "agent": "b 1", "opponent": "a 2"}
    known = [replace(r, conditions=of_a if r.entrant == "a" else of_b) for r in records]
    rows = {(row.entrant, row.game): row for row in rows_of(known, games)}
    assert rows["a", "matrix against b"].figure.n == 2
    of_b["opponent"] = "a 1"
    rows = {(row.entrant, row.game): row for row in rows_of(known, games)}
    assert rows["a", "matrix against b"].figure.n == 4


def test_until_is_refused_in_a_round_robin(tmp_path: Path) -> None:
    suite = suite_of(2, "a", "b")
    with pytest.raises(UsageError, match="--until has no meaning in a round robin"):
        evaluate(Evaluation(suite, suite.entrants, cells=CellLimits(half_width=0.1)), tmp_path)
