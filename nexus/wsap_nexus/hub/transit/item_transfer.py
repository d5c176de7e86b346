"""Items that worlds release, lose, or still hold when they end."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.protocol import TransitPackage
from wsap_nexus.errors import ConservationError
from wsap_nexus.store.events.sessions import ItemsRefused
from wsap_nexus.store.nexus_store import Transaction


def take_items(
    tx: Transaction, agent_id: str, world_id: str, game: str, package: TransitPackage, *, session: str
) -> dict[str, str]:
    """Record what a world released and lost; return its false claims: item id -> reason."""
    inside = {r.item.item_id for r in tx.items(agent_id, place="world", place_id=world_id)}
    there = {"from_place": "world", "from_id": world_id}
    refused: dict[str, str] = {}
    out: list[str] = []
    for item in package.items:
        if item.item_id in inside:
            inside.discard(item.item_id)
            out.append(item.item_id)
            continue
        try:
            tx.mint_item(agent_id, item, game=game, session=session, transfer_id=package.transfer_id)
        except ConservationError as error:
            refused[str(item.item_id)[:200]] = str(error)
    tx.move_items(agent_id, out, **there, to_place="escrow")
    for why, gone in by_reason(package.lost).items():
        for item_id in gone:
            if item_id not in inside:
                refused.setdefault(str(item_id)[:200], "it was reported lost but was not in the world")
        lost = [item_id for item_id in gone if item_id in inside]
        tx.move_items(agent_id, lost, **there, to_place="lost", note=why)
    if refused:
        tx.note(ItemsRefused(agent_id=agent_id, game=game, session_id=session, items=refused))
    return refused


def by_reason(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """Return item ids grouped by reason."""
    found: dict[str, list[str]] = {}
    for item_id, why in sorted(reasons.items()):
        found.setdefault(str(why), []).append(item_id)
    return found
