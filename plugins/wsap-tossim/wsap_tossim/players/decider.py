"""The interface of a player in a match: it is asked, and answers from what it knows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from wsap_tossim.engine.model import Choice, Option, Verb
from wsap_tossim.engine.random_play import filled
from wsap_tossim.knowledge import Knowledge

__all__ = ["Decider", "RandomDecider", "Turn", "lots"]


def lots(seed: int, player: int) -> random.Random:
    """Return the random generator of a player; the same seed and seat give the same one."""
    return random.Random(f"{seed}:{player}")  # play, not secrets


@dataclass(frozen=True)
class Turn:
    """The answer of a player: a choice, and papers to write."""

    choice: Choice
    writings: Mapping[str, str] = field(default_factory=dict)
    """Its will, note or notebook as they should stand from now on; only those that change."""
    thought: str = ""
    """Why, in a sentence or two."""


class Decider(Protocol):
    """Plays one seat. It sees nothing but its player's `Knowledge`, and answers with one of the options."""

    def turn(self, knowledge: Knowledge, options: Sequence[Option]) -> Turn:
        """Return what the player does now.

        Args:
            knowledge: all that the player knows.
            options: everything that it can do; never empty.
        """
        ...

    def beliefs(self, knowledge: Knowledge) -> Mapping[int, float]:
        """Return how likely each other living player is an enemy of the Town, from 0 to 1."""
        ...


class RandomDecider:
    """Chooses uniformly among the legal verbs, then among their targets: a baseline.

    Args:
        player: its seat.
        rng: where its seed is drawn from.
        names: of all players, by number.
    """

    def __init__(self, player: int, rng: random.Random, names: Sequence[str]) -> None:
        self.player = player
        self.seed = rng.getrandbits(48)
        self.names = tuple(names)

    def turn(self, knowledge: Knowledge, options: Sequence[Option]) -> Turn:
        """Return a choice drawn by lot."""
        rng = random.Random(f"{self.seed}:{len(knowledge.events)}:{knowledge.day}")  # play, not secrets
        quiet = [o for o in options if not o.text or o.verb is Verb.FORGE]
        return Turn(filled(quiet[int(rng.random() * len(quiet))], rng), {}, "By lot.")

    def beliefs(self, knowledge: Knowledge) -> Mapping[int, float]:
        """Return one half for everybody."""
        return {n: 0.5 for n in knowledge.living() if n != self.player}
