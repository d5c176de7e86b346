"""The base class of games of several seats, shown with the games of the how-to and small ones made here."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from rounds_kit import from_page, value

from wsap_core.authoring.rounds import RoundGame

KUHN: type[RoundGame] = from_page("kuhn.py")["KuhnPoker"]
DEALS = list(itertools.permutations(["jack", "queen", "king"]))


def mean_value(policy: Any) -> dict[str, float]:
    """Return the value of a policy over the six deals of Kuhn poker."""
    total = dict.fromkeys(KUHN.seats, 0.0)
    for deal in DEALS:
        game = KUHN()
        game.load({"deck": list(deal), "moves": ""})
        for seat, pay in value(game, policy).items():
            total[seat] += pay / len(DEALS)
    return total


# --- rules, against published values ------------------------------------------------------------------


def test_kuhn_poker_played_at_random_is_worth_an_eighth_to_the_first_player() -> None:
    # The value that OpenSpiel's policy evaluation gives for the uniform policy.
    at_random = mean_value(lambda game, seat: {"pass": 0.5, "bet": 0.5})
    assert at_random == pytest.approx({"first": 1 / 8, "second": -1 / 8})


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1 / 3])
def test_kuhn_poker_in_equilibrium_costs_the_first_player_an_eighteenth(alpha: float) -> None:
    # H. W. Kuhn, A Simplified Two-Person Poker (1950): any alpha from 0 to 1/3 is an equilibrium.
    bets = {
        ("jack", 0): alpha, ("queen", 0): 0.0, ("king", 0): 3 * alpha,
        ("jack", 1, "p"): 1 / 3, ("queen", 1, "p"): 0.0, ("king", 1, "p"): 1.0,
        ("jack", 1, "b"): 0.0, ("queen", 1, "b"): 1 / 3, ("king", 1, "b"): 1.0,
        ("jack", 2): 0.0, ("queen", 2): alpha + 1 / 3, ("king", 2): 1.0,
    }  # fmt: skip

    def equilibrium(game: RoundGame, seat: str) -> Mapping[str, float]:
        status = game.see(seat).status
        moves = "".join(move[0] for move in status["moves so far"])
        at = (status["your card"], len(moves), moves) if len(moves) == 1 else (status["your card"], len(moves))
        return {"bet": bets[at], "pass": 1 - bets[at]}

    assert mean_value(equilibrium) == pytest.approx({"first": -1 / 18, "second": 1 / 18})
