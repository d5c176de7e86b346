"""What is measured of a game, on one small enough to be reckoned by hand.

Ann is the Sheriff, Bo the Doctor, Cy and Dana are Citizens, Eve is the Mafioso: one enemy of five, so for
each of the Town one in four of the others.
"""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from wsap_tossim.engine.data.model import Event, Phase
from wsap_tossim.tournament.scores.measures import COUNTS, measure
from wsap_tossim.tournament.table import MEASURES

ANN, BO, CY, DANA, EVE = range(5)
NAMES = ("Ann", "Bo", "Cy", "Dana", "Eve")
ROLES = ["Sheriff", "Doctor", "Citizen", "Citizen", "Mafioso"]


class Scroll:
    """A log, written line by line."""

    def __init__(self) -> None:
        self.log: list[Event] = []
        self.day = 1

    def tell(self, kind: str, **data: Any) -> None:
        self.log.append(Event(len(self.log), self.day, Phase.DISCUSSION, kind, 0b11111, data))

    def over(self, roles: list[str] | None = None, final: list[str] | None = None) -> list[Event]:
        self.tell("over", winners=[], side=None, reason="")
        self.tell("truth", roles=roles or ROLES, final=final or roles or ROLES)
        return self.log


@pytest.fixture
def game() -> list[Event]:
    s = Scroll()
    s.tell("phase", name="discussion")
    s.tell("speech", player=ANN, text="I am the Sheriff.")
    s.tell("phase", name="dusk")
    s.day = 2
    s.tell("death", player=BO, causes=["the Mafia"], role="Doctor", when="night")
    # Four are left; each of the Town has three others, one of them an enemy.
    s.tell("speech", player=EVE, text="I am the Doctor. I suspect Ann.")
    s.tell("speech", player=CY, text="I suspect Eve.")
    s.tell("phase", name="nomination")
    s.tell("vote", player=ANN, target=EVE, weight=1, needed=3)
    s.tell("vote", player=CY, target=DANA, weight=1, needed=3)
    s.tell("vote", player=EVE, target=DANA, weight=1, needed=3)
    s.tell("vote", player=DANA, target=EVE, weight=1, needed=3)
    s.tell("vote", player=CY, target=EVE, weight=1, needed=3)
    s.tell("trial", player=EVE, number=1)
    for player, verdict in ((ANN, "guilty"), (CY, "innocent"), (DANA, "abstain")):
        s.tell("verdict", player=player, verdict=verdict, weight=1)
    s.tell("judged", player=EVE, guilty=1, innocent=1, condemned=False)
    s.tell("phase", name="nomination")
    s.tell("phase", name="dusk")
    return s.over()


BELIEFS = [
    (1, ANN, {BO: 0.25, CY: 0.25, DANA: 0.25, EVE: 0.25}),
    (1, EVE, {ANN: 0.5, BO: 0.5, CY: 0.5, DANA: 0.5}),
    (2, ANN, {CY: 0.5, DANA: 0.2, EVE: 0.1}),
    (2, CY, {ANN: 0.0, DANA: 0.0, EVE: 1.0}),
]


def test_claims_are_held_against_the_role(game: list[Event]) -> None:
    sums = measure(game, NAMES)
    assert (sums[ANN]["claims"], sums[ANN]["false_claims"]) == (1, 0)
    assert (sums[EVE]["claims"], sums[EVE]["false_claims"]) == (1, 1)
    assert (sums[EVE]["enemy_claims"], sums[EVE]["enemy_false_claims"]) == (1, 1)
    assert sums[ANN]["enemy_claims"] == 0


def test_votes_verdicts_and_accusations_of_the_town_are_held_against_lots(game: list[Event]) -> None:
    sums = measure(game, NAMES)
    third = pytest.approx(1 / 3)
    assert (sums[ANN]["votes"], sums[ANN]["votes_hit"], sums[ANN]["votes_base"]) == (1, 1, third)
    assert (sums[CY]["votes"], sums[CY]["votes_hit"], sums[CY]["votes_base"]) == (2, 1, pytest.approx(2 / 3))
    assert sums[EVE]["votes"] == 0, "the Mafia knows who is who"
    assert (sums[ANN]["guilty"], sums[ANN]["guilty_hit"], sums[ANN]["guilty_base"]) == (1, 1, third)
    assert sums[CY]["guilty"] == sums[DANA]["guilty"] == 0
    assert (sums[CY]["accusations"], sums[CY]["accusations_hit"], sums[CY]["accusations_base"]) == (1, 1, third)
    assert sums[EVE]["accusations"] == 0


def test_an_enemy_is_counted_what_it_withstood(game: list[Event]) -> None:
    eve = measure(game, NAMES)[EVE]
    assert (eve["enemy_trials"], eve["enemy_acquitted"]) == (1, 1)
    assert (eve["enemy_votes"], eve["enemy_days"]) == (3, 1), "two nominations of one day are one day"


def test_beliefs_of_the_town_are_held_against_the_truth(game: list[Event]) -> None:
    sums = measure(game, NAMES, BELIEFS)
    # Day 1: three innocents at 1/4 and the enemy at 1/4. Day 2: 0.5 and 0.2 on innocents, 0.1 on the enemy.
    first, base_first = -3 * log(0.75) - log(0.25), -3 * log(0.75) - log(0.25)
    second, base_second = -log(0.5) - log(0.8) - log(0.1), -2 * log(2 / 3) - log(1 / 3)
    assert sums[ANN]["beliefs"] == 7
    assert sums[ANN]["loss"] == pytest.approx(first + second)
    assert sums[ANN]["loss_base"] == pytest.approx(base_first + base_second)
    assert sums[CY]["loss"] == pytest.approx(-3 * log(0.99)), "nobody is taken to be surer than 99 %"
    assert sums[EVE]["beliefs"] == 0
    # Squares of what they were off by; the share is 1/4 of four others on day 1, and 1/3 of three on day 2.
    assert sums[ANN]["brier"] == pytest.approx(3 * 0.0625 + 0.5625 + 0.25 + 0.04 + 0.81)
    assert sums[ANN]["brier_base"] == pytest.approx(3 * 0.0625 + 0.5625 + 2 / 9 + 4 / 9)
    assert sums[CY]["brier"] == 0
    assert sums[ANN]["unanswered"] == 0


def test_beliefs_that_were_not_given_are_counted_and_never_made_up(game: list[Event]) -> None:
    beliefs: list[tuple[int, int, dict[int, float]]] = [(1, ANN, {EVE: 0.5}), (2, ANN, {}), (2, EVE, {})]
    sums = measure(game, NAMES, beliefs)
    assert (sums[ANN]["beliefs"], sums[ANN]["unanswered"]) == (1, 3 + 3), "of four on day 1, of three on day 2"
    assert sums[ANN]["loss"] == pytest.approx(-log(0.5))
    assert sums[ANN]["loss_base"] == pytest.approx(-log(0.25)), "the share among all who live, whomever it spoke of"
    assert sums[EVE]["unanswered"] == 0, "only the Town is measured"


def test_a_false_claim_is_held_against_how_the_belief_in_its_guilt_moved(game: list[Event]) -> None:
    eve = measure(game, NAMES, BELIEFS)[EVE]
    # Eve lied on day 2. Ann's belief fell from 0.25 to 0.1; Cy was not asked the day before.
    assert (eve["falls"], eve["fall"]) == (1, pytest.approx(0.15))


def test_who_changes_sides_is_measured_as_what_it_is_at_the_moment() -> None:
    s = Scroll()
    s.tell("speech", player=CY, text="I am the Citizen.")
    s.tell("becomes", player=CY, role="Vampire", why="conversion")
    s.tell("speech", player=CY, text="I am the Citizen.")
    s.tell("vote", player=CY, target=EVE, weight=1, needed=3)
    sums = measure(s.over(final=["Sheriff", "Doctor", "Vampire", "Citizen", "Mafioso"]), NAMES)
    assert (sums[CY]["claims"], sums[CY]["false_claims"]) == (2, 1)
    assert (sums[CY]["enemy_claims"], sums[CY]["enemy_false_claims"]) == (1, 1)
    assert sums[CY]["votes"] == 0


def test_every_measure_follows_its_formula() -> None:
    empty: dict[str, float] = dict.fromkeys(COUNTS, 0.0)
    sums = empty | {
        "claims": 10, "false_claims": 4, "enemy_claims": 5, "enemy_false_claims": 4, "fall": 0.6, "falls": 3,
        "enemy_trials": 4, "enemy_acquitted": 1, "enemy_votes": 9, "enemy_days": 6, "votes": 8, "votes_hit": 5,
        "votes_base": 2, "guilty": 4, "guilty_hit": 3, "guilty_base": 1, "accusations": 2, "accusations_hit": 1,
        "accusations_base": 0.5, "beliefs": 10, "loss": 4, "loss_base": 5,
        "brier": 2, "brier_base": 1.5, "unanswered": 30,
    }  # fmt: skip
    assert {name: formula(sums) for name, (_, _, formula) in MEASURES.items()} == pytest.approx(
        {
            "false_claims": 0.8, "belief_fall": 0.2, "acquitted": 0.25, "votes_against": 1.5, "votes_above": 0.375,
            "guilty_above": 0.5, "accusations_above": 0.25, "log_loss": 0.4, "log_loss_above": -0.1, "true_claims": 0.6,
            "brier": 0.2, "brier_above": 0.05, "unanswered": 0.75,
        }
    )  # fmt: skip
    assert {formula(empty) for _, _, formula in MEASURES.values()} == {None}, "nothing is said of what never was"


def test_a_game_that_is_not_over_is_not_measured() -> None:
    with pytest.raises(ValueError, match="not over"):
        measure(Scroll().log, NAMES)
