"""What goes on in worlds now: who has made decisions, and how many there are a second."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from itertools import islice

from wsap_nexus.http.access.auth import Caller, sees
from wsap_nexus.http.streams import Bell
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.server.serializers import session_json
from wsap_nexus.store.events.passing import Pulse

PERIOD = 0.2
"""Minimum seconds between two events about decisions in one stream."""

QUIET = 10.0
"""Seconds without events after which a stream is told the numbers again."""

MOST_AGENTS = 200
"""Maximum number of agents in one event about decisions."""

WINDOW = 5.0
"""Seconds over which the rate is taken."""


class Activity:
    """Counts the decisions in worlds, and wakes those who watch at decisions, events and what models write."""

    def __init__(self, nexus: Nexus, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._nexus = nexus
        self._clock = clock
        self._steps: deque[tuple[float, str]] = deque(maxlen=20_000)
        self.decisions = 0
        """Decisions in worlds since the start."""
        self.bell = Bell()
        nexus.on_step(self._stepped)
        nexus.nexus_store.listen(lambda event: self.bell.ring())
        nexus.thoughts.listen(self.bell.ring)

    def rate(self) -> float:
        """Return the decisions per second in worlds, over the last `WINDOW` seconds."""
        since = self._clock() - WINDOW
        while self._steps and self._steps[0][0] < since:
            self._steps.popleft()
        return round(len(self._steps) / WINDOW, 1)

    def pulse(self, since: int, who: Caller | None) -> Pulse:
        """Return what has gone on since a number of decisions, with the sessions that a caller may see."""
        live = self._nexus.live
        acted = dict.fromkeys(agent for _, agent in islice(reversed(self._steps), self.decisions - since))
        stays = [live.sessions[agent] for agent in list(acted)[:MOST_AGENTS] if agent in live.sessions]
        return Pulse(
            time=self._nexus.nexus_store.wall_clock(),
            agents=tuple(session_json(stay, private=True) for stay in stays if sees(who, stay.session.agent_id)),
            worlds=tuple(sorted({stay.session.world_id for stay in stays})),
            rate=self.rate(),
            decisions=self.decisions,
            in_worlds=len(live.sessions),
            held=live.held,
        )

    def _stepped(self, stay: LiveSession, step: StepTaken) -> None:
        self._steps.append((self._clock(), stay.session.agent_id))
        self.decisions += 1
        self.bell.ring()
