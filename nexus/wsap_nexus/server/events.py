"""Routes of the nexus itself: about, health, and the event stream.

All streams share the newest events in memory and read older ones from the log. A stream stores only the number of its
last event, so a slow client needs no more memory than a fast one.
"""

from __future__ import annotations

import bisect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from wsap_core.errors import StorageError
from wsap_core.protocol.wire import dumps
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.http.auth import Caller, sees_event
from wsap_nexus.http.callers import Reader
from wsap_nexus.http.refusals import EventsAheadError
from wsap_nexus.http.replies import answer
from wsap_nexus.http.streams import Bell, EventStream, Streams
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.hub.thinking import Thoughts
from wsap_nexus.hub.waits import waits
from wsap_nexus.server import responses
from wsap_nexus.store.errors import is_passing
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.nexus_store import NexusStore

router = APIRouter(tags=["nexus"])
_SEQ = 2**63 - 1
_LOG = logging.getLogger("wsap_nexus.server")
THINKING = "thinking"
"""The kind of what models are asked and are writing now, which is not in the log."""

KEPT = 2048
"""Events in memory."""
PAGE = 500
"""Events read from the log at once."""


@dataclass(frozen=True)
class Line:
    """A serialized event."""

    event: NexusEvent
    text: str
    """In the format of server-sent events, with the empty line at the end."""
    public: str
    """The public part in the same format; empty if there is none."""

    def seen_by(self, who: Caller | None) -> str:
        """Return the text for a caller; empty if it may not see the event."""
        return self.text if sees_event(who, self.event) else self.public

    @property
    def seq(self) -> int:
        """The number of the event."""
        return self.event.seq


class Feed:
    """The events of a nexus."""

    def __init__(self, nexus_store: NexusStore, thoughts: Thoughts) -> None:
        self._nexus_store = nexus_store
        self.bell = Bell()
        """Rings at each event, and while somebody watches at what models are asked and write."""
        thoughts.listen(self.bell.ring)
        self._lines: deque[Line] = deque(maxlen=KEPT)
        nexus_store.listen(self._take)

    def last(self) -> int:
        """Return the number of the newest event."""
        if self._lines:
            return self._lines[-1].seq
        with self._nexus_store.look() as tx:
            return tx.last_seq()

    def after(self, seq: int) -> tuple[list[Line], int]:
        """Return up to `PAGE` events after a number, oldest first, and the number to continue from."""
        lines = self._lines
        if lines and lines[0].seq <= seq + 1:
            at = bisect.bisect_right(lines, seq, key=lambda line: line.seq)
            found = [lines[i] for i in range(at, min(len(lines), at + PAGE))]
        else:
            with self._nexus_store.look() as tx:
                found = [line_of(event) for event in tx.events(after=seq, limit=PAGE)]
        return found, found[-1].seq if found else seq

    def _take(self, event: NexusEvent) -> None:
        # Transactions can commit in a different order than that of their events' numbers.
        if not self._lines or event.seq > self._lines[-1].seq:
            self._lines.append(line_of(event))
        else:
            self._lines.clear()
        self.bell.ring()


def line_of(event: NexusEvent) -> Line:
    """Return a serialized event."""
    public = event.public()
    return Line(event, _text(event), "" if public is None else _text(public))


def _text(event: NexusEvent) -> str:
    number = f"id: {event.seq}\n" if event.seq else ""
    return f"{number}event: {event.kind}\ndata: {dumps(event.to_json())}\n\n"


# --- routes ---------------------------------------------------------------------------------------


@router.get("", responses={200: {"model": responses.About}})
async def about(nexus: Hub, request: Request) -> Response:
    """Facts about this nexus."""
    feed: Feed = request.app.state.feed
    return answer(
        {
            "name": "WSAP nexus",
            "protocol_version": PROTOCOL_VERSION,
            "agents": _count(nexus),
            "in_worlds": len(nexus.live.sessions),
            "last_event": feed.last(),
        }
    )


@router.get("/health", responses={200: {"model": responses.Health}, 503: {"model": responses.Health}})
async def health(nexus: Hub, request: Request, who: Reader) -> Response:
    """Health: 200 if agents can act; otherwise 503 with the reason, and with `retry` if that can pass by itself.

    They can't if the database can't be read or written, if a fault of the machine holds them, if another nexus leads
    the database, or if the nexus failed all that were to act. Agents that a person paused are well. For the admin it
    tells who waits for whom, too.
    """
    streams: Streams = request.app.state.streams
    agents, storage, (reason, passing) = 0, None, nexus.cannot_act()
    owner = who is not None and who.agent_id is None
    try:
        agents, storage = _count(nexus), nexus.storage.report()
    except StorageError as error:
        if not reason:
            _LOG.exception("The database can't be read.")
            reason, passing = "The database can't be read; the log of the nexus says why.", is_passing(error)
    body = {
        "status": "degraded" if reason else "ok",
        "reason": reason or None,
        "retry": passing,
        "database": storage is not None,
        "agents": agents,
        "in_worlds": len(nexus.live.sessions),
        "streams": streams.count,
        "undeleted": nexus.live.undeleted or None,
        "waits": [{"text": wait.text, **asdict(wait)} for wait in waits(nexus.live)] if owner else [],
        "storage": None if storage is None else storage.to_json(),
    }
    return answer(body, 503 if reason else 200)


def _count(nexus: Nexus) -> int:
    with nexus.nexus_store.look() as tx:
        return tx.count_agents()


@router.get(
    "/events",
    response_class=Response,
    responses={
        200: {
            "description": "Server-sent events: `id` is the number to resume from, `event` the kind, `data` the event.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
)
async def events(
    nexus: Hub,
    request: Request,
    who: Reader,
    last_event_id: Annotated[str | None, Header(max_length=40)] = None,
    after: Annotated[int | None, Query(ge=0, le=_SEQ)] = None,
    agent: Annotated[str | None, Query(max_length=64)] = None,
    kind: Annotated[list[Annotated[str, Query(max_length=100)]] | None, Query(max_length=50)] = None,
    until: Annotated[int | None, Query(ge=0, le=_SEQ, description="End after this event.")] = None,
) -> Response:
    """Stream events from now on, or after a given one (`Last-Event-ID` or `after`).

    A number beyond the newest event is refused (`EVENTS_AHEAD`): the database was replaced since. Without the token of
    an event's agent, its body has only public fields, and events about what agents say, think and earn are omitted.

    What models are asked and are writing now is told only to those who name its kind, `thinking`, at most five times a
    second. These events are not in the log and have no number: a stream that is resumed begins with the current state.
    """
    state = request.app.state
    feed: Feed = state.feed
    start = after
    if start is None and last_event_id is not None and last_event_id.isdigit() and len(last_event_id) < 19:
        start = int(last_event_id)
    if start is not None and start > feed.last():
        _refuse_ahead(nexus.nexus_store, start)
    wanted = frozenset(kind or ())

    def told(line: Line) -> str:
        about = line.event
        passes = (agent is None or about.agent_id == agent) and (not wanted or about.kind in wanted)
        return line.seen_by(who) if passes else ""

    watcher = nexus.thoughts.watch() if THINKING in wanted and who is not None else None

    def thinking() -> str:
        events = () if watcher is None else watcher.news()
        seen = (event for event in events if (agent is None or event.agent_id == agent) and sees_event(who, event))
        return "".join(map(_text, seen))

    later = _told_after(feed, feed.last() if start is None else start, told, until, thinking)
    return EventStream(later, state.streams, who, watcher)


def _refuse_ahead(nexus_store: NexusStore, start: int) -> None:
    with nexus_store.look() as tx:
        last = tx.last_seq()
    if start > last:  # what is committed but not heard yet is no reason
        raise EventsAheadError(
            f"There is no event {start}; the newest is {last}. Has an older copy of the database been restored? Read "
            f"again what you need to know, and go on with after={last}"
        )


def _told_after(
    feed: Feed, after: int, told: Callable[[Line], str], until: int | None, thinking: Callable[[], str]
) -> Callable[[], Awaitable[str | None]]:
    async def later() -> str | None:
        nonlocal after
        while until is None or after < until:
            fresh = feed.bell.fresh()
            lines, after = feed.after(after)
            text = "".join(map(told, lines)) + thinking()
            if text:
                return text
            if not lines:
                await fresh.wait()
        return None

    return later
