"""Adds the dashboard to the application of a nexus: the page, and its files in `assets` (no build step).

What the page shows and does goes through the wire API, as for any other client. The only route of its own exchanges the
key in the printed address for the token.
"""

from __future__ import annotations

import os
from pathlib import Path

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import FileResponse
from pydantic import Field
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope
from typing_extensions import override

from wsap_nexus.dashboard.key import OneTimeKey
from wsap_nexus.http import replies
from wsap_nexus.http.access.callers import TokenStore
from wsap_nexus.http.refusals import UnauthorizedError
from wsap_nexus.http.replies import BROWSER_HEADERS

router = APIRouter(include_in_schema=False)

FOLDER = Path(__file__).parent / "assets"
_FRESH = {"Cache-Control": "no-cache"}  # revalidated each time: an update may bring newer files


class Key(replies.Request):
    """The key of the printed address."""

    key: str = Field(max_length=100)


@router.get("/")
async def page() -> Response:
    """Return the page; its scripts load the rest."""
    return FileResponse(FOLDER / "index.html", headers=BROWSER_HEADERS | _FRESH)


@router.post("/unlock")
async def unlock(request: Request, given: Key, tokens: TokenStore) -> Response:
    """Exchange the key of the printed address for the token, once."""
    key: OneTimeKey | None = request.app.state.one_time_key
    if key is None or not key.use(given.key):
        raise UnauthorizedError("This address was already used; get a new one with: wsap nexus key")
    response = replies.answer({"token": tokens.own})
    response.headers.update(BROWSER_HEADERS | {"Cache-Control": "no-store"})
    return response


class Assets(StaticFiles):
    """The page's scripts, styles and icon."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    @override
    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(BROWSER_HEADERS | _FRESH)
        return response


def install(app: FastAPI) -> None:
    """Serve the page at `/`."""
    app.state.one_time_key = None
    app.include_router(router)
    app.mount("/assets", Assets(), name="assets")
