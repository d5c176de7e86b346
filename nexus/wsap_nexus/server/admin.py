"""What only whoever runs the nexus does with its agents: hold them, let them go on, take them out."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from wsap_nexus.agents import portable
from wsap_nexus.http.callers import Admin
from wsap_nexus.http.replies import Request, answer
from wsap_nexus.hub import reconciliation
from wsap_nexus.hub.served import Hub
from wsap_nexus.server.deps import AgentId

router = APIRouter()


class Held(BaseModel):
    """How an agent is held."""

    agent: str
    state: str


class Decision(Request):
    """What a person says became of a move that is in doubt."""

    outcome: Literal["arrived", "returned"]
    transfer: str | None = Field(default=None, min_length=1, max_length=200)
    """One move, by its id; all that are in doubt when left out."""


class SettledShape(BaseModel):
    """A move that was decided about."""

    transfer: str
    game: str
    outcome: Literal["arrived", "returned"]
    items: list[str]
    """The ids of what belonged to it."""
    place: Literal["escrow", "world", "lost"]
    """Where that is now."""


class SettledMoves(BaseModel):
    """What was decided."""

    agent: str
    settled: list[SettledShape]


@router.post("/nexus/agents/{agent_id}/pause", responses={200: {"model": Held}})
async def pause(nexus: Hub, agent_id: AgentId, by: Admin) -> Response:
    """Let an agent begin no further decision, where it is."""
    with nexus.ledger.look() as book:
        portable.check_not_removed(book, agent_id)
    nexus.pause(agent_id)
    return answer({"agent": agent_id, "state": "paused"})


@router.post("/nexus/agents/{agent_id}/resume", responses={200: {"model": Held}})
async def resume(nexus: Hub, agent_id: AgentId, by: Admin) -> Response:
    """Let a paused agent go on."""
    with nexus.ledger.look() as book:
        portable.check_not_removed(book, agent_id)
    nexus.resume(agent_id)
    return answer({"agent": agent_id, "state": "active"})


@router.post("/nexus/agents/{agent_id}/halt", responses={200: {"model": Held}})
async def halt(nexus: Hub, agent_id: AgentId, by: Admin) -> Response:
    """Pause an agent and bring it into the nexus, wherever it is; answers once it is there."""
    with nexus.ledger.look() as book:
        portable.check_not_removed(book, agent_id)
    await nexus.halt(agent_id)
    return answer({"agent": agent_id, "state": "paused"})


@router.post("/nexus/agents/{agent_id}/settle", responses={200: {"model": SettledMoves}})
async def settle(nexus: Hub, agent_id: AgentId, said: Decision, by: Admin) -> Response:
    """Decide about an agent's moves in doubt: what it carried has arrived, or is with it again."""
    with nexus.ledger.change() as book:
        settled = reconciliation.settle(book, agent_id, said.outcome, said.transfer)
    return answer({"agent": agent_id, "settled": settled})


@router.delete("/nexus/agents/{agent_id}", responses={200: {"model": Held}})
async def remove(nexus: Hub, agent_id: AgentId, by: Admin) -> Response:
    """Take an agent out of the nexus for good; its past stays, and its id is given to nobody else."""
    with nexus.ledger.look() as book:
        portable.check_not_removed(book, agent_id)
    await nexus.halt(agent_id)
    with nexus.ledger.change() as book:
        portable.remove(book, agent_id)
    return answer({"agent": agent_id, "state": "removed"})
