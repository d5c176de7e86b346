"""The ledger of the items that agents brought into a one-body world, and of the answers to transfers.

Each item of an agent is in one of three places: in escrow with the nexus, here in `kept`, or here in `lost`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.authoring.packing import read
from wsap_core.errors import WireError
from wsap_core.protocol import PortableItem, Receipt, TransitPackage
from wsap_core.protocol.transit import ITEM_CATEGORIES, TOP_TIER, Bonus, TransferRule
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import Codec, encode

REMEMBERED = 64
"""Most answers of each kind that are kept for repeated requests."""


@dataclass(frozen=True)
class Refused:
    """The reason for refusing an item."""

    reason: str


@dataclass
class ItemLedger:
    """The items and transfers of a one-body world."""

    kept: dict[str, tuple[str, PortableItem]] = field(default_factory=dict)
    """Item id -> the thing that it became in this game, and the original item; oldest first."""
    rules: tuple[str, ...] = ()
    """Ids of the rules already applied to this avatar."""
    news: dict[str, JsonValue] = field(default_factory=dict)
    """Rule id -> what it changed, until the agent jacks in."""
    lost: dict[str, dict[str, str]] = field(default_factory=dict)
    """Avatar id -> item id -> how it was lost, until a package reports it."""
    receipts: dict[str, Receipt] = field(default_factory=dict)
    """Transfer id -> answer of `admit`."""
    packages: dict[str, TransitPackage] = field(default_factory=dict)
    """Transfer id -> answer of `release`."""

    # --- in -----------------------------------------------------------------------------------

    def apply_rules(
        self, rules: Iterable[TransferRule], skills: Mapping[str, float], give: Callable[[Bonus], JsonValue]
    ) -> dict[str, JsonValue]:
        """Apply the rules for these skills (domain -> level), each once per avatar; return rule id -> what changed.
        `give` applies a bonus and returns what changed; if that is empty, the rule can apply later."""
        applied: dict[str, JsonValue] = {}
        for rule in rules:
            if rule.id in self.rules or not skills.get(rule.domain, 0.0) >= rule.threshold:
                continue
            if changed := give(rule.bonus):
                self.rules += (rule.id,)
                applied[rule.id] = changed
        self.news.update(applied)
        return applied

    def import_items(
        self, items: Iterable[PortableItem], thing_for: Callable[[PortableItem], str | Refused]
    ) -> tuple[list[str], dict[str, str]]:
        """Import an agent's items (untrusted), each once; return the ids of accepted ones, and refused id -> reason.

        `thing_for` returns the thing that an item becomes, or why it is refused; earlier items are in `kept` already.
        """
        admitted: list[str] = []
        refused: dict[str, str] = {}
        for item in items:
            if item.item_id in admitted or item.item_id in refused:
                continue
            copy = self._sound_copy(item)
            thing = copy if isinstance(copy, Refused) else thing_for(copy)
            if isinstance(thing, Refused) or isinstance(copy, Refused):
                refused[item.item_id] = thing.reason if isinstance(thing, Refused) else ""
            else:
                self.kept[item.item_id] = (thing, copy)
                admitted.append(item.item_id)
        return admitted, refused

    def _sound_copy(self, item: PortableItem) -> PortableItem | Refused:
        """Return an item as a snapshot would restore it, or why it is invalid."""
        try:
            copy = Codec().decode(PortableItem, encode(item))
        except WireError:
            return Refused("it is not a portable item: its fields are invalid")
        if copy.category not in ITEM_CATEGORIES:
            return Refused(f"{copy.category[:40]!r} is not a category of portable items")
        if not 1 <= copy.tier <= TOP_TIER:
            return Refused(f"its tier {copy.tier} is not between 1 and {TOP_TIER}")
        if copy.item_id in self.kept:
            return Refused("it is in this world already")
        for gone in self.lost.values():
            if copy.item_id in gone:
                return Refused(f"it no longer exists: {gone[copy.item_id]}")
        return copy

    # --- between ------------------------------------------------------------------------------

    def count(self) -> Counter[str]:
        """Return the number of each thing of the game that came with the agent."""
        return Counter(thing for thing, _ in self.kept.values())

    def lose(self, avatar_id: str, item_id: str, reason: str) -> None:
        """Write off one item, for a reason such as "used up"."""
        del self.kept[item_id]
        self.lost.setdefault(avatar_id, {})[item_id] = reason

    def lose_all(self, avatar_id: str, reason: str) -> None:
        """Write off all items."""
        for item_id in list(self.kept):
            self.lose(avatar_id, item_id, reason)

    def new_avatar(self) -> None:
        """Reset the applied rules, for another avatar."""
        self.rules, self.news = (), {}

    def take_news(self) -> dict[str, JsonValue]:
        """Return and clear the news."""
        news, self.news = self.news, {}
        return news

    # --- out ------------------------------------------------------------------------------------

    def export_items(self, transfer_id: str, own: Iterable[PortableItem] = ()) -> list[PortableItem]:
        """Remove and return the items that came with the agent, unchanged, and the game's `own` items with new ids."""
        items = [item for _, item in self.kept.values()]
        items += [replace(item, item_id=f"{transfer_id}:{number}") for number, item in enumerate(own, 1)]
        self.kept = {}
        return items

    def answered(self, answer: Receipt | TransitPackage) -> None:
        """Store an answer for repeated requests."""
        answers: dict[str, Any] = self.receipts if isinstance(answer, Receipt) else self.packages
        answers[answer.transfer_id] = answer
        while len(answers) > REMEMBERED:
            del answers[next(iter(answers))]

    # --- as data ----------------------------------------------------------------------------------

    def to_json(self) -> dict[str, JsonValue]:
        """Return the ledger as JSON-ready data."""
        return {
            "kept": [[thing, encode(item)] for thing, item in self.kept.values()],
            "rules": list(self.rules),
            "news": self.news,
            "lost": self.lost,
            "receipts": [encode(receipt) for receipt in self.receipts.values()],
            "packages": [encode(package) for package in self.packages.values()],
        }

    def load_json(self, data: JsonValue, rules: Collection[str]) -> None:
        """Restore the ledger from untrusted data; `rules` are the ids of the game's transfer rules.

        Raises:
            ValueError, TypeError, KeyError: the data is invalid; nothing has changed.
        """
        kept = read(list[tuple[str, PortableItem]], data["kept"])
        receipts, packages = read(list[Receipt], data["receipts"]), read(list[TransitPackage], data["packages"])
        had, news = read(tuple[str, ...], data["rules"]), read(dict[str, JsonValue], data["news"])
        lost = read(dict[str, dict[str, str]], data["lost"])
        if not {*had, *news} <= {*rules}:
            raise ValueError("a rule is unknown")
        self.kept = {item.item_id: (thing, item) for thing, item in kept}
        self.rules, self.news, self.lost = had, news, lost
        self.receipts = {receipt.transfer_id: receipt for receipt in receipts}
        self.packages = {package.transfer_id: package for package in packages}
