"""What happens in the nexus, as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from starlette.responses import StreamingResponse

from wsap_core.wire import dumps
from wsap_nexus.hub.hub import Nexus
from wsap_nexus.server.deps import Hub, answer

router = APIRouter()


@router.get("/nexus")
async def about(nexus: Hub) -> Response:
    """What runs here."""
    with nexus.ledger.look() as book:
        agents = len(book.agents())
    return answer({"name": "WSAP nexus", "protocol_version": "1.0.0", "agents": agents, "in_worlds": len(nexus.stays)})


@router.get("/nexus/events")
async def events(
    nexus: Hub,
    request: Request,
    last_event_id: Annotated[int | None, Header()] = None,
    after: Annotated[int | None, Query(ge=0)] = None,
    agent: Annotated[str | None, Query(max_length=64)] = None,
) -> StreamingResponse:
    """Stream what happens (server-sent events), from after an event on."""
    start = after if after is not None else last_event_id
    return StreamingResponse(_stream(nexus, request, start, agent), media_type="text/event-stream")


async def _stream(nexus: Nexus, request: Request, after: int | None, agent: str | None) -> AsyncIterator[str]:
    wake = asyncio.Event()
    stop = nexus.ledger.listen(lambda event: wake.set())
    try:
        with nexus.ledger.look() as book:
            seq = book.last_seq() if after is None else after
        yield ": hello\n\n"
        while not await request.is_disconnected():
            wake.clear()
            with nexus.ledger.look() as book:
                found = book.events(after=seq, agent=agent)
            for event in found:
                seq = event.seq
                yield f"id: {event.seq}\nevent: {event.kind}\ndata: {dumps(event)}\n\n"
            if not found:
                try:
                    async with asyncio.timeout(15):
                        await wake.wait()
                except TimeoutError:
                    yield ": still here\n\n"
    finally:
        stop()
