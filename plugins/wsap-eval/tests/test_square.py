"""Seats by Latin square: over a block everybody has every seat once."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from wsap_eval.stats.square import drawn_places, square, turn_of


@given(entrants=st.integers(1, 12), seats=st.integers(1, 15), seed=st.integers(0, 1000))
def test_over_a_block_each_entrant_has_each_seat_once(entrants: int, seats: int, seed: int) -> None:
    places = drawn_places(seats, random.Random(seed))
    assert sorted(places) == list(range(seats))
    block = [square(places, turn, entrants) for turn in range(entrants)]
    for seat in range(seats):
        assert sorted(game[seat] for game in block) == list(range(entrants))
    for game in block:
        shares = [game.count(entrant) for entrant in range(entrants)]
        assert max(shares) - min(shares) <= 1, "all have as many seats, or one more"


@given(entrants=st.integers(1, 12), number=st.integers(0, 1000))
def test_games_are_numbered_block_by_block(entrants: int, number: int) -> None:
    block, turn = turn_of(number, entrants)
    assert block * entrants + turn == number
    assert 0 <= turn < entrants


def test_seats_of_one_place_go_to_one_entrant() -> None:
    assert square([0, 0, 1, 0], 0, 2) == (0, 0, 1, 0)
    assert square([0, 0, 1, 0], 1, 2) == (1, 1, 0, 1)
