"""Serves an application to this machine, or with a token to others, until the process is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import uvicorn

from wsap_core.errors import UsageError
from wsap_nexus.http.access.auth import OneToken
from wsap_nexus.http.access.guard import Guard, HttpLimits
from wsap_nexus.http.listening import Address, is_loopback, listen, url_of
from wsap_openenv.app import app_of
from wsap_openenv.sessions import Sessions

LOOK = 5.0
"""Seconds between two looks for sessions that nobody uses."""
LONGEST = 2**20
"""Maximum bytes of a message."""
PING = 15.0
"""Seconds between two signs of life, and until one that is not answered ends the connection. A client whose machine is
lost is noticed within twice that."""


async def serve(
    sessions: Sessions,
    address: Address,
    *,
    token: str | None = None,
    ready: Callable[[str], None] = lambda url: None,
    until: asyncio.Event | None = None,
) -> None:
    """Serve the sessions' game until the process is interrupted, or `until` is set; then all sessions are closed.

    Args:
        token: clients must send it (`Authorization: Bearer TOKEN`); without one, only this machine is served.
        ready: called with the address once clients are served.

    Raises:
        UsageError: other machines would be served without a token, or the port is taken.
        WsapError: the game can't be made.
    """
    near = is_loopback(address.host)
    if not near and token is None:
        raise UsageError("Other machines may only be served with a --token-file.")
    guarded = Guard(
        app_of(sessions),
        tokens=None if token is None else OneToken(token),
        limits=HttpLimits(),
        hosts=frozenset() if near else None,
        guarded=token is not None,
        clock=time.monotonic,
        data_paths=("/",),
    )
    with contextlib.closing(listen(address)) as listening:
        config = uvicorn.Config(
            guarded, ws_max_size=LONGEST, ws_ping_interval=PING, ws_ping_timeout=PING,
            ws_per_message_deflate=False, log_level="warning", lifespan="off", timeout_graceful_shutdown=2,
            server_header=False,
        )  # fmt: skip
        server = uvicorn.Server(config)

        async def look() -> None:
            while True:
                await asyncio.sleep(LOOK)
                sessions.expire_idle()

        async def end(stop: asyncio.Event) -> None:
            await stop.wait()
            server.should_exit = True

        beside = [asyncio.ensure_future(look())]
        if until is not None:
            beside.append(asyncio.ensure_future(end(until)))
        ready(url_of(*listening.getsockname()[:2]).rstrip("/"))
        try:
            await server.serve(sockets=[listening])
        finally:
            for task in beside:
                task.cancel()
            await sessions.close_all()
