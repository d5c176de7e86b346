"""Who brought what into a world, what of it is still there, and what has been answered already.

Every item that an agent brings along is in one of three places: in escrow with whoever carries agents
between worlds, here in `kept`, or in `lost`, with a word on what became of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import PortableItem, Receipt, TransitPackage
from wsap_core.protocol.transit import ITEM_CATEGORIES, TOP_TIER, Bonus, TransferRule
from wsap_core.protocol.wire import Codec, encode

REMEMBERED = 64
"""Answers of each kind that are kept; who asks again does so before as many others have passed."""

# Any, in this module: JSON data, and what a bonus changed.


@dataclass(frozen=True)
class Refused:
    """Why an item is not let in."""

    reason: str


@dataclass
class Luggage:
    """The books of one world with one body. What an item does there is the game's own affair."""

    kept: dict[str, tuple[str, PortableItem]] = field(default_factory=dict)
    """Item id -> the thing of this game that it is here, and the item as it came; oldest first."""
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

    def apply_rules(
        self, rules: Iterable[TransferRule], skills: Mapping[str, float], give: Callable[[Bonus], Any]
    ) -> dict[str, Any]:
        """Give what the skills are worth, each rule once for an avatar.

        Args:
            rules: the game's.
            skills: domain -> level.
            give: carries a bonus out, and returns what really changed (JSON-ready); nothing, where nothing did.

        Returns:
            Rule id -> what changed. A rule that changed nothing is not in it, and not spent.
        """
        applied: dict[str, Any] = {}
        for rule in rules:
            if rule.id in self.rules or not skills.get(rule.domain, 0.0) >= rule.threshold:
                continue
            if changed := give(rule.bonus):
                self.rules += (rule.id,)
                applied[rule.id] = changed
        self.news.update(applied)
        return applied

    def take_in(
        self, items: Iterable[PortableItem], thing_for: Callable[[PortableItem], str | Refused]
    ) -> tuple[list[str], dict[str, str]]:
        """Let items in as far as possible, each once.

        Args:
            items: what an agent brings along; not trusted.
            thing_for: says what an item is in this game, or why it is not let in. What it says is booked at once, so
                that it can count what is `kept` already.

        Returns:
            The ids of those that are in the world now, and of the others with the reason.
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
        """Return an item as it will come back from a snapshot, or why it can't be let in."""
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

    # --- meanwhile ------------------------------------------------------------------------------

    def count(self) -> Counter[str]:
        """Return how many of each of the game's things were brought along."""
        return Counter(thing for thing, _ in self.kept.values())

    def lose(self, avatar_id: str, item_id: str, reason: str) -> None:
        """Write off one item: "used up"."""
        del self.kept[item_id]
        self.lost.setdefault(avatar_id, {})[item_id] = reason

    def lose_all(self, avatar_id: str, reason: str) -> None:
        """Write off everything that the body carries."""
        for item_id in list(self.kept):
            self.lose(avatar_id, item_id, reason)

    def new_avatar(self) -> None:
        """Begin with another avatar, which has had no bonus yet."""
        self.rules, self.news = (), {}

    def tell_news(self) -> dict[str, Any]:
        """Return what bonuses have changed since this was asked last."""
        news, self.news = self.news, {}
        return news

    # --- out ------------------------------------------------------------------------------------

    def let_out(self, transfer_id: str, own: Iterable[PortableItem] = ()) -> list[PortableItem]:
        """Return what leaves: all that was brought along, as it came, and then the game's own things.

        Args:
            transfer_id: of the leaving.
            own: things that the game has taken out of the body; they get ids here.
        """
        items = [item for _, item in self.kept.values()]
        items += [replace(item, item_id=f"{transfer_id}:{number}") for number, item in enumerate(own, 1)]
        self.kept = {}
        return items

    def answered(self, answer: Receipt | TransitPackage) -> None:
        """Remember an answer, to give it again to who asks again."""
        book: dict[str, Any] = self.receipts if isinstance(answer, Receipt) else self.packages
        book[answer.transfer_id] = answer
        while len(book) > REMEMBERED:
            del book[next(iter(book))]

    # --- as data ----------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {
            "kept": [[thing, encode(item)] for thing, item in self.kept.values()],
            "rules": list(self.rules),
            "news": self.news,
            "lost": self.lost,
            "receipts": [encode(receipt) for receipt in self.receipts.values()],
            "packages": [encode(package) for package in self.packages.values()],
        }

    def load_json(self, data: Any, rules: Collection[str]) -> None:
        """Become what `to_json` was asked of; the data is not trusted.

        Args:
            data: JSON.
            rules: ids of the game's transfer rules.

        Raises:
            ValueError, TypeError, KeyError, AttributeError: it is not that of luggage; nothing has changed.
        """
        codec = Codec()
        try:
            items = [(str(thing), codec.decode(PortableItem, item)) for thing, item in data["kept"]]
            receipts = [codec.decode(Receipt, receipt) for receipt in data["receipts"]]
            packages = [codec.decode(TransitPackage, package) for package in data["packages"]]
        except WireError as error:
            raise ValueError(str(error)) from error
        had, news = tuple(data["rules"]), dict(data["news"])
        lost = {str(avatar_id): dict(gone) for avatar_id, gone in data["lost"].items()}
        if any(rule not in rules for rule in (*had, *news)):
            raise ValueError("a rule is not known")
        if not all(isinstance(word, str) for gone in lost.values() for pair in gone.items() for word in pair):
            raise ValueError("what became of an item is not text")
        self.kept = {item.item_id: (thing, item) for thing, item in items}
        self.rules, self.news, self.lost = had, news, lost
        self.receipts = {receipt.transfer_id: receipt for receipt in receipts}
        self.packages = {package.transfer_id: package for package in packages}
