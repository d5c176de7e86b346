"""What happens, as a stream: the nexus' events one by one, and what agents do in worlds at most five times a second."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request
from starlette.responses import StreamingResponse

from wsap_core.protocol.wire import dumps
from wsap_nexus.dashboard.guard import HEADERS, reader
from wsap_nexus.dashboard.serializers import event_json, session_json
from wsap_nexus.http.refusals import TooManyStreamsError
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.runs.loop import StepTaken
from wsap_nexus.store.events import NexusEvent

router = APIRouter()

PERIOD = 0.2
"""Seconds between two messages of what agents do."""

MOST_BEHIND = 1000
"""Events that a page that was away is told one by one; beyond that it is told to look anew."""

MOST_AGENTS = 200
"""Agents in one message of what they do."""

MOST_LISTENERS = 100
"""Pages that are told what happens at once."""

QUIET = 15.0
"""Seconds after which something is sent, so that both ends notice a lost connection."""


class Board:
    """Knows who has done something since, for everybody who listens.

    Args:
        nexus: what is listened to.
        clock: seconds, going forward.
    """

    def __init__(self, nexus: Nexus, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._listeners: list[Listener] = []
        self._times: deque[float] = deque(maxlen=20_000)
        self.decisions = 0
        """Decisions in worlds since the nexus was started."""
        self.closed = False
        """Whether whoever listens is to go."""
        nexus.on_step(self._stepped)
        nexus.ledger.listen(self._noted)

    def close(self) -> None:
        """Send everybody away who listens."""
        self.closed = True
        for listener in self._listeners:
            listener.noted()

    def rate(self) -> float:
        """Return the decisions a second in worlds, over the last five seconds."""
        since = self._clock() - 5
        while self._times and self._times[0] < since:
            self._times.popleft()
        return len(self._times) / 5

    @property
    def listeners(self) -> int:
        """How many listen now."""
        return len(self._listeners)

    def listen(self) -> Listener:
        """Return a new listener; close it when it is done."""
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
    """One page that listens: a set of agents and a bell, whatever happens meanwhile."""

    def __init__(self, loop: asyncio.AbstractEventLoop, remove: Callable[[Listener], None]) -> None:
        self._loop = loop
        self._remove = remove
        self._bell = asyncio.Event()
        self._agents: dict[str, None] = {}

    def stepped(self, agent_id: str) -> None:
        """Take down that an agent has done something."""
        self._agents[agent_id] = None
        self._bell.set()

    def noted(self) -> None:
        """Ring because the nexus' log has grown; it may be told so by another thread."""
        self._loop.call_soon_threadsafe(self._bell.set)

    async def heard(self, seconds: float) -> list[str] | None:
        """Wait until something has happened; return who did something, or None when nothing happened for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return None
        self._bell.clear()
        agents, self._agents = list(self._agents), {}
        return agents

    def close(self) -> None:
        """Listen no longer."""
        self._remove(self)


@router.get("/dashboard/live", dependencies=[Depends(reader)])
async def live(
    nexus: Hub,
    request: Request,
    last_event_id: Annotated[int | None, Header(ge=0)] = None,
    after: Annotated[int | None, Query(ge=0)] = None,
) -> StreamingResponse:
    """Stream what happens, from after an event on."""
    board: Board = request.app.state.board
    if board.listeners >= MOST_LISTENERS:
        raise TooManyStreamsError(f"{MOST_LISTENERS} pages are open already; close some of them.")
    start = last_event_id if last_event_id is not None else after
    headers = {**HEADERS, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_stream(nexus, request, start), media_type="text/event-stream", headers=headers)


async def _stream(nexus: Nexus, request: Request, after: int | None) -> AsyncIterator[str]:
    board: Board = request.app.state.board
    listener = board.listen()
    try:
        with nexus.ledger.look() as book:
            newest = book.last_seq()
        seq = newest if after is None else after
        # A number from another database, or from long ago, says nothing about what the page lacks.
        reset = seq > newest or newest - seq > MOST_BEHIND
        if reset:
            seq = newest
        hello = {"seq": seq, "reset": reset, "rate": board.rate(), "decisions": board.decisions}
        yield f"id: {seq}\nevent: hello\ndata: {dumps(hello)}\n\n"
        while True:
            for event in _events(nexus, seq):
                seq = event["seq"]
                yield f"id: {seq}\nevent: nexus\ndata: {dumps(event)}\n\n"
            agents = await listener.heard(QUIET)
            if board.closed:
                return
            if agents is None:
                yield f"event: pulse\ndata: {dumps(_pulse(nexus, board, []))}\n\n"
                continue
            if agents:
                yield f"event: pulse\ndata: {dumps(_pulse(nexus, board, agents))}\n\n"
            await asyncio.sleep(PERIOD)
    finally:
        listener.close()


def _events(nexus: Nexus, after: int) -> list[dict[str, Any]]:
    with nexus.ledger.look() as book:
        events = book.events(after=after, limit=MOST_BEHIND)
        names = book.names(events)
    return [event_json(event, names) for event in events]


def _pulse(nexus: Nexus, board: Board, agents: list[str]) -> dict[str, Any]:
    # Any: JSON-ready data for the page.
    stays = [nexus.live.sessions[agent] for agent in agents[-MOST_AGENTS:] if agent in nexus.live.sessions]
    return {
        "agents": [session_json(stay) for stay in stays],
        "rate": round(board.rate(), 1),
        "decisions": board.decisions,
        "in_worlds": len(nexus.live.sessions),
    }
