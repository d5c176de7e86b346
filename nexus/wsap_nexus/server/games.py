"""The games that agents can enter."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from wsap_nexus.server import shapes
from wsap_nexus.server.deps import Hub, answer

router = APIRouter(tags=["games"])
GameName = Annotated[str, Path(max_length=200)]


@router.get("/nexus/games", responses={200: {"model": shapes.Games}})
async def games(nexus: Hub) -> Response:
    """List the games that can be entered."""
    return answer({"games": nexus.games()})


@router.get("/nexus/games/{game}", responses={200: {"model": shapes.GameAnswer}})
async def game(nexus: Hub, game: GameName) -> Response:
    """What is known of a game."""
    return answer({"game": nexus.game_info(game)})
