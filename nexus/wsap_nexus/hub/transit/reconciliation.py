"""Manual decisions about unresolved transfers: whether the items have arrived or returned.

A remote game is asked about an unresolved transfer until it answers (`wsap_nexus.hub.games.remote_games`). If the game
never comes back, the items would belong to the transfer forever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from wsap_core.errors import UnknownNameError, UsageError
from wsap_nexus.errors import TransitError
from wsap_nexus.store.entities import TransferRecord
from wsap_nexus.store.events.sessions import TransferSettled
from wsap_nexus.store.nexus_store import Transaction

Outcome = Literal["arrived", "returned"]


@dataclass(frozen=True)
class UnresolvedTransfer:
    """A transfer whose outcome is unknown."""

    transfer: str
    game: str
    since: str
    """When it was prepared: ISO 8601."""
    why: str
    """Why its outcome is unknown."""
    items: tuple[str, ...]
    """The ids of its items."""


@dataclass(frozen=True)
class ResolvedTransfer:
    """A transfer that a person has decided about."""

    transfer: str
    game: str
    outcome: Outcome
    items: tuple[str, ...]
    """The ids of its items."""
    place: Literal["escrow", "world", "lost"]
    """Where the items are now; `lost` if the world no longer exists."""


def unresolved_transfers(tx: Transaction, agent_id: str | None = None) -> list[UnresolvedTransfer]:
    """Return all unresolved transfers, or one agent's, oldest first."""
    return [
        UnresolvedTransfer(
            str(row.id),
            str(row.data.get("game", "")),
            str(row.created),
            str(row.data.get("why", "")),
            _items(tx, row),
        )
        for row in tx.transfers("unknown")
        if agent_id is None or row.agent_id == agent_id
    ]


def settle(tx: Transaction, agent_id: str, outcome: str, transfer: str | None = None) -> list[ResolvedTransfer]:
    """Settle an agent's unresolved transfers, after which each item is in one place, and return the decisions.

    Args:
        outcome: "returned": the agent has all items back. "arrived": they are in the target world or, if that no
            longer exists, lost, so that none is ever duplicated.
        transfer: the id of one transfer; None for all unresolved ones.

    Raises:
        UnknownNameError: there is no such agent, or it has no such unresolved transfer.
        TransitError: no transfer of the agent is unresolved.
        UsageError: there is no such outcome.
    """
    if outcome not in get_args(Outcome):
        raise UsageError(f"The outcome of a transfer is arrived or returned, not {outcome!r}.")
    tx.agent(agent_id)
    rows = [row for row in tx.transfers("unknown") if row.agent_id == agent_id]
    if not rows:
        raise TransitError(f"No transfer of {agent_id!r} is unresolved; there is nothing to decide.")
    if transfer is not None:
        known = [str(row.id) for row in rows]
        rows = [row for row in rows if row.id == transfer]
        if not rows:
            raise UnknownNameError("unresolved transfer", transfer, known)
    return [_settle(tx, row, outcome) for row in rows]  # type: ignore[arg-type]  # looked up


def _settle(tx: Transaction, row: TransferRecord, outcome: Outcome) -> ResolvedTransfer:
    items = _items(tx, row)
    there = outcome == "arrived" and row.world_id is not None and tx.has_world(row.world_id)
    place: Literal["escrow", "world", "lost"] = "escrow" if outcome == "returned" else "world" if there else "lost"
    tx.move_items(
        row.agent_id,
        items,
        from_place="transfer",
        from_id=row.id,
        to_place=place,
        to_id=row.world_id if there else None,
        note=f"a person decided that it {outcome}",
    )
    # With either outcome there was no session.
    tx.settle(row.id, "cancelled", decided=outcome)
    game = str(row.data.get("game", ""))
    tx.note(
        TransferSettled(agent_id=row.agent_id, game=game, transfer=row.id, outcome=outcome, items=list(items), to=place)
    )
    return ResolvedTransfer(str(row.id), game, outcome, items, place)


def _items(tx: Transaction, row: TransferRecord) -> tuple[str, ...]:
    return tuple(r.item.item_id for r in tx.items(row.agent_id, place="transfer", place_id=str(row.id)))
