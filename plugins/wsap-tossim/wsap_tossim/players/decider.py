"""The interface of a player in a match, and the random player."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from wsap_tossim.engine.data.model import Choice, Option, Verb
from wsap_tossim.engine.random_play import filled
from wsap_tossim.knowledge import Knowledge

__all__ = ["Decider", "RandomDecider", "Turn", "lots"]


def lots(seed: int, player: int) -> random.Random:
    """Return the random generator of a player, determined by seed and seat."""
    return random.Random(f"{seed}:{player}")  # play, not secrets


@dataclass(frozen=True)
class Turn:
    """A player's decision: a choice, and papers to write."""

    choice: Choice
    writings: Mapping[str, str] = field(default_factory=dict)
    """The new texts of will, note or notebook; only changed ones."""
    thought: str = ""
    """The reason, in a sentence or two."""


class Decider(Protocol):
    """Plays one seat, using only its player's `Knowledge`."""

    def turn(self, knowledge: Knowledge, options: Sequence[Option]) -> Turn:
        """Return the player's decision; there is at least one option."""
        ...

    def beliefs(self, knowledge: Knowledge) -> Mapping[int, float]:
        """Return the probability that each other living player is an enemy of the Town."""
        ...


class RandomDecider:
    """Chooses uniformly among the legal verbs, then among their targets: a baseline."""

    def __init__(self, player: int, rng: random.Random, names: Sequence[str]) -> None:
        self.player = player
        self.seed = rng.getrandbits(48)
        self.names = tuple(names)

    def turn(self, knowledge: Knowledge, options: Sequence[Option]) -> Turn:
        """Return a random choice."""
        rng = random.Random(f"{self.seed}:{len(knowledge.events)}:{knowledge.day}")  # play, not secrets
        quiet = [o for o in options if not o.text or o.verb is Verb.FORGE]
        return Turn(filled(quiet[int(rng.random() * len(quiet))], rng), {}, "By lot.")

    def beliefs(self, knowledge: Knowledge) -> Mapping[int, float]:
        """Return one half for everybody."""
        return {n: 0.5 for n in knowledge.living() if n != self.player}
