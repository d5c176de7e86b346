"""Random play under the rule set "parity" against the closed formula; `benchmarks/bench_tossim_rules.py` does more."""

from __future__ import annotations

import math
import random

import pytest

from wsap_tossim.engine.data.model import Choice, Verb
from wsap_tossim.engine.data.rules import RULE_SETS
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.setups import setup

GAMES = 1500
SURE = 3.89
"""Standard deviations: a right engine fails one in ten thousand times, and the seeds are fixed."""


def choose(game: Game, player: int, rng: random.Random) -> Choice:
    for option in game.options(player):
        if option.slots:
            return Choice(option.verb, (rng.choice(option.slots[0]),))
    return Choice(Verb.WAIT)


@pytest.mark.parametrize(
    ("players", "mafiosi", "chance"),
    [(5, 1, 8 / 15), (6, 1, 5 / 8), (7, 2, 27 / 35)],
)
@pytest.mark.slow
def test_the_mafia_wins_as_often_as_the_formula_says(players: int, mafiosi: int, chance: float) -> None:
    lesson, wins = setup(f"lesson:{players}:{mafiosi}"), 0
    for seed in range(GAMES):
        game, rng = Game(lesson, RULE_SETS["parity"], seed), random.Random(seed + 10_000)
        while not game.over:
            game.resolve({player: choose(game, player, rng) for player in game.waiting})
        assert game.ending is not None
        wins += game.ending.side == "Mafia"

    margin = SURE * math.sqrt(chance * (1 - chance) / GAMES)
    assert abs(wins / GAMES - chance) < margin
