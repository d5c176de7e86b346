"""Random legal play: a baseline, and a way to test the engine."""

from __future__ import annotations

import random
from functools import cache

from wsap_tossim.engine.data.model import WAIT, Choice, Option, Verb
from wsap_tossim.engine.data.tokens import tokens
from wsap_tossim.engine.game import Game

__all__ = ["filled", "play_out", "random_choice"]

_WORDS = "I have nothing to say."


def random_choice(game: Game, player: int, rng: random.Random, *, talk: bool = False) -> Choice:
    """Return a random legal choice of an asked player: uniform over verbs, then over targets.

    With `talk` it can speak too, always the same few words.
    """
    left = game.tokens_left(player) if talk else None
    options = game.options(player, talk=talk and (left is None or left >= tokens(_WORDS)))
    return filled(options[int(rng.random() * len(options))], rng)


def filled(option: Option, rng: random.Random) -> Choice:
    """Return a choice for an option, with random targets."""
    verb, slots, text = option
    if not slots:
        return _choice(verb, None, text)
    if len(slots) == 1:
        slot = slots[0]
        return _choice(verb, slot[int(rng.random() * len(slot))], text)
    first = rng.choice(slots[0])
    rest = [t for t in slots[1] if t != first]
    return Choice(verb, (first, rng.choice(rest)), _WORDS if text else "") if rest else WAIT


@cache
def _choice(verb: Verb, target: int | None, text: bool) -> Choice:
    """Return a cached choice with one target at most, since a game has hundreds of few distinct ones."""
    return Choice(verb, () if target is None else (target,), _WORDS if text else "")


def play_out(game: Game, rng: random.Random, *, talk: bool = False) -> Game:
    """Play a game to its end at random."""
    while not game.over:
        choices = {}
        for player in game.waiting:
            choices[player] = random_choice(game, player, rng, talk=talk)
        game.carry_out(choices)
    return game
