"""Games that all entrants play together, with seats by Latin square: no entrant's score may show where it sat."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_eval.planning.due import CellLimits
from wsap_eval.planning.plan import Game, Plan, games_of
from wsap_eval.planning.shared import by_entrant
from wsap_eval.planning.suite import Entrant, GameEntry, Seeds, Suite
from wsap_eval.reading import played_of
from wsap_eval.records import EpisodeRecord, SeatRecord
from wsap_eval.results import read_results
from wsap_eval.run import Evaluation, evaluate
from wsap_eval.tables.rows import rows_of, standings_of

NAMES = ("a", "b", "c")


def suite_of(seeds: int, *names: str, repeats: int = 1) -> Suite:
    entrants = tuple(Entrant(agent="random", label=name) for name in names)
    entry = GameEntry(game="tossim", label="town", options={"mode": "five"}, seating="square", metric="reward")
    return Suite(name="together", games=(entry,), entrants=entrants, seeds=Seeds(count=seeds, repeats=repeats))


def played(suite: Suite, strength: dict[str, float]) -> tuple[list[EpisodeRecord], dict[str, Game]]:
    """Return all games, in which the value of a seat is its number, besides the strength of who sits there."""
    host = PluginHost.discovered()
    games = games_of(suite, host)
    records = []
    for job in Plan(suite, games, suite.entrants, host):
        seats = tuple(
            SeatRecord(
                name, who.name, 10, 0.0, (), True, 0, 0, {"reward": strength[who.name] + place}, name in job.own,
                usage=(1, 2, 3, 0.5),
            )
            for place, (name, who) in enumerate(job.seats.items())
        )  # fmt: skip
        own = [seat.metrics["reward"] for seat in seats if seat.own]
        value = sum(own) / len(own)
        records.append(
            EpisodeRecord(
                job.key.game, job.key.entrant, job.key.seed, job.key.repeat, "finished", "", value, {"reward": value},
                10, 0.0, (), seats, f"{job.key}", job.run,
            )
        )  # fmt: skip
    return records, games


@pytest.mark.parametrize("names", [("a", "b"), NAMES, tuple("abcdefg")])
def test_each_entrant_has_each_seat_once_on_each_seed(names: tuple[str, ...]) -> None:
    records, _ = played(suite_of(2, *names), dict.fromkeys(names, 0.0))
    assert len(records) == 2 * len(names), "as many games as entrants on each seed"
    assert len({record.run for record in records}) == len(records)
    for seed in (0, 1):
        block = [record for record in records if record.seed == seed]
        for seat in range(5):
            assert sorted(record.seats[seat].entrant for record in block) == sorted(names)


def test_neither_rows_nor_standings_favour_a_seat() -> None:
    strength = {"a": 1.0, "b": 0.0, "c": 3.0}
    records, games = played(suite_of(4, *NAMES), strength)
    parts = by_entrant(records, games, 0.2)
    assert len(parts) == 4 * 3 * 3
    rows = {row.entrant: row for row in rows_of(parts, games)}
    for name, row in rows.items():
        assert row.figure.clusters == row.seeds == 4
        assert row.calls == 4 * 5, "those of its own seats: each of five once on a seed"
        assert row.cost == pytest.approx(4 * 5 * 0.5)
        if name != "a":
            assert row.difference is not None
            assert row.difference.seeds == 4
            # An entrant with one seat in a game and two in another weighs them unequally, but so does everybody.
            assert row.difference.difference == pytest.approx(strength[name] - strength["a"])
    standings = {s.rating.entrant: s for s in standings_of(parts, games)}
    assert [*standings] == ["c", "a", "b"]
    assert {s.rating.games for s in standings.values()} == {12}
    assert {s.kind for s in standings.values()} == {"Latin square"}


def test_a_block_of_which_a_game_is_missing_or_failed_has_no_value() -> None:
    records, games = played(suite_of(2, *NAMES), dict.fromkeys(NAMES, 0.0))
    failed = replace(records[0], outcome="failed", value=None, seats=())
    for some in ([failed, *records[1:]], records[1:]):
        rows = rows_of(by_entrant(some, games, 0.2), games)
        assert {(row.figure.clusters, row.seeds) for row in rows} == {(1, 2)}


def test_who_forfeits_a_game_forfeits_it_alone() -> None:
    records, games = played(suite_of(1, *NAMES), dict.fromkeys(NAMES, 0.0))
    first = records[0]
    seats = tuple(replace(seat, forced=9 * (seat.entrant == "b")) for seat in first.seats)
    parts = by_entrant([replace(first, seats=seats), *records[1:]], games, 0.2)
    outcomes = {part.entrant: part.outcome for part in parts if part.run == first.run}
    assert outcomes == {"a": "finished", "b": "forfeited", "c": "finished"}
    assert [part.value for part in parts if part.entrant == "b"] == [None] * 3, "a reward has no worst value"
    assert None not in [part.value for part in parts if part.entrant != "b"]
    broken = replace(first, outcome="forfeited", reason="its agent raised", value=None)
    parts = by_entrant([broken, *records[1:]], games, 0.2)
    assert {part.value for part in parts} == {None}, "nobody played this game to its end"


def test_what_can_not_be_played_together_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="a Latin square determines opponents and seats"):
        GameEntry(game="tossim", seating="square", against="random")
    alone = suite_of(1, "a")
    with pytest.raises(UsageError, match="is played by several entrants together; name two or more"):
        evaluate(Evaluation(alone, alone.entrants), tmp_path)
    entrants = (Entrant(agent="random"), Entrant(agent="random", label="other"))
    single = Suite(name="x", games=(GameEntry(game="minigrid", seating="square"),), entrants=entrants)
    with pytest.raises(UsageError, match="has one seat; several entrants take two or more"):
        evaluate(Evaluation(single, entrants), tmp_path)
    suite = suite_of(2, *NAMES)
    for cells, told in ((CellLimits(half_width=0.1), "--until has no meaning"), (CellLimits(calls=1), "limit all")):
        with pytest.raises(UsageError, match=told):
            evaluate(Evaluation(suite, suite.entrants, cells=cells), tmp_path)


@pytest.mark.slow
def test_a_town_of_several_entrants_is_played_continued_and_read(tmp_path: Path) -> None:
    entrants = (Entrant(agent="tossim-player", label="thinks"), Entrant(agent="random-legal", label="draws"))
    options = {"mode": "five", "rules": "quick", "longest_game": 2}
    entry = GameEntry(game="tossim", label="town", options=options, seating="square")
    suite = Suite(name="cup", games=(entry,), entrants=entrants, seeds=Seeds(count=1))
    evaluate(Evaluation(suite, entrants), tmp_path / "parts")
    more = suite.model_copy(update={"seeds": Seeds(count=2)})
    parts = evaluate(Evaluation(more, entrants, jobs=2), tmp_path / "parts")
    whole = evaluate(Evaluation(more, entrants), tmp_path / "whole")
    assert parts.missing == whole.missing == 0
    _, games = read_results(tmp_path / "whole")
    assert len(games) == 4, "two games on each seed"
    assert [(row.entrant, row.score) for row in parts.rows()] == [(row.entrant, row.score) for row in whole.rows()]
    assert {row.entrant: (row.episodes, row.seeds) for row in whole.rows()} == {"thinks": (4, 2), "draws": (4, 2)}
    again = played_of(tmp_path / "whole")
    assert again.rows() == whole.rows()
    assert [s.mean for s in again.standings()] == [s.mean for s in whole.standings()]
    shares = [sum(s.metrics["share_of_wins"] for s in game.seats) / 5 for game in games.values()]
    assert all(0 <= share <= 1 for share in shares)
    (thinks, draws) = whole.rows()
    assert draws.difference is not None, "conditions of all that play together are the same"
    assert thinks.metric == "share_of_wins"
