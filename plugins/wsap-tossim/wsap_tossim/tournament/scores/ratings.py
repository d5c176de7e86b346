"""Ratings of each entrant in each faction, and in each role that it played often enough.

Each game is a match of teams by their roles at the start: each side is a team, and each player who wins beside others
is a team of one. The winners share the first rank, all others the second. Each entrant is rated separately as each
faction or role; `wsap_eval.stats.teams` says how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wsap_eval.stats import TeamMatch, TeamRating, rate_teams, team_ratings
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.engine.victory import side_of
from wsap_tossim.tournament.ledger import Line

__all__ = ["Key", "faction_of", "match_of", "rate", "rated"]

Key = tuple[int, str]
"""An entrant, and its faction or role."""


def faction_of(role: str) -> str:
    """Return the faction of a role."""
    return ROLES[role].faction.value


def rate(lines: Sequence[Line], kind: Callable[[str], str] = faction_of) -> dict[Key, tuple[float, float]]:
    """Return mean and deviation of every entrant by faction or role (`kind`), updated in the order of the games."""
    return rate_teams([match_of(line, kind) for line in lines])


def rated(
    lines: Sequence[Line],
    *,
    kind: Callable[[str], str] = faction_of,
    resamples: int = 200,
    seed: int = 0,
    among: Callable[[Key], bool] = lambda key: True,
) -> dict[Key, TeamRating]:
    """Return the ratings with intervals, by key; `lines` are games by number, `kind` as in `rate`, and the rest as in
    `team_ratings`."""
    matches = [match_of(line, kind) for line in lines]
    return team_ratings(matches, resamples=resamples, seed=seed, among=among)


def match_of(line: Line, kind: Callable[[str], str]) -> TeamMatch:
    """Return the teams of a game, by initial roles, with their ranks."""
    members: dict[str, list[Key]] = {}
    won: dict[str, bool] = {}
    for seat, role in enumerate(line["roles"]):
        side = side_of(ROLES[role])
        team = side or f"seat {seat}"
        members.setdefault(team, []).append((line["seats"][seat], kind(role)))
        won[team] = line["side"] == side if side else seat in line["winners"]
    return TeamMatch(line["block"], list(members.values()), [1.0 if won[team] else 2.0 for team in members])
