"""Agents over the wire: register, list, look at, act for."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from wsap_core.models import Action
from wsap_nexus.hub.errors import NotInWorldError
from wsap_nexus.hub.external import ExternalAgent
from wsap_nexus.hub.hub import Nexus
from wsap_nexus.hub.records import AGENT_ID, EXTERNAL, Policy
from wsap_nexus.server.deps import WAIT_MOST, Hub, Known, Owner, Vault, answer

router = APIRouter()


class NewAgent(BaseModel):
    """A registration."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(pattern=AGENT_ID)
    name: str = Field(default="", max_length=80)
    persona: str = Field(default="", max_length=10_000)
    policies: dict[str, dict[str, Any]] | None = Field(default=None, max_length=100)
    """Game -> {"agent": ..., "options": {...}}; decided over the wire when left out."""


class ActRequest(BaseModel):
    """An action."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=200)
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=100)
    reasoning: str | None = Field(default=None, max_length=20_000)


@router.post("/nexus/agents")
async def register(nexus: Hub, new: NewAgent, by: Owner, tokens: Vault) -> Response:
    """Register an agent, or get the one of that id; the answer to a new one has its token."""
    given = {"*": EXTERNAL}
    if new.policies is not None:
        given = {game: Policy(str(p["agent"]), dict(p.get("options", {}))) for game, p in new.policies.items()}
    with nexus.ledger.change() as book:
        agent, fresh = book.register(new.id, name=new.name, persona=new.persona, policies=given)
    body: dict[str, Any] = {"agent": agent}
    if fresh:
        body["token"] = tokens.issue(agent.id)
        nexus.awaken(agent)
    return answer(body, 201 if fresh else 200)


@router.get("/nexus/agents")
async def agents(
    nexus: Hub, after: Annotated[str, Query(max_length=64)] = "", limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> Response:
    """List agents by id, a page at a time."""
    with nexus.ledger.look() as book:
        found = book.agents(after=after, limit=limit)
    return answer({"agents": found})


@router.get("/nexus/agents/{agent_id}")
async def agent(nexus: Hub, agent_id: str) -> Response:
    """Everything that is kept of an agent."""
    with nexus.ledger.look() as book:
        identity = book.agent(agent_id)
        body = {
            "agent": identity,
            "skills": book.skills(agent_id),
            "items": book.items(agent_id),
            "avatars": book.avatars(agent_id),
            "achievements": [dict(row._mapping) for row in book.achievements(agent_id)],
            "sessions": book.sessions(agent_id=agent_id, limit=20),
        }
    return answer(body)


@router.get("/nexus/agents/{agent_id}/observation")
async def observation(
    nexus: Hub, agent_id: str, by: Known, wait: Annotated[float, Query(ge=0, le=WAIT_MOST)] = 10.0
) -> Response:
    """What the agent sees at its next decision, in the nexus or in a world."""
    by.may_act_for(agent_id)
    external = _external(nexus, agent_id)
    try:
        async with asyncio.timeout(wait):
            seen = await external.observation()
    except TimeoutError:
        return answer({"pending": True}, 202)
    return answer({"place": _place(nexus, agent_id), "observation": seen})


@router.post("/nexus/agents/{agent_id}/act")
async def act(
    nexus: Hub,
    agent_id: str,
    action: ActRequest,
    by: Known,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
    wait: Annotated[float, Query(ge=0, le=WAIT_MOST)] = 10.0,
) -> Response:
    """Hand in the agent's action; 202 when it is not resolved in time, and the same key asks again."""
    by.may_act_for(agent_id)
    external = _external(nexus, agent_id)
    future = external.act(Action(action.name, action.parameters, action.reasoning), idempotency_key)
    try:
        async with asyncio.timeout(wait):
            result = await asyncio.shield(future)
    except TimeoutError:
        return answer({"pending": True}, 202)
    return answer({"result": result})


def _external(nexus: Nexus, agent_id: str) -> ExternalAgent:
    with nexus.ledger.look() as book:
        book.agent(agent_id)
    if agent_id not in nexus.external:
        raise NotInWorldError(f"{agent_id!r} is not decided for over the wire.")
    return nexus.external[agent_id]


def _place(nexus: Nexus, agent_id: str) -> str:
    stay = nexus.stays.get(agent_id)
    return "nexus" if stay is None else stay.session.game
