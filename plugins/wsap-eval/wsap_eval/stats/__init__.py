"""Statistics of evaluations as pure functions; imports numpy, and scipy only in the functions that need it."""

from __future__ import annotations

from wsap_eval.stats.estimates import Estimate, Interval, Values, contiguous, estimate, reached, sequence
from wsap_eval.stats.paired import (
    Lives,
    Paired,
    Ratio,
    by_life,
    directed,
    holm,
    lives_needed,
    normalised,
    paired,
    power,
    ratio,
)  # fmt: skip
from wsap_eval.stats.ratings import Match, Rating, ratings
from wsap_eval.stats.repeats import passes, reduced
from wsap_eval.stats.sets import SetEstimate, paired_set_metric, set_metric
from wsap_eval.stats.teams import FEWEST, ORDERS, TeamMatch, TeamRating, rate_teams, resampled, team_ratings

__all__ = [
    "FEWEST", "ORDERS", "Estimate", "Interval", "Lives", "Match", "Paired", "Rating", "Ratio", "SetEstimate",
    "TeamMatch", "TeamRating", "Values", "by_life", "contiguous", "directed", "estimate", "holm", "lives_needed",
    "normalised", "paired", "paired_set_metric", "passes", "power", "rate_teams", "ratings", "ratio", "reached",
    "reduced", "resampled", "sequence", "set_metric", "team_ratings",
]  # fmt: skip
