"""The wire API as an ASGI application."""

from __future__ import annotations

import time

from fastapi import FastAPI

from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.dashboard.app import install
from wsap_nexus.http import errors
from wsap_nexus.http.auth import Tokens
from wsap_nexus.http.guard import Guard, HttpLimits
from wsap_nexus.http.streams import Streams
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.server import admin, agents, events, games, openapi, sessions, transit
from wsap_nexus.server.idempotency import IdempotencyStore


def include_routes(app: FastAPI) -> None:
    """Add the routes of the wire API and its OpenAPI document to an application."""
    for module in (events, agents, games, admin, transit, sessions):
        app.include_router(module.router, prefix=openapi.PREFIX)
    openapi.install(app)


def create_app(
    nexus: Nexus,
    tokens: Tokens,
    *,
    limits: HttpLimits,
    hosts: frozenset[str] | None,
    guarded: bool,
) -> FastAPI:
    """Return the application of a nexus, which the caller starts and stops.

    Args:
        hosts: names allowed in the Host header besides loopback names; None for any.
        guarded: whether reading needs a token, too.
    """
    app = FastAPI(title="WSAP nexus", version=PROTOCOL_VERSION, docs_url=None, redoc_url=None, redirect_slashes=False)
    state = app.state
    state.nexus, state.tokens = nexus, tokens
    state.idempotency, state.feed = IdempotencyStore(nexus.nexus_store), events.Feed(nexus.nexus_store, nexus.thoughts)
    state.streams = Streams(limits)
    errors.install(app)
    include_routes(app)
    app.add_middleware(Guard, tokens=tokens, limits=limits, hosts=hosts, guarded=guarded, clock=time.monotonic)
    install(app, nexus)
    return app
