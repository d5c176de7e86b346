"""Streams that end when the nexus stops, so that nobody who looks on keeps it from stopping."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

# ASGI's own types: dictionaries of an open shape.
Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Any]


def end_streams(app: App, until: asyncio.Event) -> App:
    """Return an application whose GET requests are told that the client is gone once an event is set.

    What still streams then is brought to its proper end; what is nearly answered is answered.
    """

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            await app(scope, receive, send)
            return
        begun = complete = False

        async def receiving() -> Message:
            told, asked = asyncio.ensure_future(until.wait()), asyncio.ensure_future(receive())
            try:
                await asyncio.wait({told, asked}, return_when=asyncio.FIRST_COMPLETED)
                return asked.result() if asked.done() else {"type": "http.disconnect"}
            finally:
                told.cancel()
                asked.cancel()

        async def sending(message: Message) -> None:
            nonlocal begun, complete
            await send(message)
            begun = True
            complete = message["type"] == "http.response.body" and not message.get("more_body", False)

        await app(scope, receiving, sending)
        if begun and not complete and until.is_set():
            await send({"type": "http.response.body", "body": b""})

    return wrapped
