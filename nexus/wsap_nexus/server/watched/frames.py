"""Current views of worlds, rendered on demand at most five times per second, and shared by all viewers."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wsap_core.protocol.wire import dumps
from wsap_core.untrusted import error_line
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.server.serializers import view_json

PERIOD = 0.2
"""Minimum seconds between two renderings of one world."""

KEPT = 64
"""Maximum number of worlds whose last frame is kept."""


@dataclass(frozen=True)
class Frame:
    """A rendered view."""

    view: dict[str, Any] | None
    etag: str
    remark: str
    """Why there is no view; empty if there is one."""
    drawn: float
    error: bool = False
    """Whether the game raised, so that the remark has its message."""


class Frames:
    """Renders the worlds of a nexus; `render` must not change a world."""

    def __init__(self, nexus: Nexus, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._nexus = nexus
        self._clock = clock
        self._frames: OrderedDict[str, Frame] = OrderedDict()

    async def of_run(self, run_id: str) -> Frame:
        """Return the view of a run's world, at most `PERIOD` seconds old."""
        now = self._clock()
        known = self._frames.get(run_id)
        if known is not None and now - known.drawn < PERIOD:
            return known
        frame = await self._draw(run_id, now)
        self._frames[run_id] = frame
        self._frames.move_to_end(run_id)
        while len(self._frames) > KEPT:
            self._frames.popitem(last=False)
        return frame

    async def _draw(self, run_id: str, now: float) -> Frame:
        port = self._nexus.live.ports.get(run_id)
        if port is None:
            return Frame(None, "asleep", "Nobody is in this world now.", now)
        try:
            view = view_json(await port.render())
        except Exception as error:  # the game's own code
            return Frame(None, "failed", f"The game's view failed: {error_line(error, 200)}", now, error=True)
        if view is None:
            return Frame(None, "none", "This game has no view.", now)
        self._name_seats(run_id, view)
        return Frame(view, hashlib.sha256(dumps(view).encode()).hexdigest()[:24], "", now)

    def _name_seats(self, run_id: str, view: dict[str, Any]) -> None:
        """Add to the seats of a table which agents sit there: their ids, and the names that they are `called`."""
        seats = [seat for block in view["blocks"] if block["kind"] == "seats" for seat in block["seats"]]
        if not seats:
            return
        stays = [stay for stay in self._nexus.live.sessions.values() if stay.session.run_id == run_id]
        agents = {stay.seat_name: stay.session.agent_id for stay in stays}
        with self._nexus.nexus_store.look() as tx:
            names = tx.names_of(list(agents.values()))
        for seat in seats:
            agent = agents.get(seat["who"], seat["who"])
            seat |= {"who": agent, "called": names.get(agent, "")}
