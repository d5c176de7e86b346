"""Whether games have room: those that can be played in only so many worlds at once are *busy* where all are taken.

A world is taken from when agents are about to sit down in it until it is let go of. Nobody comes into a world that is
being played, so seats that are free there are no room; agents on their way to a game of several seats share a world.
Most games begin as many worlds as are wanted, and are never busy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import select

from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import GameUnavailableError
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.lobby import SitDown
from wsap_nexus.hub.transit import Way, take_back
from wsap_nexus.store.tables import METADATA

_SESSION = METADATA.tables["session"]


class Room:
    """How many worlds of each game are taken.

    Args:
        context: of the nexus.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context
        self._sitting: dict[str, list[frozenset[str]]] = {}
        """By game, the ways of those who are sitting down now, a set for each world."""
        self._closing: dict[str, list[str]] = {}
        """By game, the runs of worlds that nobody is in any more, and that are not let go of yet."""

    def busy(self, spec: AdapterSpec) -> bool:
        """Return whether one more agent would find no world."""
        if spec.max_worlds is None:
            return False
        going = set().union(*self._sitting.get(spec.name, ()))
        with self._context.ledger.look() as book:
            prepared = [row for row in book.transfers("prepared") if row.kind == "enter"]
        waiting = sum(row.data.get("game") == spec.name and row.id not in going for row in prepared)
        wanted = math.ceil((waiting + 1) / spec.seats_with({})[1])
        return bool(self._taken(spec) + wanted > spec.max_worlds)

    def check(self, spec: AdapterSpec) -> None:
        """Refuse where one more agent would find no world.

        Raises:
            GameUnavailableError: all are taken.
        """
        if self.busy(spec):
            raise _full(spec)

    async def sit_down(self, ways: Sequence[Way], spec: AdapterSpec, play: SitDown) -> str | None:
        """Bring agents into one world by `play`, if there is one for them, and return the run; None if there is not."""
        if spec.max_worlds is None:
            return await play(ways, spec)
        if self._taken(spec) >= spec.max_worlds:
            # Those who are late for the world that others sat down in need one of their own.
            error = _full(spec)
            with self._context.ledger.change() as book:
                for way in ways:
                    take_back(book, way.transfer_id, way.agent_id, str(error))
            for way in ways:
                self._context.live.arriving.tell(way.agent_id, error)
            return None
        sitting = self._sitting.setdefault(spec.name, [])
        mine = frozenset(way.transfer_id for way in ways)
        sitting.append(mine)
        try:
            return await play(ways, spec)
        finally:
            sitting.remove(mine)

    @contextmanager
    def closing(self, spec: AdapterSpec, run_id: str) -> Iterator[None]:
        """Count a world as taken while it is let go of; then whoever waits for a world looks again."""
        if spec.max_worlds is None:
            yield
            return
        closing = self._closing.setdefault(spec.name, [])
        closing.append(run_id)
        try:
            yield
        finally:
            closing.remove(run_id)
            self._context.bell.ring_all()

    def _taken(self, spec: AdapterSpec) -> int:
        query = select(_SESSION.c.run_id).where(_SESSION.c.game == spec.name, _SESSION.c.closed.is_(None)).distinct()
        with self._context.ledger.look() as book:
            runs = set(book.connection.execute(query).scalars())
        return len(runs.union(self._closing.get(spec.name, ()))) + len(self._sitting.get(spec.name, ()))


def _full(spec: AdapterSpec) -> GameUnavailableError:
    worlds = "its only world is" if spec.max_worlds == 1 else f"all of its {spec.max_worlds} worlds are"
    return GameUnavailableError(f"{spec.display_title} is busy: {worlds} taken. Wait until somebody leaves.")
