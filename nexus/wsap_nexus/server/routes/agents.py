"""Routes of agents: records, observations and actions, messages, diaries and conversations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from wsap_core.protocol.wire import dumps, encode
from wsap_nexus.agents import chronicle, identity, talk
from wsap_nexus.agents import messages as waiting
from wsap_nexus.agents.identity import check_models
from wsap_nexus.agents.messages import checked
from wsap_nexus.agents.portable import check_not_removed
from wsap_nexus.errors import NotInWorldError
from wsap_nexus.http.access.auth import record_json, sees
from wsap_nexus.http.access.callers import Admin, Known, Reader, TokenStore
from wsap_nexus.http.replies import Reply, Wait, answer, reply_of
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.server.bodies import requests, responses, turns, watched
from wsap_nexus.server.deps import AgentId, ManagedAgent, Once10, Once30, OwnAgent, replies
from wsap_nexus.server.idempotency import IdempotentRequest, Intent
from wsap_nexus.server.policies import read_policies
from wsap_nexus.server.routes.minds import mind_of
from wsap_nexus.server.routes.recorded.runs import usage_by_session
from wsap_nexus.server.seats import check_external, describe_seat, idempotent_act, observe, the_agent
from wsap_nexus.server.serializers import json_response, past_session_json, session_json
from wsap_nexus.server.turns import After, turn_of
from wsap_nexus.store.entities import EXTERNAL, Answered, DiaryEntry, Exchange

router = APIRouter(prefix="/agents", tags=["agents"])

Before = Annotated[int | None, Query(ge=1, le=2**53, description="Entries with lower numbers: `next` of a page.")]
Limit = Annotated[int, Query(ge=1, le=200)]

SESSIONS_SHOWN = 30
"""Maximum number of an agent's sessions in one response about it."""


@router.post("", responses=replies(responses.Registered, 200, 201))
async def register(nexus: Hub, new: requests.NewAgent, by: Known, tokens: TokenStore) -> Response:
    """Register an agent (201, with its token), or return the existing one with that id (200)."""
    if by.agent_id is not None:
        by.may_act_for(new.id)
        return answer({"agent": the_agent(nexus, new.id)})
    policies = {"*": EXTERNAL} if new.policies is None else read_policies(nexus, new.policies)
    with nexus.nexus_store.look() as tx:
        known = tx.find_agent(new.id)
    if known is None:
        await check_models(policies.values(), nexus.host)
    with nexus.nexus_store.change() as tx:
        agent, fresh = tx.register(new.id, name=new.name, persona=new.persona, policies=policies)
    body: dict[str, Any] = {"agent": agent}
    if fresh:
        body["token"] = tokens.issue(agent.id)
        nexus.start_agent(agent)
    return answer(body, 201 if fresh else 200)


@router.get("", responses=replies(watched.AgentPage))
async def agents(
    nexus: Hub,
    who: Reader,
    after: Annotated[str, Query(max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    search: Annotated[str, Query(max_length=200, description="A part of an id or name.")] = "",
) -> Response:
    """List agents by id, a page at a time; only the public fields of agents that the token is not valid for."""
    with nexus.nexus_store.look() as tx:
        found = tx.agents(after=after, search=search, limit=limit + 1)
    page = found[:limit]
    live = nexus.live.sessions
    return json_response(
        {
            "agents": [record_json(each, private=sees(who, each.id)) for each in page],
            "decides": {each.id: sorted({policy.agent for policy in each.policies.values()})[:5] for each in page},
            "stays": {a.id: session_json(live[a.id], private=sees(who, a.id)) for a in page if a.id in live},
            "next": page[-1].id if len(found) > limit else None,
        }
    )


@router.get("/{agent_id}", responses=replies(watched.Whole))
async def agent(nexus: Hub, agent_id: AgentId, who: Reader) -> Response:
    """Everything that the nexus stores about an agent; without its token, only its public fields."""
    private = sees(who, agent_id)
    live = nexus.live.sessions.get(agent_id)
    with nexus.nexus_store.look() as tx:
        identity = tx.agent(agent_id)
        sessions = tx.sessions(agent_id=agent_id, limit=SESSIONS_SHOWN)
        body: dict[str, Any] = {
            "agent": record_json(identity, private=private),
            "stay": None if live is None else session_json(live, private=private),
            "sessions": [past_session_json(session, private=private) for session in sessions],
            "visits": tx.visits(agent_id),
        }
        if private:
            body |= mind_of(tx, identity)
    return json_response(body | {"spent": usage_by_session(nexus, sessions)})


@router.get("/{agent_id}/sessions", responses=replies(watched.SessionPage))
async def sessions(
    nexus: Hub,
    agent_id: AgentId,
    who: Reader,
    before: Annotated[str | None, Query(max_length=64, description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 30,
) -> Response:
    """An agent's sessions in worlds, newest first, a page at a time, and what models cost in each."""
    private = sees(who, agent_id)
    with nexus.nexus_store.look() as tx:
        tx.agent(agent_id)
        found = tx.sessions(agent_id=agent_id, before=before, limit=limit)
    return json_response(
        {
            "sessions": [past_session_json(session, private=private) for session in found],
            "spent": usage_by_session(nexus, found),
            "next": found[-1].id if len(found) == limit else None,
        }
    )


@router.patch("/{agent_id}", responses=replies(responses.Registered))
async def change(nexus: Hub, agent_id: AgentId, patch: requests.AgentPatch, by: Admin) -> Response:
    """Change an agent's name, persona, policies, team, core memories or strategies; persona, policies and what it keeps
    in mind apply from its next session on."""
    with nexus.nexus_store.look() as tx:
        known = tx.agent(agent_id).policies
    policies = None if patch.policies is None else read_policies(nexus, patch.policies, known)
    await check_models((policy for game, policy in (policies or {}).items() if known.get(game) != policy), nexus.host)
    with nexus.nexus_store.change() as tx:
        found = identity.change(
            tx, agent_id, nexus.host, name=patch.name, persona=patch.persona, policies=policies, team=patch.team,
            core_memories=patch.core_memories, strategies=patch.strategies,
        )  # fmt: skip
    return answer({"agent": found})


@router.post("/{agent_id}/token", responses=replies(responses.TokenAnswer, 201))
async def new_token(nexus: Hub, agent_id: AgentId, by: Admin, tokens: TokenStore) -> Response:
    """Give an agent a new token; its earlier tokens become invalid."""
    the_agent(nexus, agent_id)
    return answer({"agent_id": agent_id, "token": tokens.issue(agent_id)}, 201)


@router.post("/{agent_id}/step", responses=replies(responses.Registered))
async def step(nexus: Hub, agent_id: AgentId, by: Admin) -> Response:
    """Let a paused agent make one decision."""
    found = the_agent(nexus, agent_id)
    nexus.step_once(agent_id)
    return answer({"agent": found})


@router.post("/{agent_id}/recall", responses=replies(responses.Held))
async def recall(nexus: Hub, agent_id: ManagedAgent) -> Response:
    """Bring an agent back into the nexus after its current decision, whatever the world says."""
    if not nexus.recall(agent_id):
        raise NotInWorldError(f"{agent_id!r} is not in a world.")
    return answer({"agent": agent_id, "state": the_agent(nexus, agent_id).state})


# --- observations and actions -----------------------------------------------------------------------


@router.get("/{agent_id}/observation", responses=replies(responses.Seen, 200, 202))
async def observation(nexus: Hub, agent_id: OwnAgent, wait: Wait = 10.0) -> Response:
    """The agent's next observation, in the nexus or in a world; 202 if it has nothing to decide in time."""
    check_external(nexus, the_agent(nexus, agent_id))
    return await observe(nexus, agent_id, wait)


@router.get("/{agent_id}/turn", responses=replies(turns.Turn, 200, 202))
async def turn(nexus: Hub, agent_id: OwnAgent, wait: Wait = 10.0, after: After = "") -> Response:
    """The agent's next turn for a person who plays it, in words; 202 if it has nothing to decide in time."""
    return await turn_of(nexus, agent_id, wait, after)


@router.post("/{agent_id}/act", responses=replies(responses.Acted, 200, 202))
async def act(nexus: Hub, agent_id: OwnAgent, action: requests.ActRequest, once: Once10) -> Response:
    """Take an action; 202 if it is not resolved in time: repeat the request with the same key."""
    check_external(nexus, the_agent(nexus, agent_id))
    request = idempotent_act(nexus, agent_id, action, agent_id)
    return await once.reply(request, "The action is being resolved; repeat the request with the same key.")


@router.get("/{agent_id}/action-space", responses=replies(responses.Spaces, 200, 202))
async def action_space(nexus: Hub, agent_id: OwnAgent, wait: Wait = 10.0) -> Response:
    """All actions where the agent is; its observation says which are legal now."""
    return await describe_seat(nexus, agent_id, wait, "action_space")


@router.get("/{agent_id}/description", responses=replies(responses.Described, 200, 202))
async def description(nexus: Hub, agent_id: OwnAgent, wait: Wait = 10.0) -> Response:
    """The description of the place where the agent is."""
    return await describe_seat(nexus, agent_id, wait, "description")


# --- messages -------------------------------------------------------------------------------------


@router.post("/{agent_id}/messages", responses=replies(responses.Sent, 201))
async def send(nexus: Hub, agent_id: OwnAgent, message: requests.NewMessage) -> Response:
    """Send a message from an agent in the nexus to everybody there, to one agent, or to its team."""
    with nexus.nexus_store.change() as tx:
        check_not_removed(tx, agent_id)
        kind = message.kind or ("broadcast" if message.to is None else "direct")
        to = waiting.send(tx, agent_id, kind, message.content, to=message.to)
    return answer({"recipients": to}, 201)


@router.get("/{agent_id}/messages", responses=replies(responses.Messages))
async def messages(nexus: Hub, agent_id: OwnAgent, limit: Annotated[int, Query(ge=1, le=500)] = 100) -> Response:
    """An agent's unread messages, oldest first; this does not mark them as read."""
    with nexus.nexus_store.look() as tx:
        check_not_removed(tx, agent_id)
        found = waiting.inbox(tx, agent_id, limit=limit)
    return answer({"messages": found})


@router.post("/{agent_id}/messages/read", responses=replies(responses.Messages))
async def read(nexus: Hub, agent_id: OwnAgent, wanted: requests.ReadRequest) -> Response:
    """Mark messages as read, and return the remaining unread ones."""
    with nexus.nexus_store.change() as tx:
        check_not_removed(tx, agent_id)
        waiting.mark_read(tx, agent_id, wanted.ids)
        found = waiting.inbox(tx, agent_id, limit=100)
    return answer({"messages": found})


# --- diaries and conversations --------------------------------------------------------------------


@router.get("/{agent_id}/diary", responses=replies(responses.Diary))
async def read_diary(nexus: Hub, agent_id: OwnAgent, before: Before = None, limit: Limit = 50) -> Response:
    """An agent's diary of its sessions in worlds, newest first, a page at a time."""
    with nexus.nexus_store.look() as tx:
        tx.agent(agent_id)
        found = chronicle.entries(tx, agent_id, before=before, limit=limit + 1)
    return answer(_page("entries", found, limit))


@router.get("/{agent_id}/talk", responses=replies(responses.Talk))
async def read_talk(nexus: Hub, agent_id: OwnAgent, before: Before = None, limit: Limit = 50) -> Response:
    """The conversations of people with an agent, newest first, a page at a time."""
    with nexus.nexus_store.look() as tx:
        tx.agent(agent_id)
        found = talk.exchanges(tx, agent_id, before=before, limit=limit + 1)
    return answer(_page("exchanges", found, limit))


@router.post("/{agent_id}/talk", responses=replies(Answered, 200, 202))
async def say(nexus: Hub, agent_id: ManagedAgent, said: requests.NewTalk, once: Once30) -> Response:
    """Talk to an agent: in the nexus it replies, in a world it gets a whisper; 202 while it thinks."""
    request = _idempotent_talk(nexus, agent_id, checked(said.text))
    return await once.reply(request, "The agent has not replied yet; repeat the request with the same key.")


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
