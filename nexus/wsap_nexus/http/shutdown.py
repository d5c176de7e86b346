"""Ends open requests when the server stops, so that their clients do not delay it: streams, and whoever waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

from wsap_core.errors import WsapError
from wsap_nexus.http.errors import of_error
from wsap_nexus.http.refusals import NexusStoppingError

GRACE = 1.0
"""Seconds that requests get to be answered once the nexus stops."""

# ASGI's own types: dictionaries of an open shape.
Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Any]


def end_requests(app: App, until: asyncio.Event, stopping: WsapError | None = None) -> App:
    """Return an application whose requests end once an event is set.

    GET requests see the client disconnect: open streams then end properly, and replies that are almost complete are
    still sent. A request that is not answered a second later is answered with an error.

    Args:
        until: set when the server stops.
        stopping: the error; that the nexus stops if not given.
    """
    stopping = stopping or NexusStoppingError(
        "The nexus is stopping; ask again, with the same key if there was one, later."
    )
    waiting: set[asyncio.Timeout] = set()
    ending: asyncio.Task[None] | None = None

    async def end() -> None:
        await until.wait()
        for limit in waiting:
            limit.reschedule(asyncio.get_running_loop().time() + GRACE)

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        nonlocal ending
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        ending = ending or asyncio.ensure_future(end())
        started = complete = False

        async def receiving() -> Message:
            stopping, received = asyncio.ensure_future(until.wait()), asyncio.ensure_future(receive())
            try:
                await asyncio.wait({stopping, received}, return_when=asyncio.FIRST_COMPLETED)
                return received.result() if received.done() else {"type": "http.disconnect"}
            finally:
                stopping.cancel()
                received.cancel()

        async def sending(message: Message) -> None:
            nonlocal started, complete
            await send(message)
            started = True
            complete = message["type"] == "http.response.body" and not message.get("more_body", False)

        limit = asyncio.timeout(GRACE if until.is_set() else None)
        waiting.add(limit)
        try:
            async with limit:
                await app(scope, receiving if scope["method"] == "GET" else receive, sending)
        except TimeoutError:
            if not limit.expired():
                raise
        finally:
            waiting.discard(limit)
        if not started and limit.expired():
            await of_error(stopping)(scope, receive, send)
        elif started and not complete and until.is_set():
            await send({"type": "http.response.body", "body": b""})

    return wrapped
