"""A stream of the events of a nexus, and at most five times per second of agents' steps in worlds."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from wsap_core.protocol.wire import dumps
from wsap_nexus.dashboard.guard import HEADERS, Private
from wsap_nexus.dashboard.serializers import events_json, session_json
from wsap_nexus.http.callers import Reader
from wsap_nexus.http.streams import Bell, EventStream
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.hub.thinking import Watcher
from wsap_nexus.runs.observers import StepTaken

router = APIRouter()

PERIOD = 0.2
"""Minimum seconds between two messages about steps."""

MOST_BEHIND = 1000
"""Maximum number of missed events that are sent to a page; if there are more, it reloads."""

MOST_AGENTS = 200
"""Maximum number of agents in one message about steps."""

QUIET = 10.0
"""Seconds without events or steps after which the numbers are sent."""


class Board:
    """Counts the steps in worlds, and wakes the open streams at steps and events of the nexus."""

    def __init__(self, nexus: Nexus, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._steps: deque[tuple[float, str]] = deque(maxlen=20_000)
        self.decisions = 0
        """Steps in worlds since the start."""
        self.bell = Bell()
        """Rings at each step and each event, and at what models are asked and write."""
        nexus.on_step(self._stepped)
        nexus.nexus_store.listen(lambda event: self.bell.ring())
        nexus.thoughts.listen(self.bell.ring)

    def rate(self) -> float:
        """Return the steps per second in worlds, over the last five seconds."""
        since = self._clock() - 5
        while self._steps and self._steps[0][0] < since:
            self._steps.popleft()
        return len(self._steps) / 5

    def acted(self, since: int) -> list[str]:
        """Return the agents that have taken steps since a number of decisions, latest first."""
        return list(dict.fromkeys(agent for _, agent in islice(reversed(self._steps), self.decisions - since)))

    def _stepped(self, stay: LiveSession, step: StepTaken) -> None:
        self._steps.append((self._clock(), stay.session.agent_id))
        self.decisions += 1
        self.bell.ring()


@router.get("/dashboard/live")
async def live(
    nexus: Hub,
    request: Request,
    who: Reader,
    private: Private,
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
    after: Annotated[int | None, Query(ge=0)] = None,
) -> Response:
    """Stream steps, events, after a given one, and what models are asked and write; for spectators, without the agents
    of steps and without models."""
    start = last_event_id if last_event_id is not None else after
    watcher = nexus.thoughts.watch() if private else None
    later = _told(nexus, request.app.state.board, start, watcher)
    stream = EventStream(later, request.app.state.streams, who, watcher)
    stream.headers.update(HEADERS)
    return stream


def _told(nexus: Nexus, board: Board, after: int | None, watcher: Watcher | None) -> Callable[[], Awaitable[str]]:
    seq, counted, due = -1, board.decisions, 0.0
    private = watcher is not None

    async def later() -> str:
        nonlocal seq, counted, due
        if seq < 0:
            seq, hello = _hello(nexus, board, after)
            return hello
        await asyncio.sleep(due - time.monotonic())
        try:
            async with asyncio.timeout(QUIET):
                while True:
                    fresh = board.bell.fresh()
                    text, seq = _events(nexus, seq, private)
                    agents = board.acted(counted)
                    thinking = [] if watcher is None else [event.to_json() for event in watcher.news()]
                    if text or agents or thinking:
                        break
                    await fresh.wait()
        except TimeoutError:
            text, agents, thinking = "", [], []
        if thinking:
            text += f"event: thinking\ndata: {dumps(thinking)}\n\n"
        if agents or not text:
            text += f"event: pulse\ndata: {dumps(_pulse(nexus, board, agents, private))}\n\n"
        counted, due = board.decisions, time.monotonic() + PERIOD
        return text

    return later


def _hello(nexus: Nexus, board: Board, after: int | None) -> tuple[int, str]:
    """Return the number of the last event that a page has or does not need, and the first message."""
    with nexus.nexus_store.look() as tx:
        newest = tx.last_seq()
    seq = newest if after is None else after
    # The number is from another database, or the page has missed too many events.
    reset = seq > newest or newest - seq > MOST_BEHIND
    if reset:
        seq = newest
    hello = {"seq": seq, "reset": reset, "rate": board.rate(), "decisions": board.decisions}
    return seq, f"id: {seq}\nevent: hello\ndata: {dumps(hello)}\n\n"


def _events(nexus: Nexus, after: int, private: bool) -> tuple[str, int]:
    """Return the messages of the events after a number, and the number of the last one."""
    with nexus.nexus_store.look() as tx:
        events = tx.events(after=after, limit=MOST_BEHIND)
        names = tx.names(events)
    told = events_json(events, names, private=private)
    text = "".join(f"id: {event['seq']}\nevent: nexus\ndata: {dumps(event)}\n\n" for event in told)
    return text, events[-1].seq if events else after


def _pulse(nexus: Nexus, board: Board, agents: list[str], private: bool) -> dict[str, Any]:
    stays = [nexus.live.sessions[agent] for agent in agents[:MOST_AGENTS] if agent in nexus.live.sessions]
    return {
        "agents": [session_json(stay, private=True) for stay in stays] if private else [],
        "worlds": sorted({stay.session.world_id for stay in stays}),
        "rate": round(board.rate(), 1),
        "decisions": board.decisions,
        "in_worlds": len(nexus.live.sessions),
        "held": nexus.live.held,
    }
