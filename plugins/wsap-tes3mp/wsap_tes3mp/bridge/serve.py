"""Serves a bridge over HTTP until it is told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wsap_core.errors import UsageError
from wsap_nexus.http.guard import HttpLimits
from wsap_nexus.http.listening import Address, listen
from wsap_nexus.http.serving import HttpServer
from wsap_tes3mp.bridge.app import create_app
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.protocol.errors import BridgeUnavailableError

PORT = 8765
"""The default port of a bridge."""


async def serve(
    bridge: Bridge,
    address: Address,
    token: str,
    *,
    until: asyncio.Event | None = None,
    ready: Callable[[str], None] | None = None,
    limits: HttpLimits | None = None,
    trusting: bool = False,
) -> None:
    """Start a bridge, serve it until it is told to stop, and stop it.

    Args:
        bridge: not started yet.
        address: where to listen; where other machines can reach it, reading needs the token, too.
        token: what changing something needs.
        until: set to stop; None to serve until the task is cancelled.
        ready: called with the URL once requests are answered.
        limits: limits on requests and connections.
        trusting: whether programs on this machine need no token.

    Raises:
        UsageError: `trusting` where other machines can reach it.
        PortInUseError: the port is in use.
    """
    address.check()
    limits = limits or HttpLimits()
    near = address.is_loopback
    if trusting and not near:
        raise UsageError("Only a bridge that this machine alone can reach may take commands without the token.")
    hosts = frozenset({address.host}) if near else None
    app = create_app(bridge, token, limits=limits, hosts=hosts, guarded=not near, trusting=trusting)
    listening = listen(address)
    stopping = BridgeUnavailableError("The bridge is stopping; ask again later, with the same key if there was one.")
    server = HttpServer(
        app, listening, limits, until=until, ready=ready, over=lambda: bridge.news.tell(None), stopping=stopping
    )
    try:
        await bridge.start()
        await server.run()
    finally:
        listening.close()
        await bridge.stop()
