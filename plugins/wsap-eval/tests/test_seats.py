"""Who is measured in which seat of a game with opponents."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from wsap_eval.cli import main
from wsap_eval.export.flat import flat_episode
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.records import EpisodeRecord, SeatRecord
from wsap_eval.results import read_results
from wsap_eval.run import Evaluation, evaluate

PENNIES = {"game": "matching-pennies", "rounds": 4}
"""Of two who always choose the first coin, the row wins every round and the column loses it."""


def against_its_like(seat: str, *entrants: Entrant) -> Suite:
    entry = GameEntry(game="matrix", options=PENNIES, against="grudger", seat=seat)
    return Suite(name="pennies", games=(entry,), entrants=entrants, seeds=Seeds(count=4))


@pytest.mark.parametrize(("seat", "score"), [("row", 1.0), ("column", -1.0), ("each", 0.0)])
def test_who_meets_its_like_is_measured_in_its_own_seat_whatever_its_label(
    tmp_path: Path, seat: str, score: float
) -> None:
    same, labelled = Entrant(agent="grudger"), Entrant(agent="grudger", label="again")
    played = evaluate(Evaluation(against_its_like(seat, same, labelled), (same, labelled)), tmp_path)
    assert {row.entrant: row.score for row in played.rows()} == {"grudger": score, "again": score}
    for record in played.records:
        (own,) = record.own
        assert record.value == own.reward / 4
        assert own.seat == seat or seat == "each"
    assert tuple(read_results(tmp_path)[1][record.key] for record in played.records) == played.records


def test_one_trajectory_seen_from_two_seats_is_two(tmp_path: Path) -> None:
    who = Entrant(agent="grudger")
    (row,) = evaluate(Evaluation(against_its_like("each", who), (who,)), tmp_path / "each").rows()
    assert (row.score, row.figure.distinct) == (0.0, 2)
    assert row.interval is not None, "the seats have 1 and -1"
    (row,) = evaluate(Evaluation(against_its_like("row", who), (who,)), tmp_path / "row").rows()
    assert (row.score, row.figure.distinct, row.interval) == (1.0, 1, None)


def test_the_command_and_its_exports_agree_on_the_seat(tmp_path: Path) -> None:
    suite, out = tmp_path / "pennies.toml", tmp_path / "out"
    suite.write_text(
        '[[games]]\ngame = "matrix"\nagainst = "grudger"\nseat = "column"\n'
        'options = { game = "matching-pennies", rounds = 4 }\n[seeds]\ncount = 3\n'
    )
    entrants = ("--entrant", "grudger", "--entrant", "grudger,label=again")
    result = CliRunner().invoke(main, [str(suite), *entrants, "--jobs", "1", "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    assert [row["figure"]["mean"] for row in json.loads(result.stdout)["rows"]] == [-1.0, -1.0]
    for form in ("csv", "every-eval-ever"):
        assert CliRunner().invoke(main, ["export", str(out), "--format", form, "--out", str(tmp_path)]).exit_code == 0
    with (tmp_path / "episodes.csv").open() as file:
        assert [float(line["value"]) for line in csv.DictReader(file)] == [-1.0] * 6
    samples = [json.loads(line) for path in tmp_path.rglob("*_samples.jsonl") for line in path.read_text().splitlines()]
    assert [sample["evaluation"]["score"] for sample in samples] == [-1.0] * 6


def test_forced_decisions_are_those_of_the_own_seat_and_records_without_it_go_by_label() -> None:
    def record(*seats: SeatRecord) -> EpisodeRecord:
        return EpisodeRecord("g", "a", 0, 0, "finished", "", 1.0, {}, 1, 1.0, (), seats, "t")

    def seat(name: str, entrant: str, forced: int, *, own: bool | None) -> SeatRecord:
        return SeatRecord(name, entrant, 1, 0.0, (), True, forced, 0, own=own)

    new = record(seat("x", "a", 3, own=False), seat("y", "a", 5, own=True))
    assert flat_episode(new)["forced"] == 5
    old = record(seat("x", "b", 3, own=None), seat("y", "a", 5, own=None))
    assert flat_episode(EpisodeRecord.from_json(old.to_json()))["forced"] == 5
    assert [s.seat for s in old.own] == ["y"]


def test_a_round_robin_measures_who_meets_itself_in_both_seats(tmp_path: Path) -> None:
    entrants = (Entrant(agent="grudger"), Entrant(agent="tit-for-tat"))
    entry = GameEntry(game="matrix", options=PENNIES, pairs="round-robin")
    suite = Suite(name="rr", games=(entry,), entrants=entrants, seeds=Seeds(count=1))
    played = evaluate(Evaluation(suite, entrants), tmp_path)
    seats = {(r.entrant, r.game): [s.seat for s in r.own] for r in played.records}
    assert seats["grudger", "matrix against grudger"] == ["row", "column"]
    assert seats["grudger", "matrix against tit-for-tat"] == ["row"]
    assert seats["tit-for-tat", "matrix against grudger"] == ["row"]
