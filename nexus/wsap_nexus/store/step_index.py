"""An index of the steps in a run's log."""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_right
from collections import OrderedDict
from typing import Any

from sqlalchemy import Select, select

from wsap_nexus.store.records import TOTALS
from wsap_nexus.store.repository import Repository
from wsap_nexus.store.tables import METADATA

_EVENT = METADATA.tables["event"]

STRIDE = 64
"""Distance between two indexed steps; the others are found from there."""

KEPT = 16
"""Maximum number of runs whose index is kept, each 128 KB per million steps."""

_CHUNK = 5000
"""Maximum events per transaction."""


class StepIndex:
    """The number of steps of a run, and some events with their positions: the run's totals, then every 64th step."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        self.count = 0
        """Indexed steps."""
        self.next_seq = 0
        """The next event to read."""
        self._positions = array("q")
        self._anchors = array("q")
        self.lock = asyncio.Lock()
        """Held during an update."""

    def extend(self, repository: Repository) -> bool:
        """Read the next part of the log, and return whether there may be more. Called in a thread."""
        if not self.next_seq:
            for seq, steps in repository.find_events(self.run_id, TOTALS):
                self._add(steps, seq)
                self.count, self.next_seq = steps, seq + 1
        query = (
            select(_EVENT.c.seq, _EVENT.c.kind)
            .where(_EVENT.c.run_id == self.run_id, _EVENT.c.seq >= self.next_seq)
            .order_by(_EVENT.c.seq)
            .limit(_CHUNK)
        )
        with repository.database.read() as connection:
            rows = connection.execute(query).all()
        for seq, kind in rows:
            if kind == "step":
                if self.count % STRIDE == 0:
                    self._add(self.count, seq)
                self.count += 1
            self.next_seq = seq + 1
        return len(rows) == _CHUNK

    def _add(self, position: int, seq: int) -> None:
        self._positions.append(position)
        self._anchors.append(seq)

    def near(self, position: int) -> tuple[int, int]:
        """Return the last indexed event at or before a position, and the number of steps from there."""
        anchor = bisect_right(self._positions, position) - 1
        return (0, position) if anchor < 0 else (self._anchors[anchor], position - self._positions[anchor])

    def before(self, seq: int) -> tuple[int, int]:
        """Return (steps before it, number) of the last indexed event up to an event; (0, 0) for none."""
        anchor = bisect_right(self._anchors, seq) - 1
        return (0, 0) if anchor < 0 else (self._positions[anchor], self._anchors[anchor])


class StepIndexes:
    """The indexes of recently requested runs."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._indexes: OrderedDict[str, StepIndex] = OrderedDict()

    async def of(self, run_id: str) -> StepIndex:
        """Return the up-to-date index of a run."""
        index = self._indexes.setdefault(run_id, StepIndex(run_id))
        self._indexes.move_to_end(run_id)
        while len(self._indexes) > KEPT:
            self._indexes.popitem(last=False)
        async with index.lock:
            while await asyncio.to_thread(index.extend, self._repository):
                pass
        return index

    async def seq_at(self, run_id: str, position: int) -> int | None:
        """Return the event of a step by its position in the run, from 0; None if there are fewer steps."""
        index = await self.of(run_id)
        if not 0 <= position < index.count:
            return None
        seq, further = index.near(position)
        with self._repository.database.read() as connection:
            query = _steps(run_id).where(_EVENT.c.seq >= seq).order_by(_EVENT.c.seq).offset(further).limit(1)
            found: int | None = connection.execute(query).scalar_one_or_none()
        return found

    def seqs(self, run_id: str, *, after: int | None = None, before: int | None = None, limit: int) -> list[int]:
        """Return the events of steps after an event or the last ones before one, oldest first."""
        query = _steps(run_id).limit(limit)
        if before is not None:
            query = query.where(_EVENT.c.seq < before).order_by(_EVENT.c.seq.desc())
        else:
            query = query.where(_EVENT.c.seq > (-1 if after is None else after)).order_by(_EVENT.c.seq)
        with self._repository.database.read() as connection:
            return sorted(connection.execute(query).scalars())

    async def position_of(self, run_id: str, seq: int) -> int:
        """Return the number of steps of a run before an event."""
        index = await self.of(run_id)
        position, start = index.before(seq)
        with self._repository.database.read() as connection:
            between = _steps(run_id).where(_EVENT.c.seq >= start, _EVENT.c.seq < seq).order_by(_EVENT.c.seq)
            return position + len(connection.execute(between).all())


def _steps(run_id: str) -> Select[Any]:
    return select(_EVENT.c.seq).where(_EVENT.c.run_id == run_id, _EVENT.c.kind == "step")
