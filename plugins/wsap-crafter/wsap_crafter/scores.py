"""Crafter's two scores, from the achievements of episodes."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Protocol

from wsap_crafter.catalogue import ACHIEVEMENTS


class Episode(Protocol):
    """The part of an episode that scores need."""

    @property
    def achievements(self) -> Collection[str]:
        """Names of the achievements unlocked in it."""
        ...


def success_rates(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return for each of the 22 achievements the percentage of episodes in which it was unlocked."""
    total = len(episodes)
    return {
        a.name: 100 * sum(a.name in episode.achievements for episode in episodes) / total if total else 0.0
        for a in ACHIEVEMENTS
    }


def official_score(episodes: Sequence[Episode]) -> float:
    """Return the score of Hafner's paper, from 0 to 100; 0 without episodes.

    S = exp(mean over the 22 achievements of ln(1 + success rate in percent)) - 1
    ("Benchmarking the Spectrum of Agent Capabilities", arXiv 2109.06780, section 3.4).
    """
    rates = success_rates(episodes).values()
    return math.exp(math.fsum(math.log1p(rate) for rate in rates) / len(rates)) - 1


def progression(episodes: Sequence[Episode]) -> float:
    """Return BALROG's progression: the mean share of the 22 achievements unlocked, in percent; 0 without episodes."""
    if not episodes:
        return 0.0
    names = {a.name for a in ACHIEVEMENTS}
    unlocked = sum(len(names.intersection(episode.achievements)) for episode in episodes)
    return 100 * unlocked / (len(names) * len(episodes))
