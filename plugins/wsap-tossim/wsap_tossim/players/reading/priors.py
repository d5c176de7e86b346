"""Prior probabilities from the role list alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from wsap_tossim.engine.data.model import Category, Faction
from wsap_tossim.engine.roles.listed import ROLES

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
    """Return whether a role is of the Town."""
    return role in _TOWN


def is_enemy(role: str) -> bool:
    """Return whether a role can only win if the Town does not: Mafia, Vampires, neutral killers and the Witch."""
    return role in _ENEMIES


class RoleList:
    """The public role list of a game; see `Setup.slots`."""

    def __init__(self, slots: Sequence[str]) -> None:
        self.slots = tuple(slots)
        drawn_apart = {slot for slot in slots if slot in ROLES and ROLES[slot].unique}
        self.pools: dict[str, tuple[str, ...]] = {
            slot: tuple(name for name in _pool(slot) if name == slot or name not in drawn_apart) for slot in slots
        }
        """Slot -> its possible roles; a unique role with its own slot is in no other."""
        self.expected: dict[str, float] = {}
        """Expected count of each role."""
        self.most: dict[str, int] = {}
        """Maximum count of each role."""
        for slot in slots:
            pool = self.pools[slot]
            for name in pool:
                self.expected[name] = self.expected.get(name, 0.0) + 1 / len(pool)
                self.most[name] = self.most.get(name, 0) + 1
        for name in self.most:
            if ROLES[name].unique and len(set(slots) - {"Citizen", "Mafioso"}) > 0:
                self.most[name] = min(self.most[name], 1)
        self.enemies = sum(count for name, count in self.expected.items() if is_enemy(name))
        """Expected number of enemies of the Town."""
        self.players = max(1, len(slots))

    def enemy_in(self, roles: Iterable[str]) -> float:
        """Return the probability that a player with one of some roles is an enemy; 0.5 if none is possible."""
        total = evil = 0.0
        for name in roles:
            count = self.expected.get(name, 0.0)
            total += count
            if is_enemy(name):
                evil += count
        return evil / total if total else 0.5


@lru_cache(maxsize=256)
def role_list(slots: tuple[str, ...]) -> RoleList:
    """Return the cached role list of some slots."""
    return RoleList(slots)


def _pool(slot: str) -> list[str]:
    if slot in ROLES:
        return [slot]
    drawn = [role for role in ROLES.values() if role.category is not None]
    if slot in _RANDOM:
        return [r.name for r in drawn if r.faction in _RANDOM[slot]]
    return [r.name for r in drawn if r.category == slot] or [r.name for r in drawn]
