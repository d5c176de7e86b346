"""Routes of diaries, and of conversations between people and agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from wsap_core.protocol.wire import dumps, encode
from wsap_nexus.agents import diary, talk
from wsap_nexus.agents.messages import checked
from wsap_nexus.http.replies import Reply, answer, reply_of
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.server import requests, responses
from wsap_nexus.server.deps import ManagedAgent, Once30, OwnAgent, replies
from wsap_nexus.server.idempotency import IdempotentRequest, Intent
from wsap_nexus.store.entities import Answered, DiaryEntry, Exchange

router = APIRouter(prefix="/agents/{agent_id}", tags=["agents"])

Before = Annotated[int | None, Query(ge=1, le=2**53, description="Entries with smaller numbers: `next` of a page.")]
Limit = Annotated[int, Query(ge=1, le=200)]


@router.get("/diary", responses=replies(responses.Diary))
async def read_diary(nexus: Hub, agent_id: OwnAgent, before: Before = None, limit: Limit = 50) -> Response:
    """An agent's diary of its sessions in worlds, newest first, a page at a time."""
    with nexus.nexus_store.look() as tx:
        tx.agent(agent_id)
        found = diary.entries(tx, agent_id, before=before, limit=limit + 1)
    return answer(_page("entries", found, limit))


@router.get("/talk", responses=replies(responses.Talk))
async def read_talk(nexus: Hub, agent_id: OwnAgent, before: Before = None, limit: Limit = 50) -> Response:
    """What people said to an agent and what it answered, newest first, a page at a time."""
    with nexus.nexus_store.look() as tx:
        tx.agent(agent_id)
        found = talk.exchanges(tx, agent_id, before=before, limit=limit + 1)
    return answer(_page("exchanges", found, limit))


@router.post("/talk", responses=replies(Answered, 200, 202))
async def say(nexus: Hub, agent_id: ManagedAgent, said: requests.NewTalk, once: Once30) -> Response:
    """Say something to an agent: in the nexus it answers, in a world it hears a whisper; 202 while it thinks."""
    request = _idempotent_talk(nexus, agent_id, checked(said.text))
    return await once.reply(request, "The agent has not answered yet; ask again with the same idempotency key.")


def _idempotent_talk(nexus: Nexus, agent_id: str, text: str) -> IdempotentRequest:
    async def do() -> Reply:
        return reply_of(encode(await nexus.agent_context.words.talk(agent_id, text)))

    def intend() -> Intent:
        with nexus.nexus_store.look() as tx:
            return {"last": tx.last_seq()}

    def recall(intent: Intent) -> Reply | None:
        with nexus.nexus_store.look() as tx:
            since = talk.exchanges(tx, agent_id, after=int(intent["last"]), limit=200)
        found = next((exchange for exchange in reversed(since) if exchange.said == text), None)
        return None if found is None else reply_of(encode(Answered(found.reply, found.how)))

    return IdempotentRequest(f"talk {agent_id} {dumps(text)}", intend, do, recall)


def _page(name: str, found: Sequence[DiaryEntry] | Sequence[Exchange], limit: int) -> dict[str, Any]:
    page = found[:limit]
    return {name: [encode(each) for each in page], "next": page[-1].number if len(found) > limit else None}
