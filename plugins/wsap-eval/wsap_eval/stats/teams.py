"""Ratings of teams: OpenSkill's Plackett-Luce model, averaged over orders of the games, with intervals over blocks.

The model (Weng and Lin, "A Bayesian approximation method for online ranking", Journal of Machine Learning Research 12
(2011), 267 to 300) is updated game by game. Ratings depend on the order of games, so the result is the mean over many
random orders.

A team's strength is the average over its seats, each of whoever is rated in it: its mean is the sum of w mu over its
members, with w their share of the team's seats, and its variance s^2 the sum of w^2 sigma^2. OpenSkill updates the
team, and the members are updated as in a linear model with Gaussian noise: mu moves by w sigma^2 / s^2 times the change
of the team's mean, and sigma^2 shrinks by w^2 sigma^2 / s^2 times the relative decrease of s^2. Otherwise, team size
would determine ratings. Who is rated does not learn, so OpenSkill's drift tau is 0.

It needs openskill.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from statistics import fmean
from typing import Any

import numpy as np

from wsap_eval.stats.estimates import Interval

Key = tuple[int, str]
"""Who is rated, and as what: an entrant's number, and its side or role."""
ORDERS, ORDERS_AGAIN = 25, 2
"""Random orders for a rating, and for each resample of its interval."""
FEWEST = 20
"""Minimum number of blocks for an interval."""


@dataclass(frozen=True)
class TeamMatch:
    """A game."""

    block: int
    """Games of a block have something in common, such as their deal, so only blocks are independent."""
    teams: list[list[Key]]
    """Who sits in the seats of each team."""
    ranks: list[float]
    """Of each team; the lowest has won."""

    @cached_property
    def shares(self) -> list[dict[Key, float]]:
        """For each team: key -> its share of the team's seats."""
        return [{key: team.count(key) / len(team) for key in dict.fromkeys(team)} for team in self.teams]


@dataclass(frozen=True)
class TeamRating:
    """The strength of a key."""

    mu: float
    """The mean; initially 25."""
    sigma: float
    """The standard deviation; initially 25/3."""
    interval: Interval | None
    """The 95 % bootstrap interval of `mu`, widened to contain it; None with fewer than 20 blocks."""
    ordinal_interval: Interval | None
    """The same interval of the ordinal."""

    @property
    def ordinal(self) -> float:
        """mu - 3 sigma, OpenSkill's lower bound for ranking; initially 0."""
        return self.mu - 3 * self.sigma


def rate_teams(matches: Sequence[TeamMatch]) -> dict[Key, tuple[float, float]]:
    """Return mean and deviation of every key, updated in the order of the games."""
    from openskill.models import PlackettLuce  # deferred for weight

    model: Any = PlackettLuce(tau=0.0)  # Any: its rating's type depends on the model
    standing: dict[Key, tuple[float, float]] = {}
    begin = (float(model.mu), float(model.sigma))
    for match in matches:
        if len(match.teams) < 2:
            continue
        before = [_Team(team, [standing.get(key, begin) for key in team]) for team in match.shares]
        after = model.rate([[model.rating(mu=t.mu, sigma=t.sigma)] for t in before], ranks=match.ranks)
        moved: dict[Key, tuple[float, float]] = {}
        for team, (new,) in zip(before, after, strict=True):
            for key, shift, shrink in team.parts(new.mu, new.sigma):
                sum_, product = moved.get(key, (0.0, 1.0))
                moved[key] = (sum_ + shift, product * shrink)
        for key, (shift, shrink) in moved.items():
            mu, sigma = standing.get(key, begin)
            standing[key] = (mu + shift, sigma * sqrt(shrink))
    return standing


def team_ratings(
    matches: Sequence[TeamMatch],
    *,
    resamples: int = 200,
    seed: int = 0,
    among: Callable[[Key], bool] = lambda key: True,
) -> dict[Key, TeamRating]:
    """Return the ratings with intervals, by key.

    Args:
        matches: games, in any order that is always the same.
        resamples: number of bootstrap resamples of whole blocks; with 0 there are no intervals.
        seed: of orders and resamples.
        among: filter for the keys to return.
    """
    lots = random.Random(f"{seed}:orders")  # play, not secrets
    means = _mean(list(matches), ORDERS if len(matches) > 1 else 1, lots)
    drawn: dict[Key, list[tuple[float, float]]] = {key: [] for key in sorted(means) if among(key)}
    enough = len({match.block for match in matches}) >= FEWEST
    for sample in resampled(matches, resamples, seed) if drawn and enough else ():
        for key, seen in _mean(sample, ORDERS_AGAIN, lots).items():
            if key in drawn:
                drawn[key].append(seen)
    return {key: _rating(*means[key], seen) for key, seen in drawn.items()}


def _mean(matches: list[TeamMatch], orders: int, lots: random.Random) -> dict[Key, tuple[float, float]]:
    """Return the results of `rate`, averaged over random orders."""
    found: dict[Key, list[tuple[float, float]]] = {}
    for _ in range(orders):
        lots.shuffle(matches)
        for key, rating in rate_teams(matches).items():
            found.setdefault(key, []).append(rating)
    return {key: (fmean(mu for mu, _ in seen), fmean(sigma for _, sigma in seen)) for key, seen in found.items()}


def _rating(mu: float, sigma: float, drawn: Sequence[tuple[float, float]]) -> TeamRating:
    means, ordinal = [m for m, _ in drawn], mu - 3 * sigma
    return TeamRating(mu, sigma, _interval(means, mu), _interval([m - 3 * s for m, s in drawn], ordinal))


def _interval(drawn: Sequence[float], value: float) -> Interval | None:
    """Return the percentile interval, widened to include the value."""
    if not drawn:
        return None
    low, high = map(float, np.quantile(drawn, [0.025, 0.975]))
    return Interval(min(value, low), max(value, high), 0.95, "bootstrap over blocks, no promise of coverage")


def resampled(matches: Sequence[TeamMatch], resamples: int, seed: int) -> list[list[TeamMatch]]:
    """Return bootstrap resamples of the games: whole blocks, drawn with replacement, in the order drawn."""
    blocks: dict[int, list[TeamMatch]] = {}
    for match in matches:
        blocks.setdefault(match.block, []).append(match)
    pool = [blocks[number] for number in sorted(blocks)]
    rng = random.Random(f"{seed}:bootstrap")  # play, not secrets
    return [[match for block in rng.choices(pool, k=len(pool)) for match in block] for _ in range(resamples)]


class _Team:
    def __init__(self, shares: Mapping[Key, float], ratings: Sequence[tuple[float, float]]) -> None:
        self._members = [(key, w, sigma) for (key, w), (_, sigma) in zip(shares.items(), ratings, strict=True)]
        self.mu = sum(w * mu for w, (mu, _) in zip(shares.values(), ratings, strict=True))
        self.sigma = sqrt(sum((w * sigma) ** 2 for _, w, sigma in self._members))

    def parts(self, mu: float, sigma: float) -> Iterator[tuple[Key, float, float]]:
        """Yield the change of the mean and the factor of the variance for each member."""
        variance = self.sigma**2
        shrunk = 1 - (sigma / self.sigma) ** 2
        for key, w, own in self._members:
            yield key, w * own**2 / variance * (mu - self.mu), 1 - w**2 * own**2 / variance * shrunk
