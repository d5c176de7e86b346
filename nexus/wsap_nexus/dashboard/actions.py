"""Routes of the dashboard's actions that the wire API lacks. All but unlocking need the token, in a header."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response
from pydantic import Field

from wsap_nexus.dashboard.guard import OneTimeKey
from wsap_nexus.dashboard.serializers import json_response
from wsap_nexus.errors import NotInWorldError
from wsap_nexus.http import replies
from wsap_nexus.http.callers import Admin, TokenStore
from wsap_nexus.http.refusals import UnauthorizedError
from wsap_nexus.hub.served import Hub
from wsap_nexus.store.entities import EntryRequest

router = APIRouter(prefix="/dashboard")

TIMEOUT = 20.0
"""Seconds for an agent to leave a world and to enter another."""


class Key(replies.Request):
    """The key of the printed address."""

    key: str = Field(max_length=100)


class Destination(replies.TermsRequest):
    """The destination of an agent."""

    game: str = Field(max_length=200)


@router.post("/unlock")
async def unlock(request: Request, given: Key, tokens: TokenStore) -> Response:
    """Exchange the key of the printed address for the token, once."""
    key: OneTimeKey | None = request.app.state.one_time_key
    if key is None or not key.use(given.key):
        raise UnauthorizedError("This address was already used; paste the token from the file nexus.token instead.")
    return json_response({"token": tokens.own})


@router.get("/token")
async def check(by: Admin) -> Response:
    """Confirm that a token is valid."""
    return json_response({"good": True})


@router.post("/agents/{agent_id}/recall")
async def recall(nexus: Hub, agent_id: str, by: Admin) -> Response:
    """Bring an agent back into the nexus after its current decision."""
    if not nexus.recall(agent_id):
        raise NotInWorldError(f"{agent_id!r} is not in a world.")
    return json_response({"done": True})


@router.post("/agents/{agent_id}/send")
async def send(nexus: Hub, agent_id: str, where: Destination, by: Admin) -> Response:
    """Send an agent into a game, from the nexus or from another world."""
    terms = EntryRequest(tuple(where.goals), where.exit_when, where.steps)
    nexus.entrance.game_info(where.game)
    try:
        async with asyncio.timeout(TIMEOUT):
            if agent_id in nexus.live.sessions:
                await nexus.exit(agent_id)
            stay = await nexus.enter(agent_id, where.game, terms)
    except TimeoutError:
        return json_response({"done": False, "message": "The agent is still in transit; this takes longer than usual."})
    return json_response({"done": True, "world": stay.session.world_id})
