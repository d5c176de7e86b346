"""What agents say to people and write in their diaries, over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from wsap_core.protocol.wire import dumps, encode
from wsap_nexus.agents import diary, talk
from wsap_nexus.agents.portable import check_not_removed
from wsap_nexus.http.callers import Admin
from wsap_nexus.http.replies import Key, Reply, Wait, answer, reply_of
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.server import shapes
from wsap_nexus.server.deps import AgentId, Once, once
from wsap_nexus.server.idempotency import IdempotentRequest, Intent

router = APIRouter(tags=["agents"])

Before = Annotated[int | None, Query(ge=1, le=2**53, description="Only what has a smaller number: `next` of a page.")]
Limit = Annotated[int, Query(ge=1, le=200)]
_STILL = "The agent has not answered yet; ask again with the same idempotency key."


@router.get("/nexus/agents/{agent_id}/diary", responses={200: {"model": shapes.Diary}})
async def read_diary(nexus: Hub, agent_id: AgentId, before: Before = None, limit: Limit = 50) -> Response:
    """What an agent wrote about its stays in worlds, newest first, a page at a time."""
    with nexus.ledger.look() as book:
        book.agent(agent_id)
        found = diary.entries(book, agent_id, before=before, limit=limit + 1)
    return answer(_page("entries", found, limit))


@router.get("/nexus/agents/{agent_id}/talk", responses={200: {"model": shapes.Talk}})
async def read_talk(nexus: Hub, agent_id: AgentId, before: Before = None, limit: Limit = 50) -> Response:
    """What people said to an agent and what it answered, newest first, a page at a time."""
    with nexus.ledger.look() as book:
        book.agent(agent_id)
        found = talk.exchanges(book, agent_id, before=before, limit=limit + 1)
    return answer(_page("exchanges", found, limit))


@router.post(
    "/nexus/agents/{agent_id}/talk", responses={200: {"model": shapes.TalkAnswer}, 202: {"model": shapes.Pending}}
)
async def say(
    nexus: Hub, agent_id: AgentId, said: shapes.NewTalk, by: Admin, answers: Once, key: Key = None, wait: Wait = 30.0
) -> Response:
    """Say something to an agent: in the nexus it answers, in a world it hears a whisper; 202 while it thinks."""
    with nexus.ledger.look() as book:
        check_not_removed(book, agent_id)
    return await once(answers, by, key, _talk_errand(nexus, agent_id, talk.checked(said.text)), wait, _STILL)


def _talk_errand(nexus: Nexus, agent_id: str, text: str) -> IdempotentRequest:
    async def do() -> Reply:
        return reply_of(_told(await nexus.talk(agent_id, text)))

    def intend() -> Intent:
        with nexus.ledger.look() as book:
            return {"last": book.last_seq()}

    def recall(intent: Intent) -> Reply | None:
        with nexus.ledger.look() as book:
            since = talk.exchanges(book, agent_id, after=int(intent["last"]), limit=200)
        found = next((exchange for exchange in reversed(since) if exchange.said == text), None)
        return None if found is None else reply_of(_told(talk.Answer(found.reply, found.how)))

    return IdempotentRequest(f"talk {agent_id} {dumps(text)}", intend, do, recall)


def _told(said: talk.Answer) -> dict[str, Any]:
    # Any: JSON.
    return {"text": said.text, "how": said.how}


def _page(name: str, found: Sequence[diary.Entry] | Sequence[talk.Exchange], limit: int) -> dict[str, Any]:
    # Any: JSON.
    page = found[:limit]
    return {name: [encode(each) for each in page], "next": page[-1].number if len(found) > limit else None}
