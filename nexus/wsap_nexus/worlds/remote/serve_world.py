"""Serves a game to a nexus from its own process: `serve_world(MyGame, name="my-game", port=7801)`.

It serves the bridge that `wsap_nexus.worlds.remote.game_client` calls. The process holds only running worlds; the nexus
stores their snapshots and logs. Register the game there with `POST /nexus/games`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from fastapi import FastAPI

from wsap_core.errors import ConfigError, UsageError
from wsap_core.factories import Reference
from wsap_core.references import load_adapter_spec
from wsap_core.seams.game import GameAdapter
from wsap_core.specs import AdapterSpec
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.http import errors
from wsap_nexus.http.access.auth import OneToken
from wsap_nexus.http.access.guard import Guard, HttpLimits
from wsap_nexus.worlds.remote import bridge_routes
from wsap_nexus.worlds.remote.game_host import GameHost

BODY_MOST = 64 * 2**20
"""The maximum bytes of a request body; snapshots are large."""


def world_app(spec: AdapterSpec, *, token: str | None = None) -> FastAPI:
    """Return the bridge of a game as an ASGI application; without a `token` it is open to everybody.

    Raises:
        UsageError: the game calls language models, which a bridge does not have, or is `irreversible`.
    """
    if "irreversible" in spec.abilities:
        raise UsageError(
            f"{spec.display_title} already runs in its own process, so it can't be served by another; "
            "install it where the nexus runs."
        )
    if spec.asks_models:
        raise UsageError(
            f"{spec.display_title} calls language models itself, so it can't be served separately; "
            "install it where the nexus runs, which provides the models."
        )
    app = FastAPI(title=f"WSAP bridge: {spec.name}", version=PROTOCOL_VERSION, docs_url=None, redoc_url=None)
    app.state.host = GameHost(spec)
    errors.install(app)
    app.include_router(bridge_routes.router)
    app.add_middleware(
        Guard,
        tokens=None if token is None else OneToken(token),
        limits=HttpLimits(body=BODY_MOST, body_seconds=60, rate=1e6, burst=1e6),
        hosts=frozenset() if token is None else None,
        guarded=token is not None,
        clock=time.monotonic,
        data_paths=("/",),
    )
    return app


def serve_world(
    game: AdapterSpec | Reference | GameAdapter,
    *,
    name: str = "",
    host: str = "127.0.0.1",
    port: int = 7801,
    token: str | None = None,
    ready: Callable[[str], None] | None = None,
    **described: Any,
) -> None:
    """Serve a game to a nexus until the process gets a signal to stop.

    Args:
        game: a spec, the name of an installed game, a class or factory, `module:attribute`, or an adapter object (for
            one world). What a class declares in `wsap_spec` is told to the nexus.
        name: the game's name, which no game installed in the nexus may have; that of the spec or class when empty.
        host: the address to listen on; other than loopback only with a token.
        port: 0 for any free one.
        token: the token that the nexus must send; register it along with the address.
        ready: called with the base URL once the server is up; by default the URL is printed.
        described: fields of the spec that differ: `abilities`, `seats`, `summary`, `skills`, `transfer_rules` ...

    Raises:
        ConfigError: it would be open to other machines without a token.
        UsageError: the game can't be served, or the port is taken.
        WsapError: the game can't be loaded.
    """
    from wsap_nexus.http.listening import Address, listen
    from wsap_nexus.http.serving import HttpServer, raise_file_limit

    address = Address(host, port)
    address.check()
    if not address.is_loopback and token is None:
        raise ConfigError("A game that other machines can reach needs a token; set one, or listen on 127.0.0.1.")
    spec = spec_for(game, name, described)
    raise_file_limit()
    listening = listen(address)
    tell = ready or (lambda where: print(f"{spec.name} is served at {where}", flush=True))  # noqa: T201 its only sign

    server = HttpServer(
        world_app(spec, token=token),
        listening,
        HttpLimits(),
        ready=lambda url: tell(url.rstrip("/")),
        signals=True,
    )
    asyncio.run(server.run())


def spec_for(game: AdapterSpec | Reference | GameAdapter, name: str, described: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec of a game to serve; raises as `load_adapter_spec` does."""
    spec = game if isinstance(game, AdapterSpec) else load_adapter_spec(game)
    return replace(spec, name=name or spec.name, **described)
