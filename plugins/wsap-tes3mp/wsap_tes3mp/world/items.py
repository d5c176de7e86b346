"""Item transit: what imported items become in `morrowind`, and which items leave it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from wsap_core.authoring.item_ledger import Refused
from wsap_core.protocol import Bonus, Entry, PortableItem, Receipt
from wsap_core.protocol.values import JsonValue
from wsap_core.untrusted import sanitize
from wsap_tes3mp.engines.simulated.definitions import Item, definitions
from wsap_tes3mp.protocol.bridge import ItemsReceipt, ItemsRequest
from wsap_tes3mp.protocol.errors import BridgeError, NotOfferedError
from wsap_tes3mp.protocol.perception import InventoryItem, PerceptionOutput
from wsap_tes3mp.world.catalogue import GAME_ID, TRANSFER_RULES
from wsap_tes3mp.world.player import Player

MOST = 10
"""Maximum imported items a body carries."""
_WORDS = {"weapon": "weapon", "armor": "armor", "consumable": "food"}
"""Category -> the word in a thing's id that tells an engine what it is."""


def thing_of(item: PortableItem) -> str:
    """Return the id of the thing an item becomes: items from this world as before, others by their name."""
    hint = item.hints.get(GAME_ID, "")
    here = _portable().get(hint)
    if here is not None and here.category == item.category and here.tier <= item.tier:
        return hint
    words = re.sub(r"[^a-z0-9]+", "_", sanitize(item.name, 60).lower()).strip("_") or "thing"
    return f"brought_{_WORDS.get(item.category, item.category)}_{words}"


async def bring_in(player: Player, entry: Entry) -> Receipt:
    """Apply an agent's bonuses and import its items, in one transfer of the bridge."""
    ledger, extra = player.items, Counter[str]()

    def give(bonus: Bonus) -> JsonValue:
        extra[bonus.name] += int(bonus.amount)
        return {bonus.name: int(bonus.amount)}

    had = ledger.rules, dict(ledger.news), dict(ledger.kept)
    bonuses = ledger.apply_rules(TRANSFER_RULES, entry.skills, give)

    def thing_for(item: PortableItem) -> str | Refused:
        if len(ledger.kept) >= MOST:
            return Refused(f"the body already carries {MOST} things from elsewhere, the maximum")
        return thing_of(item)

    admitted, refused = ledger.import_items(entry.items, thing_for)
    wanted = extra + Counter(ledger.kept[item_id][0] for item_id in admitted)
    if wanted:
        request = ItemsRequest(transfer_id=entry.transfer_id, give=_things(wanted, player))
        try:
            given = Counter({i.item_id: i.count for i in (await _transfer(player, request)).given})
        except BridgeError as error:
            ledger.rules, ledger.news, ledger.kept = had
            reason = f"the world accepts no items: {sanitize(str(error), 200)}"
            return Receipt(entry.transfer_id, {}, (), {item.item_id: reason for item in entry.items})
        given -= extra
        player.gifts += extra
        for item_id in list(admitted):
            thing = ledger.kept[item_id][0]
            if given[thing] > 0:
                given[thing] -= 1
                continue
            del ledger.kept[item_id]
            admitted.remove(item_id)
            refused[item_id] = "the world did not accept it"
    return Receipt(entry.transfer_id, bonuses, admitted, refused)


async def carry_out(player: Player, transfer_id: str) -> list[PortableItem]:
    """Export the portable items of a body: all that came with the agent and are still there, and the best of its own.

    After a failure of the bridge this can be repeated with the same id.
    """
    ledger = player.items
    there = Counter({item.item_id: item.count for item in (player.seen.inventory if player.seen else None) or ()})
    _lose_all_but(player, there, "used up or given away")
    own = [] if player.emptied else own_things(there, ledger.count(), player.gifts)
    player.emptied = True
    if wanted := ledger.count() + Counter(own):
        request = ItemsRequest(transfer_id=transfer_id, take=_things(wanted, player))
        try:
            taken = Counter({i.item_id: i.count for i in (await _transfer(player, request)).taken})
        except NotOfferedError:
            taken = Counter()
        own = list((_lose_all_but(player, taken, "the world did not return it") & Counter(own)).elements())
    return ledger.export_items(transfer_id, [item_of(thing) for thing in own])


def _lose_all_but(player: Player, there: Counter[str], reason: str) -> Counter[str]:
    """Write off imported items that are no longer there, and return what else is there."""
    left = Counter(there)
    for item_id, (thing, _) in list(player.items.kept.items()):
        if left[thing] > 0:
            left[thing] -= 1
        else:
            player.items.lose(player.body.avatar_id, item_id, reason)
    return left


def own_things(there: Mapping[str, int], kept: Mapping[str, int], gifts: Mapping[str, int]) -> list[str]:
    """Return what leaves with an agent besides its imported items: the best thing it found of each category.

    An imported item that is as good comes first. Initial inventory and bonuses stay: they would multiply.
    """
    portable = _portable()
    best = {item.category: thing for thing, item in portable.items() if kept.get(thing, 0)}
    brought = set(best.values())
    for thing, item in portable.items():
        own = there.get(thing, 0) - kept.get(thing, 0) - gifts.get(thing, 0)
        if own > 0 and (item.category not in best or item.tier > portable[best[item.category]].tier):
            best[item.category] = thing
    return [thing for thing in best.values() if thing not in brought]


def item_of(thing: str) -> PortableItem:
    """Return a thing as a portable item, still without an id."""
    item = _portable()[thing]
    return PortableItem("", item.name, item.category, item.tier, {}, GAME_ID, {GAME_ID: thing})


def _portable() -> dict[str, Item]:
    """Return id -> item of the things that can leave the embedded world."""
    return {thing: item for thing, item in definitions().items.items() if item.category}


def _things(wanted: Mapping[str, int], player: Player) -> tuple[InventoryItem, ...]:
    names = {thing: sanitize(item.name, 60) for thing, item in player.items.kept.values()}
    names |= {thing: item.name for thing, item in _portable().items()}
    return tuple(
        InventoryItem(item_id=thing, name=names[thing] or thing, count=count) for thing, count in sorted(wanted.items())
    )


async def _transfer(player: Player, request: ItemsRequest) -> ItemsReceipt:
    """Transfer items, then perceive the inventory; for a body without an agent, compute it."""
    receipt = await player.source.port.transfer(player.bridge_id, request)
    if not player.away:
        await player.look()
    elif player.seen is not None:
        player.seen = _moved(player.seen, receipt)
    return receipt


def _moved(seen: PerceptionOutput, receipt: ItemsReceipt) -> PerceptionOutput:
    """Return a perception with the inventory after a transfer."""
    items = {item.item_id: item for item in (*(seen.inventory or ()), *receipt.given)}
    counts = Counter({item.item_id: item.count for item in seen.inventory or ()})
    for item in receipt.given:
        counts[item.item_id] += item.count
    for item in receipt.taken:
        counts[item.item_id] -= item.count
    left = tuple(items[i].model_copy(update={"count": n}) for i, n in sorted(counts.items()) if n > 0)
    summary = seen.inventory_summary.model_copy(update={"item_count": sum(item.count for item in left)})
    return seen.model_copy(update={"inventory": left, "inventory_summary": summary})
