"""Adds the dashboard to the application of a nexus: the page, its data, and its files in `assets` (no build step)."""

from __future__ import annotations

import os
import time
from pathlib import Path

from fastapi import APIRouter, FastAPI
from fastapi.responses import FileResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from wsap_nexus.dashboard import actions, decision, live, mind, timeline, views
from wsap_nexus.dashboard.frames import Frames
from wsap_nexus.dashboard.guard import HEADERS
from wsap_nexus.dashboard.steps import StepIndexes
from wsap_nexus.hub.nexus import Nexus

router = APIRouter()

FOLDER = Path(__file__).parent / "assets"
_FRESH = {"Cache-Control": "no-cache"}  # revalidated each time: an update may bring newer files


@router.get("/")
async def page() -> Response:
    """Return the page; its scripts load the rest."""
    return FileResponse(FOLDER / "index.html", headers=HEADERS | _FRESH)


class Assets(StaticFiles):
    """The page's scripts, styles and icon."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """Return a file with the headers of the page."""
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(HEADERS | _FRESH)
        return response


ROUTERS = (*(module.router for module in (views, mind, live, timeline, decision, actions)), router)


def install(app: FastAPI, nexus: Nexus) -> None:
    """Serve the dashboard at `/`, its data under `/dashboard`."""
    app.state.started = time.time()
    app.state.board = live.Board(nexus)
    app.state.frames = Frames(nexus)
    app.state.steps = StepIndexes(nexus.store.repository)
    app.state.one_time_key = None
    for each in ROUTERS:
        app.include_router(each, include_in_schema=False)
    app.mount("/assets", Assets(), name="assets")
