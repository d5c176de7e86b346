"""The wire API, as an ASGI application."""

from __future__ import annotations

from fastapi import FastAPI

from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.hub.hub import Nexus
from wsap_nexus.server import agents, errors, events, transit
from wsap_nexus.server.auth import Tokens


def create_app(nexus: Nexus, tokens: Tokens) -> FastAPI:
    """Return the application of a nexus; whoever serves it starts and stops the nexus."""
    app = FastAPI(title="WSAP nexus", version=PROTOCOL_VERSION, docs_url=None, redoc_url=None)
    app.state.nexus, app.state.tokens = nexus, tokens
    errors.install(app)
    for module in (events, agents, transit):
        app.include_router(module.router)
    return app
