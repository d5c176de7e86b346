"""Adds the dashboard to the application of a nexus."""

from __future__ import annotations

import time

from fastapi import FastAPI

from wsap_nexus.dashboard import actions, decision, live, mind, pages, timeline, views
from wsap_nexus.dashboard.frames import Frames
from wsap_nexus.dashboard.steps import StepIndexes
from wsap_nexus.hub.nexus import Nexus

ROUTERS = tuple(module.router for module in (views, mind, live, timeline, decision, actions, pages))


def install(app: FastAPI, nexus: Nexus) -> None:
    """Serve the dashboard at `/`, its data under `/dashboard`."""
    app.state.started = time.time()
    app.state.board = live.Board(nexus)
    app.state.frames = Frames(nexus)
    app.state.steps = StepIndexes(nexus.store.repository)
    app.state.one_time_key = None
    for router in ROUTERS:
        app.include_router(router, include_in_schema=False)
    app.mount("/assets", pages.Assets(), name="assets")
