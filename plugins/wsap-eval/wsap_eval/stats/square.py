"""Seats by Latin square: games of several entrants in which each entrant plays each seat once.

A block has as many games (k) as there are entrants, all with the same seed. Each seat has a place, and in game b of the
block place p goes to entrant (p + b) mod k. So over a block each entrant plays every seat exactly once, and whatever a
seat brings, such as a role, is the same for all.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import NamedTuple


class Turn(NamedTuple):
    """Where a game stands."""

    block: int
    """From 0; the games of a block have the same seed."""
    turn: int
    """The game's number in its block, from 0."""


def turn_of(number: int, entrants: int) -> Turn:
    """Return the block of a game, and its number in it; games are numbered from 0."""
    return Turn(*divmod(number, entrants))


def square(places: Sequence[int], turn: int, entrants: int) -> tuple[int, ...]:
    """Return seat -> number of its entrant in a game of a block.

    Seats with the same of `places` go to the same entrant.
    """
    return tuple((place + turn) % entrants for place in places)


def drawn_places(seats: int, lots: random.Random) -> list[int]:
    """Return seat -> place, in random order."""
    order = list(range(seats))
    lots.shuffle(order)
    places = [0] * seats
    for place, seat in enumerate(order):
        places[seat] = place
    return places
