"""The page and its files in `assets`, which have no build step."""

from __future__ import annotations

import os
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from wsap_nexus.dashboard.guard import HEADERS

router = APIRouter()

FOLDER = Path(__file__).parent / "assets"
_FRESH = {"Cache-Control": "no-cache"}  # cached, but checked each time: a restart may bring newer files


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
