"""Routes of games."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from wsap_nexus.http.access.callers import Admin
from wsap_nexus.http.replies import answer
from wsap_nexus.hub.served import Hub
from wsap_nexus.server.bodies import requests, responses
from wsap_nexus.worlds.game_info import GameInfo

router = APIRouter(tags=["games"])
GameName = Annotated[str, Path(max_length=200)]


@router.get("/games", responses={200: {"model": responses.Games}})
async def games(nexus: Hub) -> Response:
    """List the games that agents can enter."""
    return answer({"games": nexus.entrance.games()})


@router.get("/games/{game:path}", responses={200: {"model": responses.GameAnswer}})
async def game(nexus: Hub, game: GameName) -> Response:
    """The description and status of a game."""
    return answer({"game": nexus.entrance.game_info(game)})


@router.post("/games", responses={200: {"model": responses.GameAnswer}, 201: {"model": responses.GameAnswer}})
async def join(nexus: Hub, new: requests.NewGame, by: Admin) -> Response:
    """Register a game in another process (201), or change the address of a registered one (200)."""
    known = set(nexus.remote_games.specs())
    spec = await nexus.remote_games.join(new.base_url, new.token, frozenset(nexus.host.games.names()))
    nexus.breaker.put(spec.name, "available")
    return answer({"game": GameInfo.of(spec)}, 200 if spec.name in known else 201)


@router.put("/games/{game:path}/status", responses={200: {"model": responses.GameAnswer}})
async def set_status(nexus: Hub, game: GameName, new: requests.NewStatus, by: Admin) -> Response:
    """Set whether a game can be entered; if not, the agents in it return to the nexus."""
    nexus.set_game_status(game, new.status, new.reason)
    return answer({"game": nexus.entrance.game_info(game)})
