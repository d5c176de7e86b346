"""Agents that come with skills and things, and leave with things: `admit` and `release` of Crafter."""

from __future__ import annotations

from dataclasses import replace

from wsap_core.errors import UsageError
from wsap_core.protocol import AvatarState, Entry, Receipt, TransitPackage
from wsap_core.protocol.observation import Event
from wsap_crafter.dormancy import sleep_through
from wsap_crafter.engine import CrafterEngine
from wsap_crafter.observation import Happenings
from wsap_crafter.records import Record


def admit(engine: CrafterEngine, record: Record, avatar_id: str, entry: Entry, longest_sleep: int) -> Receipt:
    """Let time pass for a sleeping body, apply bonuses, take items in, and return what was done.

    Asked again with the same transfer id, it does nothing and returns the same receipt.

    Raises:
        UsageError: the agent has no such avatar here.
    """
    ledger, body = record.ledger, record.body
    if entry.transfer_id in ledger.receipts:
        return ledger.receipts[entry.transfer_id]
    if avatar_id != body.avatar_id or entry.agent_id != body.owner:
        raise UsageError(f"{entry.agent_id!r} has no avatar {avatar_id!r} in this world of Crafter.")
    notes: list[str] = []
    if body.state is AvatarState.DORMANT and entry.steps_away > 0:
        notes = _sleep(engine, record, min(entry.steps_away, longest_sleep))
    if record.body.state is AvatarState.DESTROYED:
        reason = "the body is dead" if not body.despawned else "the body was despawned"
        receipt = Receipt(entry.transfer_id, {}, (), {item.item_id: reason for item in entry.items}, notes)
    else:
        inventory = engine.player.inventory
        bonuses = ledger.add_bonuses(entry.skills, inventory)
        admitted, refused = ledger.put_in(entry.items, inventory)
        receipt = Receipt(entry.transfer_id, bonuses, admitted, refused, notes)
    ledger.answered(receipt)
    return receipt


def _sleep(engine: CrafterEngine, record: Record, steps: int) -> list[str]:
    """Let the body sleep, tell what came of it, and put that into the record."""
    sleep = sleep_through(engine, steps)
    if not sleep.steps:
        return []
    notes = [f"Your body slept for {sleep.steps} steps."]
    if sleep.wounds:
        notes.append("Meanwhile: " + " ".join(wound.description for wound in sleep.wounds))
    events = [Event(notes[0], "info", None, engine.steps), *sleep.wounds]
    if engine.dead:
        notes.append("It died in its sleep.")
        events.append(Event("You died in your sleep.", "death", sleep.wounds[-1].source, engine.steps))
    record.after_sleep(Happenings(tuple(events)), dead=engine.dead)
    return notes


def release(engine: CrafterEngine, record: Record, avatar_id: str, transfer_id: str) -> TransitPackage:
    """Take what is portable out of the body, tell what was lost, and return both.

    Asked again with the same transfer id, it does nothing and returns the same package. A body that died
    has nothing left; one that was despawned has, as long as its world stands.

    Raises:
        UsageError: there was never such an avatar here.
    """
    ledger, body = record.ledger, record.body
    if transfer_id in ledger.packages:
        return ledger.packages[transfer_id]
    numbers = {replace(body, number=n).avatar_id: n for n in range(1, body.number + 1)}
    if avatar_id not in numbers:
        raise UsageError(f"There is no avatar {avatar_id!r} in this world of Crafter.")
    there = avatar_id == body.avatar_id and not engine.dead
    items = ledger.take_from(transfer_id, engine.player.inventory) if there else []
    package = TransitPackage(transfer_id, items, ledger.lost.pop(avatar_id, {}))
    ledger.answered(package)
    return package
