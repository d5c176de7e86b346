"""The model of Plackett and Luce for games with winners and losers, quick enough for thousands of resamples.

It is OpenSkill's `PlackettLuce` with its usual start and no drift, written out for the matches of a tournament: teams
that are first or second, each as strong as its seats on average (see `ratings`). The library copies and numbers every
rating at every game, which takes most of its time; the tests hold the two against each other.

R. C. Weng and C.-J. Lin, "A Bayesian approximation method for online ranking", Journal of Machine Learning Research 12
(2011), 267 to 300, algorithm 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, sqrt

__all__ = ["BETA", "MU", "SIGMA", "Match", "play_through"]

MU, SIGMA, BETA = 25.0, 25.0 / 3.0, 25.0 / 6.0
KAPPA = 1e-4
"""Least share that is left of a team's variance after a game."""

Match = Sequence[tuple[bool, Mapping[int, float]]]
"""For each team: whether it won, and what is rated of it -> its share of the team's seats."""


def play_through(matches: Sequence[Match], rated: int) -> tuple[list[float], list[float]]:
    """Return means and variances after some games.

    Args:
        matches: in their order.
        rated: how many things are rated; they are numbered from 0.
    """
    mus, variances = [MU] * rated, [SIGMA * SIGMA] * rated
    for match in matches:
        if len(match) > 1:
            _play(match, mus, variances)
    return mus, variances


def _play(match: Match, mus: list[float], variances: list[float]) -> None:
    teams = []
    total = 0.0
    for won, shares in match:
        mu = sum(w * mus[key] for key, w in shares.items())
        variance = sum(w * w * variances[key] for key, w in shares.items())
        total += variance + BETA * BETA
        teams.append((won, shares, mu, variance))
    c = sqrt(total)
    strengths = [exp(mu / c) for _, _, mu, _ in teams]
    # Whoever is first was chosen among all, whoever is second among those who are not first.
    winners = sum(won for won, *_ in teams)
    losers = len(teams) - winners
    everybody = sum(strengths)
    rest = sum(strength for strength, (won, *_) in zip(strengths, teams, strict=True) if not won)
    shifts: dict[int, float] = {}
    shrinks: dict[int, float] = {}
    for strength, (won, shares, _, variance) in zip(strengths, teams, strict=True):
        share = strength / everybody
        # Summed over all choices that it took part in, and divided by how many share the rank.
        omega = (1.0 / winners if won else 0.0) - (share if winners else 0.0)
        delta = share * (1.0 - share) if winners else 0.0
        if not won:
            late = strength / rest
            omega += 1.0 / losers - late
            delta += late * (1.0 - late)
        shrunk = min(delta * variance / (c * c) * sqrt(variance) / c, 1.0 - KAPPA)
        for key, w in shares.items():
            shifts[key] = shifts.get(key, 0.0) + w * variances[key] / c * omega
            shrinks[key] = shrinks.get(key, 1.0) * (1.0 - w * w * variances[key] / variance * shrunk)
    for key, shift in shifts.items():
        mus[key] += shift
        variances[key] *= shrinks[key]
