"""The luggage of Crafter: what agents brought along is in the game's inventory, and this says what of it is theirs.

The books themselves are the kernel's; see :mod:`wsap_core.authoring.luggage`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsap_core.authoring.luggage import Luggage, Refused
from wsap_core.protocol import Bonus, PortableItem
from wsap_crafter.catalogue import PORTABLE, TRANSFER_RULES
from wsap_crafter.portable import MOST, item_of, own_things, thing_for
from wsap_crafter.snapshot import restoring, whole

_RULES = {rule.id: rule for rule in TRANSFER_RULES}

# Any, in this module: JSON data, and what a bonus changed.


@dataclass
class Ledger(Luggage):
    """The books of one world. What the body carries is in the game's inventory; this says whose it is."""

    given: dict[str, int] = field(default_factory=dict)
    """Portable things that skills were worth, which stay in this world."""

    def add_bonuses(self, skills: Mapping[str, float], inventory: dict[str, int]) -> dict[str, Any]:
        """Put into the inventory what the skills are worth, and return rule id -> what really changed."""
        return self.apply_rules(TRANSFER_RULES, skills, lambda bonus: self._give(bonus, inventory))

    def _give(self, bonus: Bonus, inventory: dict[str, int]) -> dict[str, int]:
        name = bonus.name
        amount = min(int(bonus.amount), MOST - inventory[name])
        if amount <= 0:
            return {}
        inventory[name] += amount
        if name in PORTABLE:
            self.given[name] = self.given.get(name, 0) + amount
        return {name: amount}

    def put_in(self, items: Sequence[PortableItem], inventory: dict[str, int]) -> tuple[list[str], dict[str, str]]:
        """Put items into the inventory as far as possible; return what was admitted, and the rest with reasons."""

        def place(item: PortableItem) -> str | Refused:
            thing = thing_for(item)
            if thing is None:
                return Refused(f"Crafter has nothing like {_a(item.category)}")
            if inventory[thing] >= MOST:
                return Refused(f"the body carries {MOST} {thing.replace('_', ' ')} already, the most it can")
            inventory[thing] += 1
            return thing

        return self.take_in(items, place)

    def settle(self, avatar_id: str, inventory: Mapping[str, int]) -> None:
        """Write off what was used up: the world's own goes first, then what came first."""
        count = self.count()
        for item_id, (thing, _) in list(self.kept.items()):
            if count[thing] > inventory[thing]:
                count[thing] -= 1
                self.lose(avatar_id, item_id, "used up")

    def lose_all(self, avatar_id: str, reason: str) -> None:
        """Write off everything that the body carried."""
        super().lose_all(avatar_id, reason)
        self.given = {}

    def take_from(self, transfer_id: str, inventory: dict[str, int]) -> list[PortableItem]:
        """Take what is portable out of the inventory: what was brought along, and then the world's own."""
        kept = self.count()
        own = own_things(inventory, kept, self.given)
        for thing, amount in (kept + Counter(own)).items():
            inventory[thing] -= amount
        return self.let_out(transfer_id, map(item_of, own))


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word.replace('_', ' ')}"


# --- as data ----------------------------------------------------------------------------------


def dump_ledger(ledger: Ledger) -> dict[str, Any] | None:
    """Return it as JSON-ready data; None if nothing was ever written in it."""
    return None if ledger == Ledger() else {**ledger.to_json(), "given": ledger.given}


def load_ledger(data: Any, inventory: Mapping[str, int]) -> Ledger:
    """Return the ledger of :func:`dump_ledger`.

    Args:
        data: untrusted.
        inventory: what the body carries, which the ledger has to agree with.

    Raises:
        SnapshotError: the data is not that of a ledger.
    """
    ledger: Ledger = restoring(lambda: _load_ledger(data, inventory))
    return ledger


def _load_ledger(data: Any, inventory: Mapping[str, int]) -> Ledger:
    ledger = Ledger()
    if data is None:
        return ledger
    ledger.load_json(data, _RULES)
    ledger.given = {_known(thing, PORTABLE): whole(amount, 0, MOST) for thing, amount in data["given"].items()}
    brought = Counter(_known(thing, PORTABLE) for thing, _ in ledger.kept.values())
    if any(amount > inventory[thing] for thing, amount in (brought + Counter(ledger.given)).items()):
        raise ValueError("more was brought along than there is")
    return ledger


def _known(name: Any, names: Mapping[str, Any]) -> str:
    if name not in names:
        raise ValueError(f"{str(name)[:40]!r} is not a portable thing")
    return str(name)
