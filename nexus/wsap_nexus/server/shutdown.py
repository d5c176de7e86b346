"""Ends open streams when the nexus stops, so that their clients do not delay the shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

# ASGI's own types: dictionaries of an open shape.
Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Any]


def end_streams(app: App, until: asyncio.Event) -> App:
    """Return an application whose GET requests see the client disconnect once an event is set.

    Open streams then end properly, and replies that are almost complete are still sent.
    """

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await app(scope, receive, send)
            return
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

        await app(scope, receiving, sending)
        if started and not complete and until.is_set():
            await send({"type": "http.response.body", "body": b""})

    return wrapped
