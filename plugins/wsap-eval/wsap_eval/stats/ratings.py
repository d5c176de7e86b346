"""Ratings from games of several seats: Bradley-Terry over all games, OpenSkill game by game."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from wsap_eval.stats.bounds import Array
from wsap_eval.stats.estimates import Interval

__all__ = ["Match", "Rating", "ratings"]

_PRIOR_SD = 5.0
"""Standard deviation of the strengths' normal prior, in logits (about 870 Elo points): it keeps finite the rating of
an entrant that won or lost every game."""
_ELO = 400 / math.log(10)


@dataclass(frozen=True)
class Match:
    """One game."""

    seed: int
    """Games of the same seed are one cluster."""
    entrants: tuple[str, ...]
    """One per seat; an entrant may have several seats."""
    scores: tuple[float, ...]
    """Of each seat; higher is better, equal is a tie."""


@dataclass(frozen=True)
class Rating:
    """The strength of an entrant."""

    entrant: str
    games: int
    elo: float
    """Bradley-Terry strength in Elo points; the mean of a group is 0."""
    interval: Interval | None
    group: int
    """Entrants are comparable within a group: those whom games connect, directly or through others."""
    openskill_mu: float | None = None
    """OpenSkill's mean, games in their order; None if openskill is not installed."""
    openskill_sigma: float | None = None


def ratings(matches: Sequence[Match], *, level: float = 0.95, resamples: int = 300) -> list[Rating]:
    """Return ratings of all entrants, best first.

    Each pair of seats of different entrants is a comparison, a tie counts as half a win for both (Bradley and Terry,
    Biometrika 39, 1952). Comparisons of a game of k seats weigh 1 / (k - 1), so that a game counts once for each seat.
    Intervals are percentiles of a bootstrap over seeds.

    Args:
        matches: games, in their order.
        level: nominal coverage.
        resamples: number of bootstrap resamples; no intervals with fewer than ten seeds.
    """
    names = sorted({name for match in matches for name in match.entrants})
    index = {name: i for i, name in enumerate(names)}
    seeds = sorted({match.seed for match in matches})
    wins = np.zeros((len(seeds), len(names), len(names)))
    games = dict.fromkeys(names, 0)
    for match in matches:
        for name in set(match.entrants):
            games[name] += 1
        _count(match, index, wins[seeds.index(match.seed)])
    group = _groups(wins.sum(axis=0))
    point = _strengths(wins.sum(axis=0), group)
    low = high = None
    if len(seeds) >= 10:
        rng = np.random.default_rng(0)
        weights = rng.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), size=resamples)
        drawn = [_strengths(np.tensordot(weight, wins, 1), group, point) for weight in weights]
        low, high = np.quantile(np.array(drawn), [(1 - level) / 2, (1 + level) / 2], axis=0)
    skill = _openskill(matches)
    rated = [
        Rating(
            name,
            games[name],
            float(point[i]) * _ELO,
            None if low is None or high is None else _interval(low[i], high[i], level),
            int(group[i]),
            *skill.get(name, (None, None)),
        )
        for i, name in enumerate(names)
    ]
    return sorted(rated, key=lambda rating: (rating.group, -rating.elo, rating.entrant))


def _interval(low: float, high: float, level: float) -> Interval:
    return Interval(float(low) * _ELO, float(high) * _ELO, level, "bootstrap over seeds")


def _count(match: Match, index: dict[str, int], wins: Array) -> None:
    seats = list(zip(match.entrants, match.scores, strict=True))
    for (a, x), (b, y) in combinations(seats, 2):
        if a != b:
            share = 0.5 if x == y else float(x > y)
            wins[index[a], index[b]] += share / (len(seats) - 1)
            wins[index[b], index[a]] += (1 - share) / (len(seats) - 1)


def _groups(wins: Array) -> Array:
    """Return the number of each entrant's connected component."""
    from scipy.sparse.csgraph import connected_components  # deferred for weight

    found: Array = connected_components(wins + wins.T, directed=False)[1]
    return found


def _strengths(wins: Array, group: Array, start: Array | None = None) -> Array:
    """Return the most probable strengths in logits, centred in each group."""
    from scipy.optimize import minimize  # deferred for weight

    played = wins + wins.T

    def loss(s: Array) -> tuple[float, Array]:
        gaps = s[:, None] - s[None, :]
        expected = 1 / (1 + np.exp(-gaps))
        value = (wins * np.logaddexp(0, -gaps)).sum() + (s**2).sum() / (2 * _PRIOR_SD**2)
        gradient = (played * expected - wins).sum(axis=1) + s / _PRIOR_SD**2
        return float(value), gradient

    found = minimize(loss, np.zeros(len(wins)) if start is None else start, jac=True, method="L-BFGS-B")
    strengths: Array = found.x
    for number in np.unique(group):
        strengths[group == number] -= strengths[group == number].mean()
    return strengths


def _openskill(matches: Sequence[Match]) -> dict[str, tuple[float, float]]:
    """Return name -> mean and deviation by OpenSkill's model of Plackett and Luce; empty if it is not installed."""
    try:
        from openskill.models import PlackettLuce  # deferred for weight, and an extra
    except ImportError:
        return {}
    model: Any = PlackettLuce()  # Any: its rating's type differs from model to model
    known: dict[str, Any] = {}
    for match in matches:
        if len(set(match.entrants)) < len(match.entrants) or len(match.entrants) < 2:
            continue
        teams = [[known.get(name) or model.rating()] for name in match.entrants]
        for name, (rating,) in zip(match.entrants, model.rate(teams, scores=list(match.scores)), strict=True):
            known[name] = rating
    return {name: (float(rating.mu), float(rating.sigma)) for name, rating in known.items()}
