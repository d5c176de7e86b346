"""The ledger of items that agents brought into a one-body world, and of the answers to transfers.

Every item that an agent brings along is in one of three places: in escrow with the nexus that carries agents
between worlds, here in `kept`, or in `lost`, with what became of it.
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
"""Answers of each kind that are kept for repeated requests."""


@dataclass(frozen=True)
class Refused:
    """The reason for refusing an item."""

    reason: str


@dataclass
class ItemLedger:
    """The items and transfers of a one-body world. The game decides what an item does there."""

    kept: dict[str, tuple[str, PortableItem]] = field(default_factory=dict)
    """Item id -> the thing that it became in this game, and the item as it came; oldest first."""
    rules: tuple[str, ...] = ()
    """Ids of the rules already applied to this avatar."""
    news: dict[str, JsonValue] = field(default_factory=dict)
    """Rule id -> what it changed, until the agent jacks in and is told."""
    lost: dict[str, dict[str, str]] = field(default_factory=dict)
    """Avatar id -> item id -> what became of it, until a package reports it."""
    receipts: dict[str, Receipt] = field(default_factory=dict)
    """Transfer id -> answer of `admit`."""
    packages: dict[str, TransitPackage] = field(default_factory=dict)
    """Transfer id -> answer of `release`."""

    # --- in -----------------------------------------------------------------------------------

    def apply_rules(
        self, rules: Iterable[TransferRule], skills: Mapping[str, float], give: Callable[[Bonus], JsonValue]
    ) -> dict[str, JsonValue]:
        """Apply the bonuses of the skills (domain -> level), each rule once for an avatar.

        `give` applies a bonus, and returns what changed; something empty if nothing did. Returns rule id -> what
        changed. A rule that changed nothing is left out, and can apply later.
        """
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
        """Accept what an agent brings along (not trusted) as far as possible, each item once.

        `thing_for` returns the thing that an item becomes, or why it is refused. Each item is in `kept` before the
        next one is asked about. Returns the ids of the accepted items, and those of the refused ones with the reason.
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
        """Return an item as a snapshot would restore it, or why it is refused."""
        try:
            copy = Codec().decode(PortableItem, encode(item))
        except WireError:
            return Refused("it is no portable item: its fields are not what they should be")
        if copy.category not in ITEM_CATEGORIES:
            return Refused(f"{copy.category[:40]!r} is no category of portable items")
        if not 1 <= copy.tier <= TOP_TIER:
            return Refused(f"tiers go from 1 to {TOP_TIER}, and its own is {copy.tier}")
        if copy.item_id in self.kept:
            return Refused("it is in this world already")
        for gone in self.lost.values():
            if copy.item_id in gone:
                return Refused(f"it is no more: {gone[copy.item_id]}")
        return copy

    # --- between ------------------------------------------------------------------------------

    def count(self) -> Counter[str]:
        """Return how many of each thing of the game came with the agent."""
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
        """Start over with another avatar, to which no rule has been applied."""
        self.rules, self.news = (), {}

    def take_news(self) -> dict[str, JsonValue]:
        """Return what bonuses have changed since the last call."""
        news, self.news = self.news, {}
        return news

    # --- out ------------------------------------------------------------------------------------

    def export_items(self, transfer_id: str, own: Iterable[PortableItem] = ()) -> list[PortableItem]:
        """Return what leaves at this exit: all that came with the agent, unchanged, then the game's own things.

        `own` are things that the game has removed from the body; they get ids here.
        """
        items = [item for _, item in self.kept.values()]
        items += [replace(item, item_id=f"{transfer_id}:{number}") for number, item in enumerate(own, 1)]
        self.kept = {}
        return items

    def answered(self, answer: Receipt | TransitPackage) -> None:
        """Store an answer, to return it to a repeated request."""
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
        """Restore what `to_json` returned; the data is not trusted. `rules` are the ids of the game's transfer rules.

        Raises:
            ValueError, TypeError, KeyError: the data describes no ledger; nothing has changed.
        """
        kept = read(list[tuple[str, PortableItem]], data["kept"])
        receipts, packages = read(list[Receipt], data["receipts"]), read(list[TransitPackage], data["packages"])
        had, news = read(tuple[str, ...], data["rules"]), read(dict[str, JsonValue], data["news"])
        lost = read(dict[str, dict[str, str]], data["lost"])
        if not {*had, *news} <= {*rules}:
            raise ValueError("a rule is not known")
        self.kept = {item.item_id: (thing, item) for thing, item in kept}
        self.rules, self.news, self.lost = had, news, lost
        self.receipts = {receipt.transfer_id: receipt for receipt in receipts}
        self.packages = {package.transfer_id: package for package in packages}
