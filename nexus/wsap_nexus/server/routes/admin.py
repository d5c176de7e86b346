"""Routes for the owner: pause, resume, halt, settle and remove agents."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import Field

from wsap_nexus.agents import portable
from wsap_nexus.http.access.callers import Admin
from wsap_nexus.http.replies import Request, answer
from wsap_nexus.hub.served import Hub
from wsap_nexus.hub.transit import reconciliation
from wsap_nexus.server.bodies import responses
from wsap_nexus.server.deps import AgentId, ManagedAgent, replies

router = APIRouter(prefix="/agents/{agent_id}")


class Decision(Request):
    """The outcome of an unresolved transfer, decided by a person."""

    outcome: reconciliation.Outcome
    transfer: str | None = Field(default=None, min_length=1, max_length=200)
    """A transfer's id; by default all unresolved transfers of the agent."""


@router.post("/pause", responses=replies(responses.Held))
async def pause(nexus: Hub, agent_id: ManagedAgent) -> Response:
    """Pause an agent where it is: it starts no further decisions."""
    nexus.pause(agent_id)
    return answer({"agent": agent_id, "state": "paused"})


@router.post("/resume", responses=replies(responses.Held))
async def resume(nexus: Hub, agent_id: ManagedAgent) -> Response:
    """Resume a paused agent."""
    nexus.resume(agent_id)
    return answer({"agent": agent_id, "state": "active"})


@router.post("/halt", responses=replies(responses.Held))
async def halt(nexus: Hub, agent_id: ManagedAgent) -> Response:
    """Pause an agent and bring it into the nexus; replies when it is there."""
    await nexus.halt(agent_id)
    return answer({"agent": agent_id, "state": "paused"})


@router.post("/settle", responses=replies(responses.SettledMoves))
async def settle(nexus: Hub, agent_id: AgentId, said: Decision, by: Admin) -> Response:
    """Settle an agent's unresolved transfers: its items arrived in the world, or returned to the agent."""
    with nexus.nexus_store.change() as tx:
        settled = reconciliation.settle(tx, agent_id, said.outcome, said.transfer)
    return answer({"agent": agent_id, "settled": settled})


@router.delete("", responses=replies(responses.Held))
async def remove(nexus: Hub, agent_id: ManagedAgent) -> Response:
    """Remove an agent permanently; its history stays, and its id can't be reused."""
    await nexus.halt(agent_id)
    with nexus.nexus_store.change() as tx:
        portable.remove(tx, agent_id)
    return answer({"agent": agent_id, "state": "removed"})
