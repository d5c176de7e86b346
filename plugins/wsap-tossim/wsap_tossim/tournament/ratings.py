"""Ratings of each entrant in each faction, and in each role that it played often enough.

Each game is a match of teams by their roles at the start: each side is a team, and each player who wins beside others
is a team of one. The winners share the first rank, all others the second. Ratings are OpenSkill's Plackett-Luce
model (Weng and Lin, "A Bayesian approximation method for online ranking", Journal of Machine Learning Research 12
(2011), 267 to 300), updated game by game. They depend on the order of games, so the result is the mean over many
random orders.

Each entrant is rated separately as each faction or role. A team's strength is the average over its seats: its mean is
the sum of w mu over its members, with w their share of the team's seats, and its variance s^2 the sum of w^2 sigma^2.
OpenSkill updates the team, and the members are updated as in a linear model with Gaussian noise: mu moves by
w sigma^2 / s^2 times the change of the team's mean, and sigma^2 shrinks by w^2 sigma^2 / s^2 times the relative
decrease of s^2. Otherwise, team size would determine ratings. Entrants don't learn, so OpenSkill's drift tau is 0.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from statistics import fmean
from typing import TYPE_CHECKING, Any

from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.engine.victory import side_of
from wsap_tossim.tournament.ledger import Line

if TYPE_CHECKING:
    from wsap_eval.stats import Interval

__all__ = ["FEWEST", "Rating", "faction_of", "rate", "rated", "resampled"]

Key = tuple[int, str]
"""An entrant, and its faction or role."""
ORDERS, ORDERS_AGAIN = 25, 2
"""Random orders for a rating, and for each resample of its interval."""
FEWEST = 20
"""Minimum number of blocks for an interval, as for seeds in `wsap eval`."""


@dataclass(frozen=True)
class Rating:
    """The strength of an entrant as one faction or role."""

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


def faction_of(role: str) -> str:
    """Return the faction of a role."""
    return ROLES[role].faction.value


def rate(lines: Sequence[Line], kind: Callable[[str], str] = faction_of) -> dict[Key, tuple[float, float]]:
    """Return mean and deviation of every entrant by faction or role (`kind`), updated in the order of the games."""
    return _rate([_teams(line, kind) for line in lines])


def rated(
    lines: Sequence[Line],
    *,
    kind: Callable[[str], str] = faction_of,
    resamples: int = 200,
    seed: int = 0,
    among: Callable[[Key], bool] = lambda key: True,
) -> dict[Key, Rating]:
    """Return the ratings with intervals, by key.

    Args:
        lines: games, by number.
        kind: as in `rate`.
        resamples: number of bootstrap resamples of whole blocks; with 0 there are no intervals.
        seed: of orders and resamples.
        among: filter for the keys to return.
    """
    matches = {line["game"]: _teams(line, kind) for line in lines}
    lots = random.Random(f"{seed}:orders")  # play, not secrets
    means = _mean(list(matches.values()), ORDERS if len(matches) > 1 else 1, lots)
    drawn: dict[Key, list[tuple[float, float]]] = {key: [] for key in sorted(means) if among(key)}
    enough = len({line["block"] for line in lines}) >= FEWEST
    for sample in resampled(lines, resamples, seed) if drawn and enough else ():
        for key, seen in _mean([matches[line["game"]] for line in sample], ORDERS_AGAIN, lots).items():
            if key in drawn:
                drawn[key].append(seen)
    return {key: _rating(*means[key], seen) for key, seen in drawn.items()}


def _mean(matches: list[_Match], orders: int, lots: random.Random) -> dict[Key, tuple[float, float]]:
    """Return the results of `rate`, averaged over random orders."""
    found: dict[Key, list[tuple[float, float]]] = {}
    for _ in range(orders):
        lots.shuffle(matches)
        for key, rating in _rate(matches).items():
            found.setdefault(key, []).append(rating)
    return {key: (fmean(mu for mu, _ in seen), fmean(sigma for _, sigma in seen)) for key, seen in found.items()}


def _rating(mu: float, sigma: float, drawn: Sequence[tuple[float, float]]) -> Rating:
    means, ordinal = [m for m, _ in drawn], mu - 3 * sigma
    return Rating(mu, sigma, _interval(means, mu), _interval([m - 3 * s for m, s in drawn], ordinal))


def _interval(drawn: Sequence[float], value: float) -> Interval | None:
    """Return the percentile interval, widened to include the value."""
    if not drawn:
        return None
    import numpy as np  # deferred for weight

    from wsap_eval.stats import Interval

    low, high = map(float, np.quantile(drawn, [0.025, 0.975]))
    return Interval(min(value, low), max(value, high), 0.95, "bootstrap over blocks, no promise of coverage")


def resampled(lines: Sequence[Line], resamples: int, seed: int) -> list[list[Line]]:
    """Return bootstrap resamples of the games: whole blocks, drawn with replacement, in the order drawn.

    Games of a block share their deal, so only blocks are independent.
    """
    blocks: dict[int, list[Line]] = {}
    for line in lines:
        blocks.setdefault(line["block"], []).append(line)
    pool = [blocks[number] for number in sorted(blocks)]
    rng = random.Random(f"{seed}:bootstrap")  # play, not secrets
    return [[line for block in rng.choices(pool, k=len(pool)) for line in block] for _ in range(resamples)]


@dataclass(frozen=True)
class _Match:
    teams: list[list[Key]]
    ranks: list[float]

    @cached_property
    def shares(self) -> list[dict[Key, float]]:
        """For each team: key -> its share of the team's seats."""
        return [{key: team.count(key) / len(team) for key in dict.fromkeys(team)} for team in self.teams]


def _teams(line: Line, kind: Callable[[str], str]) -> _Match:
    """Return the teams of a game, by initial roles, with their ranks."""
    members: dict[str, list[Key]] = {}
    won: dict[str, bool] = {}
    for seat, role in enumerate(line["roles"]):
        side = side_of(ROLES[role])
        team = side or f"seat {seat}"
        members.setdefault(team, []).append((line["seats"][seat], kind(role)))
        won[team] = line["side"] == side if side else seat in line["winners"]
    return _Match(list(members.values()), [1.0 if won[team] else 2.0 for team in members])


def _rate(matches: Sequence[_Match]) -> dict[Key, tuple[float, float]]:
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
