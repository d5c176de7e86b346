"""The wire API as an ASGI application."""

from __future__ import annotations

import time

from fastapi import FastAPI

from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.dashboard.app import install
from wsap_nexus.http import errors
from wsap_nexus.http.access.auth import Tokens
from wsap_nexus.http.access.guard import Guard, HttpLimits, Rates
from wsap_nexus.http.streams import Streams
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.server import openapi
from wsap_nexus.server.idempotency import IdempotencyStore
from wsap_nexus.server.routes import (
    admin,
    agents,
    events,
    games,
    minds,
    overview,
    passes,
    sessions,
    stage,
    transit,
    worlds,
)
from wsap_nexus.server.routes.recorded import curves, decisions, runs, saved_page
from wsap_nexus.server.watched.activity import Activity
from wsap_nexus.server.watched.frames import Frames
from wsap_nexus.server.watched.stage import Stage
from wsap_nexus.store.step_index import StepIndexes

ROUTES = (
    events,
    stage,
    passes,
    overview,
    agents,
    minds,
    games,
    admin,
    transit,
    sessions,
    worlds,
    runs,
    curves,
    decisions,
    saved_page,
)


def include_routes(app: FastAPI) -> None:
    """Add the routes of the wire API and its OpenAPI document to an application."""
    for module in ROUTES:
        app.include_router(module.router, prefix=openapi.PREFIX)
    openapi.install(app)


def create_app(
    nexus: Nexus,
    tokens: Tokens,
    *,
    limits: HttpLimits,
    hosts: frozenset[str] | None,
    guarded: bool,
    host: str = "127.0.0.1",
) -> FastAPI:
    """Return the application of a nexus, which the caller starts and stops.

    Args:
        hosts: names allowed in the Host header besides loopback names; None for any.
        guarded: whether reading needs a token, too.
        host: the address that it listens on.
    """
    app = FastAPI(title="WSAP nexus", version=PROTOCOL_VERSION, docs_url=None, redoc_url=None, redirect_slashes=False)
    state = app.state
    state.nexus, state.tokens, state.started = nexus, tokens, nexus.nexus_store.wall_clock()
    state.idempotency, state.feed = IdempotencyStore(nexus.nexus_store), events.Feed(nexus.nexus_store, nexus.thoughts)
    state.streams, state.activity = Streams(limits), Activity(nexus)
    state.frames, state.steps = Frames(nexus), StepIndexes(nexus.store.repository)
    state.host = host
    state.messages = Rates(1 / 5, 1, time.monotonic, "One message in five seconds; wait a moment.")
    state.stage = Stage(nexus, clock=nexus.nexus_store.wall_clock)
    errors.install(app)
    include_routes(app)
    app.add_middleware(Guard, tokens=tokens, limits=limits, hosts=hosts, guarded=guarded, clock=time.monotonic)
    install(app)
    return app
