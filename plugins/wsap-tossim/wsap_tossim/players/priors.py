"""Prior probabilities from the role list alone: possible roles, their counts, and how likely each is an enemy of the
Town."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from wsap_tossim.engine.model import Category, Faction
from wsap_tossim.engine.roles import ROLES

__all__ = ["RoleList", "is_enemy", "is_town", "role_list"]

_RANDOM = {
    "Random Town": (Faction.TOWN,),
    "Random Mafia": (Faction.MAFIA,),
    "Random Neutral": (Faction.NEUTRAL, Faction.VAMPIRES),
}


_TOWN = frozenset(role.name for role in ROLES.values() if role.faction is Faction.TOWN)
_ENEMIES = frozenset(
    role.name
    for role in ROLES.values()
    if role.faction in (Faction.MAFIA, Faction.VAMPIRES)
    or role.category is Category.NEUTRAL_KILLING
    or role.name == "Witch"
)


def is_town(role: str) -> bool:
    """Return whether a role is one of the Town."""
    return role in _TOWN


def is_enemy(role: str) -> bool:
    """Return whether a role can only win if the Town does not: Mafia, Vampires, neutral killers and the Witch."""
    return role in _ENEMIES


class RoleList:
    """The role list of a game, as all know it.

    Args:
        slots: roles, categories, "Random Town" and the like, or "Any".
    """

    def __init__(self, slots: Sequence[str]) -> None:
        self.slots = tuple(slots)
        drawn_apart = {slot for slot in slots if slot in ROLES and ROLES[slot].unique}
        self.pools: dict[str, tuple[str, ...]] = {
            slot: tuple(name for name in _pool(slot) if name == slot or name not in drawn_apart) for slot in slots
        }
        """Each slot -> the roles that it can hold; one that is unique, and has a slot of its own, is in no other."""
        self.expected: dict[str, float] = {}
        """How many of each role there are on average."""
        self.most: dict[str, int] = {}
        """How many of each role there can be."""
        for slot in slots:
            pool = self.pools[slot]
            for name in pool:
                self.expected[name] = self.expected.get(name, 0.0) + 1 / len(pool)
                self.most[name] = self.most.get(name, 0) + 1
        for name in self.most:
            if ROLES[name].unique and len(set(slots) - {"Citizen", "Mafioso"}) > 0:
                self.most[name] = min(self.most[name], 1)
        self.enemies = sum(count for name, count in self.expected.items() if is_enemy(name))
        """How many enemies of the Town there are on average."""
        self.players = max(1, len(slots))

    def enemy_in(self, roles: Iterable[str]) -> float:
        """Return how likely one who has one of some roles is an enemy, by the list alone; 0.5 if it can't have any."""
        total = evil = 0.0
        for name in roles:
            count = self.expected.get(name, 0.0)
            total += count
            if is_enemy(name):
                evil += count
        return evil / total if total else 0.5


@lru_cache(maxsize=256)
def role_list(slots: tuple[str, ...]) -> RoleList:
    """Return the role list of some slots."""
    return RoleList(slots)


def _pool(slot: str) -> list[str]:
    if slot in ROLES:
        return [slot]
    drawn = [role for role in ROLES.values() if role.category is not None]
    if slot in _RANDOM:
        return [r.name for r in drawn if r.faction in _RANDOM[slot]]
    return [r.name for r in drawn if r.category == slot] or [r.name for r in drawn]
