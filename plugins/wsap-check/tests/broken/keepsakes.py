"""A meadow that agents come to with skills and things, and leave with things; it keeps every promise.

The broken worlds in `keepsakes_faults.py` are variations of it, each with one fault.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from meadow import SPEC as MEADOW
from meadow import Meadow

from wsap_core import Avatar, AvatarState, Context, DeathEvent, JackInResult
from wsap_core.errors import SnapshotError, UsageError, WireError
from wsap_core.protocol import Bonus, Entry, PortableItem, Receipt, TransferRule, TransitPackage
from wsap_core.protocol.wire import Codec, encode

RULES = (
    TransferRule("ripe", "resource_management", 0.3, Bonus("item", "berries", 2), "two berries"),
    TransferRule("scout", "exploration", 0.5, Bonus("unlock", "tracks"), "the wolf's tracks"),
)
ROOM = 4
LONGEST = 10


class Orchard(Meadow):
    """Keepsakes are weapons, tools and coins, four at most; a bite makes one drop the first of them."""

    def __init__(self, context: Context | None = None) -> None:
        self.keepsakes: dict[str, PortableItem] = {}
        self.lost: dict[str, str] = {}
        self.used: list[str] = []
        self.news: dict[str, Any] = {}
        self.receipts: dict[str, Receipt] = {}
        self.packages: dict[str, TransitPackage] = {}
        super().__init__(context)

    # --- what is seen of it -----------------------------------------------------------------------

    def begin(self) -> None:
        self.lose("left behind in yesterday's orchard", len(self.keepsakes))
        self.tracks = False
        super().begin()

    def status(self) -> dict[str, object]:
        return {**super().status(), "keepsakes": sorted(self.keepsakes), **({"wolf": self.wolf} if self.tracks else {})}

    def avatar(self) -> Avatar:
        return replace(super().avatar(), inventory={"berries": self.berries, "keepsakes": len(self.keepsakes)})

    def pass_time(self) -> None:
        before = self.health
        super().pass_time()
        if self.health < before:
            self.lose("dropped when the wolf bit", 1)
        if self.health <= 0:
            self.lose("lost when the avatar died", len(self.keepsakes))

    def lose(self, reason: str, number: int) -> None:
        for item_id in list(self.keepsakes)[:number]:
            del self.keepsakes[item_id]
            self.lost[item_id] = reason

    # --- in and out ---------------------------------------------------------------------------------

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        if (known := self.receipts.get(entry.transfer_id)) is not None:
            return known
        if avatar_id != super().avatar().avatar_id or self._body.owner != entry.agent_id:
            raise UsageError("There is no such body of yours.")
        notes = self.sleep(entry.steps_away) if self._body.state is AvatarState.DORMANT else []
        bonuses = self.bonuses(entry.skills)
        self.news.update(bonuses)
        admitted, refused = [], {}
        for item in entry.items:
            if reason := self.take(item):
                refused[item.item_id] = reason
            else:
                admitted.append(item.item_id)
        return self.written(Receipt(entry.transfer_id, bonuses, admitted, refused, notes))

    def written(self, receipt: Receipt) -> Receipt:
        self.receipts[receipt.transfer_id] = receipt
        return receipt

    def sleep(self, steps: int) -> list[str]:
        for _ in range(min(steps, LONGEST)):
            if self.health > 1:  # the wolf leaves sleepers alone before it kills them
                self.pass_time()
        return [f"{min(steps, LONGEST)} steps went by."] if steps else []

    def bonuses(self, skills: Mapping[str, float]) -> dict[str, Any]:
        applied = {}
        for rule in RULES:
            if skills.get(rule.domain, 0.0) >= rule.threshold and rule.id not in self.used:
                self.used.append(rule.id)
                applied[rule.id] = self.apply(rule)
        return applied

    def apply(self, rule: TransferRule) -> Any:
        if rule.id == "scout":
            self.tracks = True
            return "tracks"
        self.berries += int(rule.bonus.amount)
        return {"berries": int(rule.bonus.amount)}

    def take(self, item: PortableItem) -> str:
        """Take an item in, or return why not."""
        if item.category not in ("weapon", "tool", "currency"):
            return "it is of no use in an orchard"
        if len(self.keepsakes) >= ROOM:
            return "the pockets are full"
        self.keepsakes[item.item_id] = item
        return ""

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        if (known := self.packages.get(transfer_id)) is not None:
            return known
        package = TransitPackage(transfer_id, [*self.keepsakes.values(), *self.harvest(transfer_id)], self.lost)
        self.packages[transfer_id] = package
        self.lost = {}
        self.empty()
        return package

    def empty(self) -> None:
        self.keepsakes, self.berries = {}, 0

    def harvest(self, transfer_id: str) -> list[PortableItem]:
        return [self.berry(f"{transfer_id}:{n}") for n in range(self.berries)] if self.health > 0 else []

    def berry(self, item_id: str) -> PortableItem:
        return PortableItem(item_id, "berry", "consumable", 1, {}, "orchard")

    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        result = super().jack_in(agent_id, avatar_id)
        if not result.success:
            return result
        news, self.news = self.news, {}
        return replace(result, bonuses_applied=news)

    def handle_death(self, avatar_id: str) -> DeathEvent:
        return replace(super().handle_death(avatar_id), items_dropped={"berries": self.berries})

    # --- kept ---------------------------------------------------------------------------------------

    def books(self) -> dict[str, Any]:
        return {
            "keepsakes": [encode(item) for item in self.keepsakes.values()],
            "receipts": [encode(receipt) for receipt in self.receipts.values()],
            "packages": [encode(package) for package in self.packages.values()],
            "lost": self.lost,
            "used": self.used,
            "news": self.news,
            "tracks": self.tracks,
        }

    def snapshot(self) -> bytes:
        return json.dumps({**json.loads(super().snapshot()), "books": self.books()}).encode()

    def restore(self, data: bytes) -> None:
        codec = Codec()
        try:
            books = json.loads(data)["books"]
            items = [codec.decode(PortableItem, item) for item in books["keepsakes"]]
            receipts = [codec.decode(Receipt, receipt) for receipt in books["receipts"]]
            packages = [codec.decode(TransitPackage, package) for package in books["packages"]]
            lost, news, used = dict(books["lost"]), dict(books["news"]), list(books["used"])
            tracks = bool(books["tracks"])
        except (ValueError, KeyError, TypeError, RecursionError, WireError) as error:
            raise SnapshotError(f"The orchard's snapshot is damaged: {error}.") from error
        super().restore(data)
        self.keepsakes = {item.item_id: item for item in items}
        self.receipts = {receipt.transfer_id: receipt for receipt in receipts}
        self.packages = {package.transfer_id: package for package in packages}
        self.lost, self.news, self.used, self.tracks = lost, news, used, tracks


SPEC = replace(
    MEADOW,
    name="orchard",
    factory=Orchard,
    abilities=("seed", "snapshot", "render", "avatars", "transit"),
    skills={"exploration": ("north", "south"), "resource_management": ("first-berry", "handful")},
    transfer_rules=RULES,
)
