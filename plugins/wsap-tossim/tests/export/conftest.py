"""Games in which everything that anybody says or writes is a word of its own."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from wsap_tossim.engine.data.rules import rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.random_play import random_choice
from wsap_tossim.engine.setups import setup
from wsap_tossim.replay import Record


def spoken(seed: int, mode: str = "classic", rules: str = "quick") -> Record:
    """Return a game played by lot; the words are w0x, w1x, ... and the thoughts t0x, t1x, ..."""
    game, rng = Game(setup(mode), rule_set(rules), seed), random.Random(seed)
    count = 0
    thoughts: list[tuple[int, int, str]] = []

    def word() -> str:
        nonlocal count
        count += 1
        return f"w{count}x"

    while not game.over:
        choices = {}
        for player in game.waiting:
            if rng.random() < 0.3:
                game.write(player, "will", word())
            if rng.random() < 0.3:
                book = game.state.players[player].notebook
                game.write(player, "notebook", f"{book}\n{word()}" if book else word())
            choice = random_choice(game, player, rng, talk=True)
            choices[player] = choice._replace(text=word()) if choice.text else choice
            thoughts.append((game.round, player, f"t{len(thoughts)}x"))
        game.carry_out(choices)
    names = tuple(f"Player {n + 1}" for n in range(len(game.state.players)))
    return Record(game, names, (), tuple(thoughts))


@pytest.fixture(scope="session")
def talk() -> Callable[..., Record]:
    """Gives such games."""
    return spoken
