"""The repository of items; each belongs to an agent and is in one place."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, select

from wsap_core.protocol import PortableItem
from wsap_core.protocol.wire import encode
from wsap_nexus.errors import ConservationError
from wsap_nexus.store.entities import ItemRecord, check_item, item_of
from wsap_nexus.store.events.sessions import ItemFound, ItemMoved, ItemsMoved
from wsap_nexus.store.repositories.log import EventRepository, matching
from wsap_nexus.store.tables import METADATA

_ITEM = METADATA.tables["item"]

_LONGEST_NOTE = 500  # characters
_BATCH = 500  # items per statement


class ItemRepository(EventRepository):
    """Reads and writes items."""

    def items(self, agent_id: str, *, place: str | None = None, place_id: str | None = None) -> list[ItemRecord]:
        """Return an agent's items ordered by id, in one place or in all."""
        query = select(_ITEM).where(*matching(_ITEM, agent_id=agent_id, place=place, place_id=place_id))
        return [item_of(row) for row in self.connection.execute(query.order_by(_ITEM.c.id))]

    def mint_item(
        self, agent_id: str, item: PortableItem, *, game: str, session: str, transfer_id: str | None = None
    ) -> None:
        """Add a new item to escrow; ConservationError if its id is taken or `check_item` refuses it."""
        check_item(item, transfer_id)
        if self._has(_ITEM.c.id == item.item_id):
            raise ConservationError(f"there is an item {item.item_id!r} already")
        self._insert(_ITEM, id=item.item_id, agent_id=agent_id, place="escrow", note="", data=encode(item))
        self.note(ItemFound(agent_id=agent_id, game=game, session_id=session, item=encode(item)))

    def move_items(
        self,
        agent_id: str,
        item_ids: Sequence[str],
        *,
        from_place: str,
        to_place: str,
        from_id: str | None = None,
        to_id: str | None = None,
        note: str = "",
    ) -> None:
        """Move items between places, in one event; ConservationError if one is not in `from_place`."""
        if not item_ids:
            return
        wanted = sorted(item_ids)
        note = note[:_LONGEST_NOTE]
        for start in range(0, len(wanted), _BATCH):
            some = wanted[start : start + _BATCH]
            where = _ITEM.c.id.in_(some) & _lies(agent_id, from_place, from_id)
            if self._update(_ITEM, where, place=to_place, place_id=to_id, note=note) != len(some):
                raise ConservationError(f"Not all of {', '.join(some)[:500]} are in {from_place} {from_id or ''}.")
        if len(wanted) > 1:
            self.note(ItemsMoved(agent_id=agent_id, items=wanted, to=to_place, to_id=to_id, why=note))
            return
        data = self.connection.execute(select(_ITEM.c.data).where(_ITEM.c.id == wanted[0])).scalar_one()
        name = data.get("name", wanted[0])
        self.note(ItemMoved(agent_id=agent_id, item_id=wanted[0], name=name, to=to_place, to_id=to_id, why=note))

    def lose_items(self, agent_id: str, world_id: str) -> None:
        """Record an agent's items in a world that is not kept as lost."""
        items = [record.item.item_id for record in self.items(agent_id, place="world", place_id=world_id)]
        why = "its world no longer exists"
        self.move_items(agent_id, items, from_place="world", from_id=world_id, to_place="lost", note=why)


def _lies(agent_id: str, place: str, place_id: str | None) -> ColumnElement[bool]:
    there = _ITEM.c.place_id.is_(None) if place_id is None else _ITEM.c.place_id == place_id
    return (_ITEM.c.agent_id == agent_id) & (_ITEM.c.place == place) & there
