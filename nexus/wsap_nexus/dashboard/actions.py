"""What a person can do from the dashboard. Each needs the token in a header, so that no other page can do it."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from wsap_nexus.agents.identity import set_persona
from wsap_nexus.dashboard.keys import OneTimeKey
from wsap_nexus.dashboard.serializers import json_response, shortened
from wsap_nexus.errors import NotInWorldError
from wsap_nexus.http.callers import Admin, TokenStore
from wsap_nexus.http.refusals import UnauthorizedError
from wsap_nexus.hub import reconciliation
from wsap_nexus.hub.served import Hub
from wsap_nexus.store.entities import EntryRequest

router = APIRouter(prefix="/dashboard")

TIMEOUT = 20.0
"""Seconds that an agent is given to leave a world, and to arrive in another."""


class Key(BaseModel):
    """The key of the address that was printed."""

    model_config = ConfigDict(extra="forbid")

    key: str = Field(max_length=100)


class Settlement(BaseModel):
    """What a person says became of a move."""

    model_config = ConfigDict(extra="forbid")

    outcome: Literal["arrived", "returned"]
    transfer: str = Field(min_length=1, max_length=200)


class Persona(BaseModel):
    """Who an agent is, in words."""

    model_config = ConfigDict(extra="forbid")

    persona: str = Field(max_length=10_000)


class Said(BaseModel):
    """What a person says."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(min_length=1, max_length=2000)


class Destination(BaseModel):
    """Where an agent is sent."""

    model_config = ConfigDict(extra="forbid")

    game: str = Field(max_length=200)
    goals: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=20)
    exit_when: str = Field(default="", max_length=500)
    steps: int | None = Field(default=None, ge=1, le=10**9)


@router.post("/unlock")
async def unlock(request: Request, given: Key, tokens: TokenStore) -> Response:
    """Exchange the key of the printed address for the token, once."""
    key: OneTimeKey | None = request.app.state.one_time_key
    if key is None or not key.use(given.key):
        raise UnauthorizedError("This address was used before; paste the token from the file nexus.token instead.")
    return json_response({"token": tokens.own})


@router.get("/token")
async def check(by: Admin) -> Response:
    """Say that a token is good."""
    return json_response({"good": True})


@router.post("/agents/{agent_id}/pause")
async def pause(nexus: Hub, agent_id: str, by: Admin) -> Response:
    """Let an agent begin no further decision."""
    nexus.pause(agent_id)
    return json_response({"done": True})


@router.post("/agents/{agent_id}/resume")
async def resume(nexus: Hub, agent_id: str, by: Admin) -> Response:
    """Let a paused agent go on."""
    nexus.resume(agent_id)
    return json_response({"done": True})


@router.post("/agents/{agent_id}/step")
async def step(nexus: Hub, agent_id: str, by: Admin) -> Response:
    """Let a paused agent make one decision."""
    with nexus.ledger.look() as book:
        book.agent(agent_id)
    nexus.step_once(agent_id)
    return json_response({"done": True})


@router.post("/agents/{agent_id}/recall")
async def recall(nexus: Hub, agent_id: str, by: Admin) -> Response:
    """Bring an agent back into the nexus after its present decision."""
    if not nexus.recall(agent_id):
        raise NotInWorldError(f"{agent_id!r} is in no world.")
    return json_response({"done": True})


@router.post("/agents/{agent_id}/settle")
async def settle(nexus: Hub, agent_id: str, said: Settlement, by: Admin) -> Response:
    """Decide about a move that is in doubt, because the game it led to can't be asked."""
    with nexus.ledger.change() as book:
        reconciliation.settle(book, agent_id, said.outcome, said.transfer)
    return json_response({"done": True})


@router.post("/agents/{agent_id}/send")
async def send(nexus: Hub, agent_id: str, where: Destination, by: Admin) -> Response:
    """Send an agent into a game, out of the world that it is in."""
    terms = EntryRequest(tuple(where.goals), where.exit_when, where.steps)
    nexus.game_info(where.game)
    try:
        async with asyncio.timeout(TIMEOUT):
            if agent_id in nexus.live.sessions:
                await nexus.exit(agent_id)
            stay = await nexus.enter(agent_id, where.game, terms)
    except TimeoutError:
        return json_response({"done": False, "message": "It is on its way; that takes longer than usual."})
    return json_response({"done": True, "world": stay.session.world_id})


@router.put("/agents/{agent_id}/persona")
async def persona(nexus: Hub, agent_id: str, new: Persona, by: Admin) -> Response:
    """Write who an agent is anew; it plays by it from its next stay on."""
    with nexus.ledger.change() as book:
        set_persona(book, agent_id, new.persona)
    return json_response({"done": True})


@router.post("/agents/{agent_id}/talk")
async def talk(nexus: Hub, agent_id: str, said: Said, by: Admin) -> Response:
    """Say something to an agent, and return its answer."""
    answer = await nexus.talk(agent_id, said.text)
    return json_response({"done": True, "text": shortened(answer.text), "how": answer.how})
