"""Routes of the nexus itself: about, health, and the event stream.

All streams share the newest events in memory and read older ones from the log. A stream stores only the number of its
last event, so a slow client needs no more memory than a fast one.
"""

from __future__ import annotations

import asyncio
import bisect
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated, Literal

from fastapi import APIRouter, Header, Query, Request, Response

from wsap_core.errors import StorageError
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import dumps
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.http.access.auth import Caller, is_owner, sees, sees_event
from wsap_nexus.http.access.callers import Reader
from wsap_nexus.http.refusals import EventsAheadError
from wsap_nexus.http.replies import answer
from wsap_nexus.http.streams import Bell, EventStream, Streams
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.hub.waiting.thinking import Thoughts, Watcher
from wsap_nexus.hub.waiting.waits import waits
from wsap_nexus.server.bodies import responses, watched
from wsap_nexus.server.serializers import event_json, json_response
from wsap_nexus.server.watched.activity import PERIOD, QUIET, Activity
from wsap_nexus.store.errors import is_passing
from wsap_nexus.store.events import PUBLIC_KINDS, NexusEvent
from wsap_nexus.store.nexus_store import NexusStore, Transaction

router = APIRouter(tags=["nexus"])
_SEQ = 2**63 - 1
_LOG = logging.getLogger("wsap_nexus.server")
NotLogged = Literal["pulse", "thinking"]
"""The kinds of events that are told as they happen and are not in the log."""
LONGEST_BODY = 100_000
"""Maximum characters of an event's body in a page of the log; a longer one is left out."""

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
    return Line(event, text_of(event, event.to_json()), "" if public is None else text_of(public, public.to_json()))


def text_of(event: NexusEvent, data: Mapping[str, JsonValue]) -> str:
    """Return an event in the format of server-sent events."""
    number = f"id: {event.seq}\n" if event.seq else ""
    return f"{number}event: {event.kind}\ndata: {dumps(data)}\n\n"


# --- routes ---------------------------------------------------------------------------------------


@router.get("", responses={200: {"model": responses.About}})
async def about(nexus: Hub, request: Request, who: Reader) -> Response:
    """Facts about this nexus."""
    feed: Feed = request.app.state.feed
    return answer(
        {
            "name": "WSAP nexus",
            "protocol_version": PROTOCOL_VERSION,
            "agents": _count(nexus),
            "in_worlds": len(nexus.live.sessions),
            "last_event": feed.last(),
            "caller": None if who is None else who.agent_id or "owner",
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
        "waits": [{"text": wait.text, **asdict(wait)} for wait in waits(nexus.live)] if is_owner(who) else [],
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
    also: Annotated[list[NotLogged] | None, Query(max_length=10, description="Kinds that are not in the log.")] = None,
    sentences: Annotated[bool, Query(description="Add to each event its sentence and its agent's name.")] = False,
    until: Annotated[int | None, Query(ge=0, le=_SEQ, description="End after this event.")] = None,
) -> Response:
    """Stream events from now on, or after a given one (`Last-Event-ID` or `after`).

    A number beyond the newest event is refused (`EVENTS_AHEAD`): the database was replaced since. Without the token of
    an event's agent, its body has only public fields, and events about what agents say, think and earn are omitted.

    Two kinds are told as they happen, at most five times a second, to those who name them in `kind` or `also`:
    `thinking`, what models are asked and are writing now, and `pulse`, who has made decisions in worlds. They are not
    in the log and have no number: a stream that is resumed begins with the current state.
    """
    state = request.app.state
    feed: Feed = state.feed
    start = after
    if start is None and last_event_id is not None and last_event_id.isdecimal() and len(last_event_id) < 19:
        start = int(last_event_id)
    if start is not None and start > feed.last():
        _refuse_ahead(nexus.nexus_store, start)
    wanted, named = frozenset(kind or ()), {*(kind or ()), *(also or ())}
    watcher = nexus.thoughts.watch() if "thinking" in named and who is not None else None
    telling = Telling(
        feed,
        feed.last() if start is None else start,
        _Asked(who, agent, wanted, until),
        watcher,
        state.activity if "pulse" in named else None,
        nexus.nexus_store if sentences else None,
    )
    return EventStream(telling.later, state.streams, who, watcher)


def _refuse_ahead(nexus_store: NexusStore, start: int) -> None:
    with nexus_store.look() as tx:
        last = tx.last_seq()
    if start > last:  # what is committed but not heard yet is no reason
        raise EventsAheadError(
            f"There is no event {start}; the newest is {last}. Has an older copy of the database been restored? Read "
            f"again what you need to know, and go on with after={last}"
        )


@dataclass(frozen=True)
class _Asked:
    """What a client wants to be told."""

    who: Caller | None
    agent: str | None
    kinds: frozenset[str]
    """Empty for all in the log."""
    until: int | None

    def wants(self, event: NexusEvent) -> bool:
        return (self.agent is None or event.agent_id == self.agent) and (not self.kinds or event.kind in self.kinds)


class Telling:
    """What one stream is told.

    Args:
        after: the number of the last event that the client has.
        watcher: what models are asked and write, if the client is told of it.
        activity: the decisions in worlds, if the client is told of them.
        naming: the store with the agents' names, if events come with their sentences.
    """

    def __init__(
        self,
        feed: Feed,
        after: int,
        asked: _Asked,
        watcher: Watcher | None,
        activity: Activity | None,
        naming: NexusStore | None,
    ) -> None:
        self._feed, self._after, self._asked = feed, after, asked
        self._watcher, self._activity, self._naming = watcher, activity, naming
        self._bell = feed.bell if activity is None else activity.bell
        self._counted, self._due, self._quiet = 0 if activity is None else activity.decisions, 0.0, 0.0

    async def later(self) -> str | None:
        """Wait for what comes next and return its text; None at the end. It can be cancelled and called again."""
        clock = asyncio.get_running_loop().time
        while self._asked.until is None or self._after < self._asked.until:
            if self._activity is not None:
                await asyncio.sleep(self._due - clock())
            fresh = self._bell.fresh()
            lines, self._after = self._feed.after(self._after)
            text = self._logged(lines) + self._thoughts() + self._pulse(clock())
            if text:
                return text
            if not lines:
                await self._ring(fresh, clock())
        return None

    async def _ring(self, fresh: asyncio.Event, now: float) -> None:
        if self._activity is None:
            await fresh.wait()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(self._quiet - now):
                await fresh.wait()

    def _logged(self, lines: list[Line]) -> str:
        wanted = [line for line in lines if self._asked.wants(line.event)]
        if self._naming is None or not wanted:
            return "".join(line.seen_by(self._asked.who) for line in wanted)
        events = [line.event if sees_event(self._asked.who, line.event) else line.event.public() for line in wanted]
        seen = [event for event in events if event is not None]
        with self._naming.look() as tx:
            names = tx.names(seen)
        return "".join(text_of(event, event_json(event, names)) for event in seen)

    def _thoughts(self) -> str:
        events = () if self._watcher is None else self._watcher.news()
        agent = self._asked.agent
        seen = (e for e in events if (agent is None or e.agent_id == agent) and sees_event(self._asked.who, e))
        return "".join(text_of(event, event.to_json()) for event in seen)

    def _pulse(self, now: float) -> str:
        activity = self._activity
        if activity is None or (activity.decisions == self._counted and now < self._quiet):
            return ""
        event = activity.pulse(self._counted, self._asked.who)
        self._counted, self._due, self._quiet = activity.decisions, now + PERIOD, now + QUIET
        return text_of(event, event.to_json())


# --- the log ----------------------------------------------------------------------------------------


@router.get("/log", responses={200: {"model": watched.LogPage}})
async def log(
    nexus: Hub,
    who: Reader,
    before: Annotated[int | None, Query(ge=0, le=_SEQ)] = None,
    after: Annotated[int | None, Query(ge=0, le=_SEQ)] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    agent: Annotated[str | None, Query(max_length=64)] = None,
    kind: Annotated[list[Annotated[str, Query(max_length=100)]] | None, Query(max_length=50)] = None,
) -> Response:
    """A page of past events with their sentences, newest first: the last before one, or the first after one.

    Without the owner's token, or an agent's for its own (`agent`), events have only their public parts; those without
    any are omitted.
    """
    kinds = frozenset(kind or ())
    if not (is_owner(who) or (agent is not None and sees(who, agent))):
        kinds = kinds & PUBLIC_KINDS if kinds else PUBLIC_KINDS
        if not kinds:
            return json_response({"events": []})
    with nexus.nexus_store.look() as tx:
        found = tx.event_page(before=before, after=after, agent=agent, kinds=kinds, limit=limit)
        return json_response({"events": logged(tx, found, who)})


def logged(tx: Transaction, found: Iterable[tuple[NexusEvent, int]], who: Caller | None) -> list[dict[str, JsonValue]]:
    """Return the events of a page as a caller may see them."""
    events = [(event if sees_event(who, event) else event.public(), length) for event, length in found]
    seen = [(event, length) for event, length in events if event is not None]
    names = tx.names(event for event, _ in seen)
    return [event_json(e, names) | ({} if length < LONGEST_BODY else {"body": {}}) for e, length in seen]
