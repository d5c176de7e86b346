"""Ratings: OpenSkill called by hand, and what is drawn again."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from typing import Any

import pytest
from openskill.models import PlackettLuce
from scipy import stats

from wsap_eval.stats import resampled
from wsap_tossim.tournament.plan import Settings
from wsap_tossim.tournament.scores.ratings import faction_of, match_of, rate, rated
from wsap_tossim.tournament.table import games_csv, ratings_csv, summary_of

Line = Callable[..., dict[str, Any]]


def by_hand() -> Any:
    return PlackettLuce(tau=0.0)


def test_one_game_of_two_sides_is_rated_as_openskill_does_by_hand(line: Line) -> None:
    # All of the Town is played by the first, the Mafioso by the second: one against one.
    found = rate([line(0, [0, 0, 0, 0, 1], [0, 1, 2, 3], "Town")])
    model = by_hand()
    (town,), (mafia,) = model.rate([[model.rating()], [model.rating()]], ranks=[1, 2])
    assert set(found) == {(0, "Town"), (1, "Mafia")}
    assert found[0, "Town"] == pytest.approx((town.mu, town.sigma))
    assert found[1, "Mafia"] == pytest.approx((mafia.mu, mafia.sigma))
    # The model's own formula: with equal means p = 1/2, and mu moves by sigma^2 / c times 1 - p.
    c = math.sqrt(2 * (25 / 3) ** 2 + 2 * (25 / 6) ** 2)
    assert found[0, "Town"][0] == pytest.approx(25 + (25 / 3) ** 2 / c / 2)


def test_a_mixed_team_moves_by_its_members_shares(line: Line) -> None:
    # Three seats of the Town are the first's, one is the second's; w is 3/4 and 1/4.
    found = rate([line(0, [0, 0, 0, 1, 1], [0, 1, 2, 3], "Town")])
    model = by_hand()
    start = 25 / 3
    variance = (9 / 16 + 1 / 16) * start**2
    (town,), (mafia,) = model.rate([[model.rating(mu=25, sigma=math.sqrt(variance))], [model.rating()]], ranks=[1, 2])
    moved, shrunk = town.mu - 25, 1 - town.sigma**2 / variance
    assert found[0, "Town"][0] == pytest.approx(25 + 0.75 / 0.625 * moved)
    assert found[1, "Town"][0] == pytest.approx(25 + 0.25 / 0.625 * moved)
    assert found[0, "Town"][1] == pytest.approx(start * math.sqrt(1 - 0.5625 / 0.625 * shrunk))
    assert found[1, "Mafia"] == pytest.approx((mafia.mu, mafia.sigma))
    assert 0.75 * found[0, "Town"][0] + 0.25 * found[1, "Town"][0] == pytest.approx(town.mu), "the team's mean"


def test_a_second_game_begins_where_the_first_left_off(line: Line) -> None:
    roles = ("Mafioso", "Survivor", "Jester", "Serial Killer", "Sheriff")
    seats = [0, 1, 1, 1, 1]
    first = line(0, seats, [0, 1], "Mafia", roles=roles)
    again = rate([first, line(1, seats, [2, 3], "Serial Killer", roles=roles)], lambda role: role)
    model = by_hand()
    teams = [[model.rating()] for _ in roles]
    for ranks in ([1, 1, 2, 2, 2], [2, 2, 1, 1, 2]):  # those who win beside a side share its rank
        teams = model.rate(teams, ranks=ranks)
    for seat, role in enumerate(roles):
        assert again[seats[seat], role] == pytest.approx((teams[seat][0].mu, teams[seat][0].sigma)), role


def test_a_draw_of_equals_moves_no_mean(line: Line) -> None:
    found = rate([line(0, [0, 0, 1, 1, 1], [], None, roles=("Sheriff", "Sheriff", "Mafioso", "Mafioso", "Mafioso"))])
    assert [mu for mu, _ in found.values()] == pytest.approx([25, 25])


def test_the_order_of_the_games_makes_little_difference_to_a_rating(line: Line) -> None:
    """Streaks: whoever wins first is rated otherwise than who wins last, though both win half of their games."""
    won, lost = ([0, 1, 2, 3], "Town"), ([4], "Mafia")
    early = [line(n, [0, 0, 0, 0, 1], *(won if n < 10 else lost)) for n in range(20)]
    late = [line(n, [0, 0, 0, 0, 1], *(lost if n < 10 else won)) for n in range(20)]
    apart = rate(late)[0, "Town"][0] - rate(early)[0, "Town"][0]
    assert apart > 3, "game by game in one order it matters much"
    averaged = rated(late, resamples=0)[0, "Town"].mu - rated(early, resamples=0)[0, "Town"].mu
    assert abs(averaged) < apart / 4


@pytest.mark.parametrize("seed", range(4))
def test_a_rating_lies_in_its_interval_which_takes_twenty_blocks(line: Line, seed: int) -> None:
    games = many(line, 20)
    found = rated(games, resamples=5, seed=seed)
    for r in found.values():
        assert r.interval is not None
        assert r.ordinal_interval is not None
        assert r.mu in r.interval
        assert r.ordinal in r.ordinal_interval
        assert r.ordinal == pytest.approx(r.mu - 3 * r.sigma)
    assert found == rated(games, resamples=5, seed=seed)
    assert {r.interval for r in rated(games[:38], resamples=5, seed=seed).values()} == {None}


def many(line: Line, blocks: int = 6) -> list[dict[str, Any]]:
    """Two games in each block; the first entrant's Town wins, the second's loses."""
    lines = []
    for block in range(blocks):
        lines.append(line(2 * block, [0, 0, 0, 0, 1], [0, 1, 2, 3], "Town", block=block))
        lines.append(line(2 * block + 1, [1, 1, 1, 1, 0], [4], "Mafia", block=block))
    return lines


def test_the_same_seed_draws_the_same_games_and_whole_blocks(line: Line) -> None:
    games = [match_of(one, faction_of) for one in many(line)]
    assert resampled(games, 5, 3) == resampled(games, 5, 3)
    assert resampled(games, 5, 3) != resampled(games, 5, 4)
    for sample in resampled(games, 5, 3):
        blocks = [one.block for one in sample]
        assert len(blocks) == 12
        assert all(b == a for a, b in zip(blocks[::2], blocks[1::2], strict=True)), "a block stays whole"


def test_intervals_hold_the_rating_and_the_better_one_is_above(line: Line) -> None:
    found = rated(many(line, 20), resamples=30, seed=1)
    ends = {key: r.interval for key, r in found.items() if r.interval is not None}
    assert ends[0, "Town"].low > ends[1, "Town"].high
    assert ends[0, "Mafia"].low > ends[1, "Mafia"].high
    assert {r.interval for r in rated(many(line, 20), resamples=0).values()} == {None}


def test_roles_are_rated_once_they_were_played_often_enough(line: Line, two: Settings) -> None:
    summary = summary_of(two, many(line), resamples=3)
    rows = {(r["entrant"], r["as"]): r for r in summary["roles"]}
    citizen = rows["one", "Citizen"]
    assert (citizen["seats"], citizen["won"], citizen["mu"]) == (12, 12, None)
    more = summary_of(
        two,
        [{**one, "game": one["game"] + n, "block": one["block"] + n} for n in (0, 12) for one in many(line)],
        resamples=3,
    )
    assert {r["as"] for r in more["roles"] if r["mu"] is not None} == {"Citizen"}


def test_sums_of_all_seats_make_the_measures_of_an_entrant(line: Line, two: Settings) -> None:
    sums = [{"votes": 2.0, "votes_hit": 2.0, "votes_base": 0.5}, {"votes": 2.0, "votes_hit": 0.0, "votes_base": 0.5}]
    lines = [line(0, [0, 0, 1, 1, 1], [], None, sums=sums), line(1, [1, 0, 1, 1, 1], [], None, sums=sums)]
    rows = {(r["entrant"], r["measure"]): r for r in summary_of(two, lines, resamples=20)["measures"]}
    one, other = rows["one", "votes_above"], rows["two", "votes_above"]
    assert one["value"] == pytest.approx(2 / 6 - 1.5 / 6, abs=1e-6), "three seats of two votes; one hit twice"
    assert other["value"] == pytest.approx(0.75)
    assert (one["low"], one["high"]) == (None, None), "one block"
    assert rows["one", "log_loss"]["value"] is None


def test_the_interval_of_a_measure_is_the_jackknifes_over_blocks(line: Line, two: Settings) -> None:
    """As a quotient of which every block has the same denominator is a mean, and has the interval of a mean."""
    lines = [line(n, [0] * 5, [], None, sums=[{"claims": 2.0, "false_claims": float(n % 3)}]) for n in range(40)]
    row = next(r for r in summary_of(two, lines, resamples=0)["measures"] if r["measure"] == "true_claims")
    shares = [1 - (n % 3) / 2 for n in range(40)]
    expected = stats.t.interval(0.95, 39, statistics.fmean(shares), stats.sem(shares))
    assert (row["low"], row["high"]) == pytest.approx(expected, abs=1e-6)
    few = summary_of(two, lines[:39], resamples=0)["measures"]
    assert {r["low"] for r in few} == {None}


def test_tables_have_a_row_for_each_seat_and_nothing_that_a_spreadsheet_runs(line: Line, two: Settings) -> None:
    evil = line(0, [0, 0, 0, 0, 1], [0], "Town")
    evil["entrants"] = ['=HYPERLINK("http://x")'] * 5
    rows = games_csv([evil]).splitlines()
    assert len(rows) == 6
    assert all('"\'=HYPERLINK(""http://x"")"' in row for row in rows[1:])
    assert ratings_csv(summary_of(two, [evil], resamples=2)).startswith("level,entrant,as,seats,won,win_rate")


def test_the_interval_of_a_win_rate_knows_that_a_side_wins_together(line: Line, two: Settings) -> None:
    # Six blocks of one game; all four of the Town win in three of them: three of six, not twelve of twenty-four.
    lines = [line(n, [0, 0, 0, 0, 1], [0, 1, 2, 3] if n % 2 else [4], "Town" if n % 2 else "Mafia") for n in range(6)]
    row = next(r for r in summary_of(two, lines, resamples=200)["factions"] if r["as"] == "Town")
    assert (row["won"], row["seats"], row["win_rate"]) == (12, 24, 0.5)
    # Exact by betting on six means that are all 0 or 1, which is Clopper and Pearson's for three in six.
    low, high = stats.binomtest(3, 6).proportion_ci()
    assert (row["win_low"], row["win_high"]) == pytest.approx((low, high), abs=1e-6)
