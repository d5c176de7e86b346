"""Players who do anything that is possible: a baseline, and what the engine is tried with."""

from __future__ import annotations

import random

from wsap_tossim.engine.game import Game
from wsap_tossim.engine.model import Choice, Option, Verb

__all__ = ["play_out", "random_choice"]


def random_choice(game: Game, player: int, rng: random.Random, *, talk: bool = False) -> Choice:
    """Return any possible choice of a player who is asked, each verb alike, then each target alike.

    Args:
        game: the game.
        player: one who is asked now.
        rng: where lots are drawn from.
        talk: whether it also says things (the same few words); otherwise talking is left out.
    """
    options = [o for o in game.options(player) if talk or not o.text or o.verb is Verb.FORGE]
    return filled(options[int(rng.random() * len(options))], rng)


def filled(option: Option, rng: random.Random) -> Choice:
    """Return a choice for an option, with any targets that it allows."""
    if not option.slots:
        return Choice(option.verb, (), "I have nothing to say." if option.text else "")
    if len(option.slots) == 1:
        slot = option.slots[0]
        targets: tuple[int, ...] = (slot[int(rng.random() * len(slot))],)
    else:
        first = rng.choice(option.slots[0])
        rest = [t for t in option.slots[1] if t != first]
        if not rest:
            return Choice(Verb.WAIT)
        targets = (first, rng.choice(rest))
    return Choice(option.verb, targets, "I have nothing to say." if option.text else "")


def play_out(game: Game, rng: random.Random, *, talk: bool = False) -> Game:
    """Play a game to its end at random, and return it."""
    while not game.over:
        game.carry_out({p: random_choice(game, p, rng, talk=talk) for p in game.waiting})
    return game
