"""What only whoever runs the nexus does: take agents out of it, and say how games stand."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from wsap_nexus.hub import portable
from wsap_nexus.server.deps import AgentId, Hub, Owner, answer
from wsap_nexus.server.games import GameName

router = APIRouter()


class Gone(BaseModel):
    """An agent that was brought into the nexus, or taken out of it."""

    agent: str
    state: str


class GameStanding(BaseModel):
    """How a game is to stand."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["available", "maintenance", "offline"]
    reason: str = Field(default="", max_length=500)


class GameStands(BaseModel):
    """How a game stands."""

    game: str
    status: str
    reason: str


@router.post("/nexus/agents/{agent_id}/halt", responses={200: {"model": Gone}})
async def halt(nexus: Hub, agent_id: AgentId, by: Owner) -> Response:
    """Pause an agent and bring it into the nexus, wherever it is; answers once it is there."""
    with nexus.ledger.look() as book:
        portable.check_not_removed(book, agent_id)
    await nexus.halt(agent_id)
    return answer({"agent": agent_id, "state": "paused"})


@router.delete("/nexus/agents/{agent_id}", responses={200: {"model": Gone}})
async def remove(nexus: Hub, agent_id: AgentId, by: Owner) -> Response:
    """Take an agent out of the nexus for good; its past stays, and its id is given to nobody else."""
    with nexus.ledger.look() as book:
        portable.check_not_removed(book, agent_id)
    await nexus.halt(agent_id)
    with nexus.ledger.change() as book:
        portable.remove(book, agent_id)
    return answer({"agent": agent_id, "state": "removed"})


@router.post("/nexus/games/{game}/status", responses={200: {"model": GameStands}})
async def stand(nexus: Hub, game: GameName, wanted: GameStanding, by: Owner) -> Response:
    """Say how a game stands from now on; agents in one that is not available any more come back."""
    nexus.game_info(game)
    standing = nexus.set_game_status(game, wanted.status, wanted.reason)
    return answer({"game": game, "status": standing.status, "reason": standing.reason})
