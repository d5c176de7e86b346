"""A round robin beside the table that Axelrod's library gives for the same strategies."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from pydantic import ValidationError

from wsap_core.errors import UsageError
from wsap_eval.commands.writing import write
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite, load_suite
from wsap_eval.run import Evaluation, evaluate

AXELROD = {
    "tit-for-tat": (3.0, 3.0, 3.0, 0.995),
    "grudger": (3.0, 3.0, 3.0, 0.995),
    "cooperator": (3.0, 3.0, 3.0, 0.0),
    "defector": (1.02, 1.02, 5.0, 1.0),
}
"""Payoff a turn over 200 turns against each, in this order: `axelrod` 4.14.0, Match.final_score_per_turn."""


@pytest.mark.slow
def test_the_classic_strategies_score_what_axelrods_library_says(tmp_path: Path) -> None:
    suite = load_suite("axelrod")
    played = evaluate(Evaluation(suite, suite.entrants), tmp_path)
    assert len(played.records) == 32
    assert {tuple(seat.entrant for seat in r.seats) for r in played.records} == {
        (first, second) for first in AXELROD for second in AXELROD
    }
    for row in played.rows():
        opponent = row.game.removeprefix("matrix against ")
        assert row.figure.mean == pytest.approx(AXELROD[row.entrant][list(AXELROD).index(opponent)]), row
    standings = {s.rating.entrant: s for s in played.standings()}
    assert {name: s.mean for name, s in standings.items()} == pytest.approx(
        {name: sum(row) / 4 for name, row in AXELROD.items()}
    )
    # By games alone the defector, who never gets less than the other, is the strongest, though it scores least.
    assert {s.rating.interval for s in standings.values()} == {None}
    assert max(standings, key=lambda name: standings[name].rating.elo) == list(standings)[-1] == "defector"


@pytest.mark.slow
def test_ratings_stand_in_the_report_and_the_exports(tmp_path: Path) -> None:
    entrants = (Entrant(agent="tit-for-tat"), Entrant(agent="random", label="<b>dice</b>"))
    suite = Suite(
        name="pair", games=(GameEntry(game="matrix", pairs="round-robin"),), entrants=entrants, seeds=Seeds(count=20)
    )
    evaluate(Evaluation(suite, entrants), tmp_path)
    (report,) = write(tmp_path, "html", out=None, database=None)
    page = report.read_text()
    standings = page[page.index("Round robin: matrix") : page.index("<noscript>")]
    assert standings.count("<tr>") == 3
    assert "&lt;b&gt;dice&lt;/b&gt;" in standings
    assert "<b>" not in standings
    files = write(tmp_path, "csv", out=tmp_path / "tables", database=None)
    assert [file.name for file in files] == ["table.csv", "standings.csv", "episodes.csv"]
    rows = list(csv.DictReader(files[1].read_text().splitlines()))
    assert {row["entrant"]: row["games"] for row in rows} == {"tit-for-tat": "60", "<b>dice</b>": "60"}
    assert sum(float(row["elo"]) for row in rows) == pytest.approx(0)
    assert all(float(row["elo_low"]) <= float(row["elo"]) <= float(row["elo_high"]) for row in rows)


def test_what_is_no_round_robin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="a round robin determines opponents and seats"):
        GameEntry(game="matrix", pairs="round-robin", against="random")
    alone = Suite(
        name="x", games=(GameEntry(game="minigrid", pairs="round-robin"),), entrants=(Entrant(agent="random"),)
    )
    with pytest.raises(UsageError, match="has 1 seats; a round robin needs two"):
        evaluate(Evaluation(alone, alone.entrants), tmp_path)


def test_hashes_of_suites_without_one_stay_as_they_were() -> None:
    assert load_suite("crafter-20").digest == "12ffa03df6dadf38283408172339e03ea18499bfa5ceb964e130f7c8389a4b0e"
