"""A stream of the nexus' events, and of agents' steps in worlds at most five times a second."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.responses import StreamingResponse

from wsap_core.protocol.wire import dumps
from wsap_nexus.dashboard.guard import HEADERS, Private
from wsap_nexus.dashboard.serializers import events_json, session_json
from wsap_nexus.http.callers import Reader
from wsap_nexus.http.streams import HeldStream, Streams
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.runs.observers import StepTaken
from wsap_nexus.store.events import NexusEvent

router = APIRouter()

PERIOD = 0.2
"""Seconds between two messages about steps."""

MOST_BEHIND = 1000
"""Most missed events sent to a page; beyond that it is told to reload."""

MOST_AGENTS = 200
"""Most agents in one message about steps."""

QUIET = 15.0
"""Seconds between two heartbeats."""


class Board:
    """Passes steps and events of a nexus on to the open streams."""

    def __init__(self, nexus: Nexus, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._listeners: list[Listener] = []
        self._times: deque[float] = deque(maxlen=20_000)
        self.decisions = 0
        """Steps in worlds since the start."""
        self.closed = False
        """Whether the streams have to end."""
        nexus.on_step(self._stepped)
        nexus.nexus_store.listen(self._noted)

    def close(self) -> None:
        """End all streams."""
        self.closed = True
        for listener in self._listeners:
            listener.noted()

    def rate(self) -> float:
        """Return the steps a second in worlds, over the last five seconds."""
        since = self._clock() - 5
        while self._times and self._times[0] < since:
            self._times.popleft()
        return len(self._times) / 5

    def listen(self) -> Listener:
        """Return a new listener, which the caller closes."""
        listener = Listener(asyncio.get_running_loop(), self._listeners.remove)
        self._listeners.append(listener)
        return listener

    def _stepped(self, stay: LiveSession, step: StepTaken) -> None:
        self._times.append(self._clock())
        self.decisions += 1
        for listener in self._listeners:
            listener.stepped(stay.session.agent_id)

    def _noted(self, event: NexusEvent) -> None:
        for listener in self._listeners:
            listener.noted()


class Listener:
    """The agents of a stream that took steps, and a wakeup."""

    def __init__(self, loop: asyncio.AbstractEventLoop, remove: Callable[[Listener], None]) -> None:
        self._loop = loop
        self._remove = remove
        self._bell = asyncio.Event()
        self._agents: dict[str, None] = {}

    def stepped(self, agent_id: str) -> None:
        """Record a step of an agent."""
        self._agents[agent_id] = None
        self._bell.set()

    def noted(self) -> None:
        """Wake the stream for a new event; any thread may call this."""
        self._loop.call_soon_threadsafe(self._bell.set)

    async def heard(self, seconds: float) -> list[str] | None:
        """Wait for a step or an event; return the agents that took steps, or None after `seconds` without any."""
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return None
        self._bell.clear()
        agents, self._agents = list(self._agents), {}
        return agents

    def close(self) -> None:
        """Remove the listener."""
        self._remove(self)


@router.get("/dashboard/live")
async def live(
    nexus: Hub,
    request: Request,
    who: Reader,
    private: Private,
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
    after: Annotated[int | None, Query(ge=0)] = None,
) -> Response:
    """Stream steps and events, after a given event; to spectators, who acted is not told."""
    streams: Streams = request.app.state.streams
    start = last_event_id if last_event_id is not None else after
    headers = {**HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    told = _stream(nexus, request, start, private)
    return HeldStream(StreamingResponse(told, media_type="text/event-stream", headers=headers), streams, who)


async def _stream(nexus: Nexus, request: Request, after: int | None, private: bool) -> AsyncIterator[str]:
    board: Board = request.app.state.board
    listener = board.listen()
    try:
        with nexus.nexus_store.look() as tx:
            newest = tx.last_seq()
        seq = newest if after is None else after
        # The number is from another database, or too old to send all that the page missed.
        reset = seq > newest or newest - seq > MOST_BEHIND
        if reset:
            seq = newest
        hello = {"seq": seq, "reset": reset, "rate": board.rate(), "decisions": board.decisions}
        yield f"id: {seq}\nevent: hello\ndata: {dumps(hello)}\n\n"
        while True:
            fresh, seq = _events(nexus, seq, private)
            for event in fresh:
                yield f"id: {event['seq']}\nevent: nexus\ndata: {dumps(event)}\n\n"
            agents = await listener.heard(QUIET)
            if board.closed:
                return
            if agents is None:
                yield f"event: pulse\ndata: {dumps(_pulse(nexus, board, [], private))}\n\n"
                continue
            if agents:
                yield f"event: pulse\ndata: {dumps(_pulse(nexus, board, agents, private))}\n\n"
            await asyncio.sleep(PERIOD)
    finally:
        listener.close()


def _events(nexus: Nexus, after: int, private: bool) -> tuple[list[dict[str, Any]], int]:
    with nexus.nexus_store.look() as tx:
        events = tx.events(after=after, limit=MOST_BEHIND)
        names = tx.names(events)
    return events_json(events, names, private=private), events[-1].seq if events else after


def _pulse(nexus: Nexus, board: Board, agents: list[str], private: bool) -> dict[str, Any]:
    stays = [nexus.live.sessions[agent] for agent in agents[-MOST_AGENTS:] if agent in nexus.live.sessions]
    return {
        "agents": [session_json(stay, private=True) for stay in stays] if private else [],
        "worlds": sorted({stay.session.world_id for stay in stays}),
        "rate": round(board.rate(), 1),
        "decisions": board.decisions,
        "in_worlds": len(nexus.live.sessions),
        "full": nexus.live.full,
    }
