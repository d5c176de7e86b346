"""Role claims counted against the slots of the role list, when several players claim the same role.

Each place of the list is one player's. A place is open until somebody who had it is dead. Those who claim
a role compete for the open places that can hold it; somebody who has none of them must have one of the
places of the liars. How likely each claim is a lie is found by sharing out the places among the players,
back and forth, until every player has one place and every place one player (Sinkhorn and Knopp,
"Concerning nonnegative matrices and doubly stochastic matrices", 1967).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import log
from typing import NamedTuple

from wsap_tossim.engine.model import Faction
from wsap_tossim.engine.roles import ROLES
from wsap_tossim.players.priors import RoleList, is_enemy, is_town, role_list

__all__ = ["HUNTER", "SILENT", "Standing", "claim_of", "count_claims"]

HUNTER = "Vampire Hunter"
SILENT = ""
"""Stands for no claim at all."""
LOWEST, HIGHEST = -1.5, 2.5
"""Bounds of what a claim alone can weigh, in log-odds."""
_ROUNDS = 6
_OPEN = 1.5
"""How much readier the honest are to say who they are than liars, who put it off."""
_SELDOM = 0.004
"""How likely a liar claims a role that it would better not."""
_ACCUSERS = {"Sheriff": 0.45, "Investigator": 0.35}
"""What an Executioner claims, who needs to have found something."""


def claim_of(said: Sequence[str] | None) -> str:
    """Return the place that somebody claims by all it has said, oldest first: its latest role.

    A Vampire Hunter who says later that it is a Vigilante has become one, as is the rule when no Vampires are left.
    """
    if not said:
        return SILENT
    return HUNTER if said[-1] == "Vigilante" and HUNTER in said else said[-1]


class Standing(NamedTuple):
    """The result of the count for a claim."""

    enemy: float
    """How likely it is an enemy of the Town."""
    executioner: float
    jester: float
    weight: float
    """How much more likely an enemy it is than all who were counted together, in log-odds."""


@lru_cache(maxsize=2048)
def count_claims(slots: tuple[str, ...], gone: tuple[str, ...], claims: tuple[str, ...]) -> Mapping[str, Standing]:
    """Return what the count says of each claim.

    Args:
        slots: the role list.
        gone: roles of those whom the judge knows, the dead above all.
        claims: of all others, in any order that does not depend on who they are; `SILENT` for none.
    """
    roles = role_list(slots)
    open_slots = _open(roles, gone)
    makers: dict[str, int] = {}
    for claim in claims:
        makers[claim] = makers.get(claim, 0) + 1
    taken = [name for name in gone if name in ROLES and ROLES[name].unique]
    weights = {claim: [_weights(roles, slot, claim, taken) for slot in open_slots] for claim in makers}
    places = list(open_slots.values())
    scale = len(claims) / max(1, sum(places))
    fair = {c: [sum(kinds) for kinds in row] for c, row in weights.items()}
    pull = [1.0] * len(places)
    push: dict[str, float] = {}
    for _ in range(_ROUNDS):
        push = {c: 1.0 / max(1e-12, sum(k * v for k, v in zip(row, pull, strict=True))) for c, row in fair.items()}
        for s, place in enumerate(places):
            load = sum(count * fair[c][s] * push[c] for c, count in makers.items())
            pull[s] = scale * place / load if load > 1e-12 else 0.0
    shares = {claim: _shares(row, push[claim], pull, _most(claim, makers[claim])) for claim, row in weights.items()}
    usual = sum(shares[claim][0] for claim in claims) / max(1, len(claims))
    return {
        claim: Standing(*found, max(LOWEST, min(HIGHEST, _logit(found[0]) - _logit(usual))))
        for claim, found in shares.items()
    }


def _logit(p: float) -> float:
    p = min(0.95, max(0.03, p))
    return log(p / (1.0 - p))


def _most(claim: str, makers: int) -> float:
    """Return how likely one who claims a role can have it at most: of those who claim to be unique, only one does."""
    return 1.0 / makers if claim in ROLES and ROLES[claim].unique else 1.0


class _Kinds(NamedTuple):
    """How well a claim goes with a place, by who would make it there."""

    honest: float
    enemy: float
    executioner: float
    jester: float


def _shares(row: list[_Kinds], push: float, pull: list[float], most: float) -> tuple[float, float, float]:
    """Return how likely one who makes a claim is an enemy, an Executioner, a Jester."""
    sums = [push * sum(kinds[i] * v for kinds, v in zip(row, pull, strict=True)) for i in range(4)]
    total = sum(sums)
    if total <= 1e-9:
        return 0.9, 0.0, 0.0  # no place is left for such a one at all
    liars = total - sums[0]
    if sums[0] / total > most and liars > 0:
        total = liars / (1.0 - most)
    return sums[1] / total, sums[2] / total, sums[3] / total


def _open(roles: RoleList, gone: tuple[str, ...]) -> dict[str, int]:
    """Return the places that are left, by their slot: each one gone takes the narrowest place that can hold it."""
    open_slots: dict[str, int] = {}
    for slot in roles.slots:
        open_slots[slot] = open_slots.get(slot, 0) + 1
    for name in gone:
        narrow = min(
            (slot for slot, left in open_slots.items() if left and name in roles.pools[slot]),
            key=lambda slot: len(roles.pools[slot]),
            default=None,
        )
        if narrow is not None:
            open_slots[narrow] -= 1
    return {slot: left for slot, left in open_slots.items() if left}


@lru_cache(maxsize=8192)
def _of_slot(roles: RoleList, slot: str, claim: str) -> _Kinds:
    """Return how likely each kind of player has a place and makes a claim."""
    pool = roles.pools[slot]
    honest = enemy = executioner = jester = 0.0
    lie = _lie(roles, claim)
    for name in pool:
        if is_enemy(name):
            enemy += 1.0 if claim == SILENT else lie
        elif name == "Executioner":
            executioner += 1.0 if claim == SILENT else _ACCUSERS.get(claim, 0.2 * lie)
        elif name == "Jester":
            jester += 1.5 if claim == SILENT else 0.4 * lie
        elif claim in (SILENT, name):
            honest += 1.0 if claim == SILENT else _OPEN
    size = len(pool)
    return _Kinds(honest / size, enemy / size, executioner / size, jester / size)


def _weights(roles: RoleList, slot: str, claim: str, taken: list[str]) -> _Kinds:
    kinds = _of_slot(roles, slot, claim)
    return kinds._replace(honest=0.0) if claim in taken else kinds


def _lie(roles: RoleList, claim: str) -> float:
    """Return how likely a liar makes a claim: as likely as the list makes the role, among those of the Town."""
    if claim == SILENT or not is_town(claim) or claim not in roles.expected:
        return _SELDOM
    town = sum(count for name, count in roles.expected.items() if ROLES[name].faction is Faction.TOWN)
    return max(_SELDOM, roles.expected[claim] / max(1.0, town))
