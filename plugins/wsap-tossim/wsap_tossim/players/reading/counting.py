"""Role claims counted against the slots of the role list, when several players claim the same role.

Each slot belongs to one player, and is open until its player is known dead. Players who claim a role compete for the
open slots that allow it; a player without one of these has a liar's slot. The probability of each lie comes from
normalizing the matrix of players and slots alternately until all rows and columns sum to 1 (Sinkhorn and Knopp,
"Concerning nonnegative matrices and doubly stochastic matrices", 1967).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import log
from typing import NamedTuple

from wsap_tossim.engine.data.model import Faction
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.players.reading.priors import RoleList, is_enemy, is_town, role_list

__all__ = ["HUNTER", "SILENT", "Standing", "claim_of", "count_claims"]

HUNTER = "Vampire Hunter"
SILENT = ""
"""No claim."""
LOWEST, HIGHEST = -1.5, 2.5
"""Bounds on the weight of a claim alone, in log-odds."""
_ROUNDS = 6
_OPEN = 1.5
"""How much more readily honest players claim than liars."""
_SELDOM = 0.004
"""Probability that a liar claims an unwise role."""
_ACCUSERS = {"Sheriff": 0.45, "Investigator": 0.35}
"""Claims of an Executioner, who needs a finding."""


def claim_of(said: Sequence[str] | None) -> str:
    """Return the claimed role for the slots, given all claims of a player, oldest first: the latest one.

    A Vampire Hunter who later claims Vigilante still counts as a Vampire Hunter, since it becomes one without Vampires.
    """
    if not said:
        return SILENT
    return HUNTER if said[-1] == "Vigilante" and HUNTER in said else said[-1]


class Standing(NamedTuple):
    """The result of the count for one claim."""

    enemy: float
    """Probability of being an enemy of the Town."""
    executioner: float
    jester: float
    weight: float
    """Log-odds of being an enemy relative to all counted players."""


@lru_cache(maxsize=2048)
def count_claims(slots: tuple[str, ...], gone: tuple[str, ...], claims: tuple[str, ...]) -> Mapping[str, Standing]:
    """Return the result of the count for each claim.

    Args:
        slots: the role list.
        gone: known roles, mostly of the dead.
        claims: of all others, in an order independent of the players; `SILENT` for none.
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
    """Return the maximum probability that a claim is true, which is shared by claims of a unique role."""
    return 1.0 / makers if claim in ROLES and ROLES[claim].unique else 1.0


class _Kinds(NamedTuple):
    """How well a claim fits a slot, by kind of player."""

    honest: float
    enemy: float
    executioner: float
    jester: float


def _shares(row: list[_Kinds], push: float, pull: list[float], most: float) -> tuple[float, float, float]:
    """Return the probabilities that the maker of a claim is an enemy, an Executioner, a Jester."""
    sums = [push * sum(kinds[i] * v for kinds, v in zip(row, pull, strict=True)) for i in range(4)]
    total = sum(sums)
    if total <= 1e-9:
        return 0.9, 0.0, 0.0  # no slot is left for such a player
    liars = total - sums[0]
    if sums[0] / total > most and liars > 0:
        total = liars / (1.0 - most)
    return sums[1] / total, sums[2] / total, sums[3] / total


def _open(roles: RoleList, gone: tuple[str, ...]) -> dict[str, int]:
    """Return the open slots: each known role takes the narrowest slot that allows it."""
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
    """Return the probability that each kind of player has a slot and makes a claim."""
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
    """Return the probability that a liar makes a claim: the role's share of the Town roles in the list."""
    if claim == SILENT or not is_town(claim) or claim not in roles.expected:
        return _SELDOM
    town = sum(count for name, count in roles.expected.items() if ROLES[name].faction is Faction.TOWN)
    return max(_SELDOM, roles.expected[claim] / max(1.0, town))
