"""Serves an MCP server over standard input and output, or over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any

import uvicorn
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

from wsap_core.errors import UsageError
from wsap_mcp.games import OpenGames
from wsap_nexus.http.access.auth import OneToken
from wsap_nexus.http.access.guard import Guard, HttpLimits

# Any, in this module: the lifespan state of a server, which has none.

PATH = "/mcp"
LOOK = 5.0
"""Seconds between two looks for games that nobody calls."""


async def over_stdio(server: Server[Any]) -> None:
    """Serve one client until it closes its end. What games print goes to the standard error output meanwhile."""
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def over_http(
    server: Server[Any], port: int, *, host: str, token: str | None, ready: Callable[[str], None]
) -> None:
    """Serve clients until the process is interrupted.

    Args:
        token: clients must send it (`Authorization: Bearer TOKEN`); without one, only this machine is served.
        ready: called with the address once clients are served.

    Raises:
        UsageError: other machines would be served without a token, or the port is taken.
    """
    near = host in ("127.0.0.1", "localhost", "::1")
    if not near and token is None:
        raise UsageError("Other machines may only be served with a --token-file.")
    app = server.streamable_http_app(streamable_http_path=PATH, host=host)
    guarded = Guard(
        app,
        tokens=None if token is None else OneToken(token),
        limits=HttpLimits(),
        hosts=frozenset({host}) if near else None,
        guarded=token is not None,
        clock=time.monotonic,
        data_paths=("/",),
    )
    try:
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise UsageError(
            f"Port {port} of {host} can't be used ({error.strerror}); choose another --http PORT."
        ) from error
    # Connections inherit it; without it, a reply waits 40 ms for the client's acknowledgement of its head.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with listening:
        name = f"[{host}]" if ":" in host else host
        serving = uvicorn.Server(uvicorn.Config(guarded, log_level="warning", lifespan="on"))
        ready(f"http://{name}:{listening.getsockname()[1]}{PATH}")
        await serving.serve(sockets=[listening])


async def with_idle_closed(games: OpenGames, serve: Awaitable[None]) -> None:
    """Serve, and stop games that nobody calls; in the end all of them."""

    async def look() -> None:
        while True:
            await asyncio.sleep(LOOK)
            await games.close_idle()

    looking = asyncio.ensure_future(look())
    try:
        await serve
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
        await games.close_all()
