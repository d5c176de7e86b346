"""Ratings from games with several seats: Bradley-Terry over all games, OpenSkill game by game."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from wsap_eval.stats.bounds import Array
from wsap_eval.stats.estimates import Interval

_ELO = 400 / math.log(10)
_PRIOR_SD = 5.0
"""Standard deviation in logits of the strengths' normal prior, about 870 Elo points; keeps the rating finite if an
entrant won or lost every game."""
_FEWEST = 20


@dataclass(frozen=True)
class Match:
    """One game."""

    seed: int
    """Games with the same seed form a cluster."""
    entrants: tuple[str, ...]
    """One per seat; an entrant may have several seats."""
    scores: tuple[float, ...]
    """One per seat; higher is better, equal is a tie."""


@dataclass(frozen=True)
class Rating:
    """The strength of an entrant."""

    entrant: str
    games: int
    elo: float
    """Bradley-Terry strength in Elo points; the mean of a group is 0."""
    interval: Interval | None
    """None with fewer than 20 seeds, or if all seeds agree."""
    group: int
    """Only entrants of the same group, connected directly or indirectly by games, are comparable."""
    openskill: tuple[float, float] | None = None
    """OpenSkill's mean and deviation; None if openskill is not installed or the entrant met only itself."""


def ratings(matches: Sequence[Match], *, level: float = 0.95, resamples: int = 500) -> list[Rating]:
    """Return the ratings of all entrants by group, best first; OpenSkill processes the games in order.

    Each pair of seats with different entrants is a comparison, a tie half a win for both (Bradley and Terry, Biometrika
    39, 1952). In a game of k seats each weighs 1 / (k - 1), so that a game counts once for each seat. Intervals are
    percentiles of a bootstrap over seeds.
    """
    names = sorted({name for match in matches for name in match.entrants})
    if not names:
        return []
    from scipy.sparse.csgraph import connected_components  # deferred for weight

    seeds = {seed: i for i, seed in enumerate(sorted({match.seed for match in matches}))}
    wins = np.zeros((len(seeds), len(names), len(names)))
    for match in matches:
        for (a, x), (b, y) in combinations(zip(match.entrants, match.scores, strict=True), 2):
            if a != b:
                i, j, share = names.index(a), names.index(b), (1 + float(np.sign(x - y))) / 2
                wins[seeds[match.seed], i, j] += share / (len(match.entrants) - 1)
                wins[seeds[match.seed], j, i] += (1 - share) / (len(match.entrants) - 1)
    total = wins.sum(axis=0)
    group: Array = connected_components(total + total.T, directed=False)[1]
    elo = _strengths(total[None], group)[0] * _ELO
    intervals: list[Interval | None] = [None] * len(names)
    if len(seeds) >= _FEWEST:
        weights = np.random.default_rng(0).multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)), size=resamples)
        drawn = _strengths(np.tensordot(weights, wins, 1), group) * _ELO
        ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0).T.tolist()
        why = "bootstrap, no promise of coverage"
        intervals = [Interval(low, high, level, why) if high - low > 1e-9 else None for low, high in ends]
    online = _openskill(matches)
    games = [sum(name in match.entrants for match in matches) for name in names]
    rated = [
        Rating(name, games[i], float(elo[i]), intervals[i], int(group[i]), online.get(name))
        for i, name in enumerate(names)
    ]
    return sorted(rated, key=lambda rating: (rating.group, -rating.elo, rating.entrant))


def _strengths(wins: Array, group: Array) -> Array:
    """Return the most probable strengths in logits, centred in each group, by Newton's method.

    `wins` has the shape (resamples, entrants, entrants).
    """
    played, strengths, one = wins + wins.swapaxes(1, 2), np.zeros(wins.shape[:2]), np.eye(wins.shape[1])
    for _ in range(50):
        expected = 1 / (1 + np.exp(strengths[:, None, :] - strengths[:, :, None]))
        slope = (wins - played * expected).sum(axis=2) - strengths / _PRIOR_SD**2
        curve = played * expected * (1 - expected)
        hessian = one * (curve.sum(axis=2)[:, None, :] + _PRIOR_SD**-2) - curve
        step = np.clip(np.linalg.solve(hessian, slope[..., None])[..., 0], -1, 1)
        strengths += step
        if np.abs(step).max() < 1e-9:
            break
    for number in np.unique(group):
        strengths[:, group == number] -= strengths[:, group == number].mean(axis=1, keepdims=True)
    return strengths


def _openskill(matches: Sequence[Match]) -> dict[str, tuple[float, float]]:
    """Return entrant -> mean and deviation by the Plackett-Luce model, ignoring games with repeated entrants.

    Empty if openskill is not installed.
    """
    try:
        from openskill.models import PlackettLuce  # deferred for weight, and an extra
    except ImportError:
        return {}
    model: Any = PlackettLuce()  # Any: the rating's type depends on the model
    known: dict[str, Any] = {}
    for match in matches:
        if len(match.entrants) == len(set(match.entrants)) > 1:
            teams = [[known.get(name) or model.rating()] for name in match.entrants]
            for name, (rating,) in zip(match.entrants, model.rate(teams, scores=list(match.scores)), strict=True):
                known[name] = rating
    return {name: (float(rating.mu), float(rating.sigma)) for name, rating in known.items()}
