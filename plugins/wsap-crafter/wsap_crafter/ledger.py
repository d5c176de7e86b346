"""Who brought what into a world, what of it is still there, and what has been answered already.

Every item that an agent brings along is in one of three places: in escrow with whoever carries agents
between worlds, here in `kept`, or in `lost`, with a word on what became of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from wsap_core.errors import WireError
from wsap_core.models import PortableItem, Receipt, TransitPackage
from wsap_core.wire import Codec, encode
from wsap_crafter.catalogue import PORTABLE, TRANSFER_RULES
from wsap_crafter.portable import MOST, item_of, own_things, sound_copy, thing_for
from wsap_crafter.snapshot import restoring, whole

_REMEMBERED = 64
"""Answers of each kind that are kept; who asks again does so before as many others have passed."""

_RULES = {rule.id: rule for rule in TRANSFER_RULES}

# Any, in this module: JSON data, and what a bonus changed.


@dataclass
class Ledger:
    """The books of one world. What the body carries is in the game's inventory; this says whose it is."""

    kept: dict[str, tuple[str, PortableItem]] = field(default_factory=dict)
    """Item id -> the thing of Crafter that it is here, and the item as it came; oldest first."""
    given: dict[str, int] = field(default_factory=dict)
    """Portable things that skills were worth, which stay in this world."""
    rules: tuple[str, ...] = ()
    """Rules that this avatar has had the bonus of."""
    news: dict[str, Any] = field(default_factory=dict)
    """Rule id -> what it changed, since the agent jacked in last."""
    lost: dict[str, dict[str, str]] = field(default_factory=dict)
    """Avatar id -> item id -> what became of it; until a package has told it."""
    receipts: dict[str, Receipt] = field(default_factory=dict)
    """Transfer id -> what `admit` answered."""
    packages: dict[str, TransitPackage] = field(default_factory=dict)
    """Transfer id -> what `release` answered."""

    # --- in -----------------------------------------------------------------------------------

    def add_bonuses(self, skills: Mapping[str, float], inventory: dict[str, int]) -> dict[str, Any]:
        """Put into the inventory what the skills are worth, each rule once for an avatar.

        Returns:
            Rule id -> what really changed. A rule that changes nothing, because no more can be
            carried, is not in it, and not spent.
        """
        applied: dict[str, Any] = {}
        for rule in TRANSFER_RULES:
            if rule.id in self.rules or not skills.get(rule.domain, 0.0) >= rule.threshold:
                continue
            name = rule.bonus.name
            amount = min(int(rule.bonus.amount), MOST - inventory[name])
            if amount <= 0:
                continue
            inventory[name] += amount
            if name in PORTABLE:
                self.given[name] = self.given.get(name, 0) + amount
            self.rules += (rule.id,)
            applied[rule.id] = {name: amount}
        self.news.update(applied)
        return applied

    def take_in(self, items: Sequence[PortableItem], inventory: dict[str, int]) -> tuple[list[str], dict[str, str]]:
        """Put items into the inventory as far as possible.

        Returns:
            The ids of those that are in the world now, and of the others with the reason.
        """
        admitted: list[str] = []
        refused: dict[str, str] = {}
        for item in items:
            item_id = item.item_id
            if item_id in admitted or item_id in refused:
                continue
            if reason := self._take(item, inventory):
                refused[item_id] = reason
            else:
                admitted.append(item_id)
        return admitted, refused

    def _take(self, item: PortableItem, inventory: dict[str, int]) -> str:
        """Take one item in, or return why not."""
        copy = sound_copy(item)
        if isinstance(copy, str):
            return copy
        if copy.item_id in self.kept:
            return "it is in this world already"
        for gone in self.lost.values():
            if copy.item_id in gone:
                return f"it is no more: {gone[copy.item_id]}"
        thing = thing_for(copy)
        if thing is None:
            return f"Crafter has nothing like {_a(copy.category)}"
        if inventory[thing] >= MOST:
            return f"the body carries {MOST} {thing.replace('_', ' ')} already, the most it can"
        inventory[thing] += 1
        self.kept[copy.item_id] = (thing, copy)
        return ""

    # --- meanwhile ------------------------------------------------------------------------------

    def settle(self, avatar_id: str, inventory: Mapping[str, int]) -> None:
        """Write off what was used up: the world's own goes first, then what came first."""
        count = self.count()
        for item_id, (thing, _) in list(self.kept.items()):
            if count[thing] > inventory[thing]:
                count[thing] -= 1
                del self.kept[item_id]
                self.lost.setdefault(avatar_id, {})[item_id] = "used up"

    def lose_all(self, avatar_id: str, reason: str) -> None:
        """Write off everything that the body carried."""
        if self.kept:
            self.lost.setdefault(avatar_id, {}).update(dict.fromkeys(self.kept, reason))
        self.kept, self.given = {}, {}

    def new_avatar(self) -> None:
        """Begin with another avatar, which has had no bonus yet."""
        self.rules, self.news = (), {}

    def count(self) -> Counter[str]:
        """Return how many of each thing were brought along."""
        return Counter(thing for thing, _ in self.kept.values())

    # --- out ------------------------------------------------------------------------------------

    def let_out(self, transfer_id: str, inventory: dict[str, int]) -> list[PortableItem]:
        """Take what is portable out of the inventory: what was brought along, and then the world's own."""
        kept = self.count()
        own = own_things(inventory, kept, self.given)
        items = [item for _, item in self.kept.values()]
        items += [item_of(thing, f"{transfer_id}:{number}") for number, thing in enumerate(own, 1)]
        for thing, amount in (kept + Counter(own)).items():
            inventory[thing] -= amount
        self.kept = {}
        return items

    def answered(self, answer: Receipt | TransitPackage) -> None:
        """Remember an answer, to give it again to who asks again."""
        book: dict[str, Any] = self.receipts if isinstance(answer, Receipt) else self.packages
        book[answer.transfer_id] = answer
        while len(book) > _REMEMBERED:
            del book[next(iter(book))]


def _a(word: str) -> str:
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word.replace('_', ' ')}"


# --- as data ----------------------------------------------------------------------------------


def dump_ledger(ledger: Ledger) -> dict[str, Any] | None:
    """Return it as JSON-ready data; None if nothing was ever written in it."""
    if ledger == Ledger():
        return None
    return {
        "kept": [[thing, encode(item)] for thing, item in ledger.kept.values()],
        "given": ledger.given,
        "rules": list(ledger.rules),
        "news": ledger.news,
        "lost": ledger.lost,
        "receipts": [encode(receipt) for receipt in ledger.receipts.values()],
        "packages": [encode(package) for package in ledger.packages.values()],
    }


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
    if data is None:
        return Ledger()
    codec = Codec()
    try:
        items = [(thing, codec.decode(PortableItem, item)) for thing, item in data["kept"]]
        receipts = [codec.decode(Receipt, receipt) for receipt in data["receipts"]]
        packages = [codec.decode(TransitPackage, package) for package in data["packages"]]
    except WireError as error:
        raise ValueError(str(error)) from error
    rules, news, lost = tuple(data["rules"]), data["news"], data["lost"]
    given = {_known(thing, PORTABLE): whole(amount, 0, MOST) for thing, amount in data["given"].items()}
    if any(rule not in _RULES for rule in (*rules, *news)):
        raise ValueError("a rule is not known")
    if not all(isinstance(word, str) for gone in lost.values() for pair in gone.items() for word in pair):
        raise ValueError("what became of an item is not text")
    ledger = Ledger(
        {item.item_id: (_known(thing, PORTABLE), item) for thing, item in items},
        given,
        rules,
        dict(news),
        {avatar_id: dict(gone) for avatar_id, gone in lost.items()},
        {receipt.transfer_id: receipt for receipt in receipts},
        {package.transfer_id: package for package in packages},
    )
    if any(amount > inventory[thing] for thing, amount in (ledger.count() + Counter(given)).items()):
        raise ValueError("more was brought along than there is")
    return ledger


def _known(name: Any, names: Mapping[str, Any]) -> str:
    if name not in names:
        raise ValueError(f"{str(name)[:40]!r} is not a portable thing")
    return str(name)
