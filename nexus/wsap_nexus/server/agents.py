"""Agents over the wire: register, list, look at, change, act for."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from wsap_nexus.agents import messages as waiting
from wsap_nexus.agents.identity import set_persona, set_policy
from wsap_nexus.agents.portable import check_not_removed
from wsap_nexus.http.callers import Admin, Known, TokenStore
from wsap_nexus.http.replies import Key, Wait, answer
from wsap_nexus.hub.served import Hub
from wsap_nexus.server import shapes
from wsap_nexus.server.deps import AgentId, Once, once
from wsap_nexus.server.policies import read_policies
from wsap_nexus.server.seats import act_errand, check_external, observe, seat_says, the_agent
from wsap_nexus.store.entities import EXTERNAL
from wsap_nexus.store.events import AgentRenamed

router = APIRouter(tags=["agents"])
_STILL = "The action is being resolved; ask again with the same idempotency key."


@router.post("/nexus/agents", responses={200: {"model": shapes.Registered}, 201: {"model": shapes.Registered}})
async def register(nexus: Hub, new: shapes.NewAgent, by: Known, tokens: TokenStore) -> Response:
    """Register an agent (201, with its token), or get the one of that id as it is (200)."""
    if by.agent_id is not None:
        by.may_act_for(new.id)
        return answer({"agent": the_agent(nexus, new.id)})
    given = {"*": EXTERNAL} if new.policies is None else read_policies(nexus, new.policies)
    with nexus.ledger.change() as book:
        agent, fresh = book.register(new.id, name=new.name, persona=new.persona, policies=given)
    body: dict[str, Any] = {"agent": agent}
    if fresh:
        body["token"] = tokens.issue(agent.id)
        nexus.start_agent(agent)
    return answer(body, 201 if fresh else 200)


@router.get("/nexus/agents", responses={200: {"model": shapes.AgentPage}})
async def agents(
    nexus: Hub, after: Annotated[str, Query(max_length=64)] = "", limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> Response:
    """List agents by id, a page at a time."""
    with nexus.ledger.look() as book:
        found = book.agents(after=after, limit=limit + 1)
    page = found[:limit]
    return answer({"agents": page, "next": page[-1].id if len(found) > limit else None})


@router.get("/nexus/agents/{agent_id}", responses={200: {"model": shapes.Whole}})
async def agent(nexus: Hub, agent_id: AgentId) -> Response:
    """Everything that is kept of an agent."""
    with nexus.ledger.look() as book:
        body = {
            "agent": book.agent(agent_id),
            "skills": book.skills(agent_id),
            "items": book.items(agent_id),
            "avatars": book.avatars(agent_id),
            "achievements": [dict(row._mapping) for row in book.achievements(agent_id)],
            "sessions": book.sessions(agent_id=agent_id, limit=20),
        }
    return answer(body)


@router.patch("/nexus/agents/{agent_id}", responses={200: {"model": shapes.Registered}})
async def change(nexus: Hub, agent_id: AgentId, patch: shapes.AgentPatch, by: Admin) -> Response:
    """Change who an agent is and who decides for it; that holds from its next session or visit on."""
    with nexus.ledger.look() as book:
        known = book.agent(agent_id).policies
    policies = {} if patch.policies is None else read_policies(nexus, patch.policies, known)
    with nexus.ledger.change() as book:
        before = book.agent(agent_id)
        if patch.name is not None:
            book.update_agent(agent_id, name=patch.name or agent_id)
            book.note(AgentRenamed(agent_id=agent_id, name=patch.name or agent_id, before=before.name))
        if patch.persona is not None:
            set_persona(book, agent_id, patch.persona)
        if patch.policies is not None:
            for game in sorted(before.policies.keys() - policies.keys()):
                set_policy(book, agent_id, game, None, nexus.host)
            for game, policy in policies.items():
                set_policy(book, agent_id, game, policy, nexus.host)
        found = book.agent(agent_id)
    return answer({"agent": found})


@router.post("/nexus/agents/{agent_id}/token", responses={201: {"model": shapes.TokenAnswer}})
async def new_token(nexus: Hub, agent_id: AgentId, by: Admin, tokens: TokenStore) -> Response:
    """Give an agent a new token; those that it had are good no longer."""
    the_agent(nexus, agent_id)
    return answer({"agent_id": agent_id, "token": tokens.issue(agent_id)}, 201)


@router.post("/nexus/agents/{agent_id}/step", responses={200: {"model": shapes.Registered}})
async def step(nexus: Hub, agent_id: AgentId, by: Admin) -> Response:
    """Let a paused agent make one decision."""
    found = the_agent(nexus, agent_id)
    nexus.step_once(agent_id)
    return answer({"agent": found})


# --- its senses and its hands ---------------------------------------------------------------------


@router.get(
    "/nexus/agents/{agent_id}/observation",
    responses={200: {"model": shapes.Seen}, 202: {"model": shapes.Pending}},
)
async def observation(nexus: Hub, agent_id: AgentId, by: Known, wait: Wait = 10.0) -> Response:
    """What the agent sees at its next decision, in the nexus or in a world; 202 when there is none in time."""
    by.may_act_for(agent_id)
    check_external(nexus, the_agent(nexus, agent_id))
    return await observe(nexus, agent_id, wait)


@router.post("/nexus/agents/{agent_id}/act", responses={200: {"model": shapes.Acted}, 202: {"model": shapes.Pending}})
async def act(
    nexus: Hub,
    agent_id: AgentId,
    action: shapes.ActRequest,
    by: Known,
    answers: Once,
    key: Key = None,
    wait: Wait = 10.0,
) -> Response:
    """Hand in the agent's action; 202 when it is not resolved in time, and the same key asks again."""
    by.may_act_for(agent_id)
    check_external(nexus, the_agent(nexus, agent_id))
    errand = act_errand(nexus, agent_id, action, agent_id)
    return await once(answers, by, key, errand, wait, _STILL)


@router.get(
    "/nexus/agents/{agent_id}/action-space",
    responses={200: {"model": shapes.Spaces}, 202: {"model": shapes.Pending}},
)
async def action_space(nexus: Hub, agent_id: AgentId, by: Known, wait: Wait = 10.0) -> Response:
    """All actions there are where the agent is; what is legal now is in its observation."""
    by.may_act_for(agent_id)
    return await seat_says(nexus, agent_id, wait, "action_space")


@router.get(
    "/nexus/agents/{agent_id}/description",
    responses={200: {"model": shapes.Described}, 202: {"model": shapes.Pending}},
)
async def description(nexus: Hub, agent_id: AgentId, by: Known, wait: Wait = 10.0) -> Response:
    """What the agent is told of where it is, once."""
    by.may_act_for(agent_id)
    return await seat_says(nexus, agent_id, wait, "description")


# --- messages -------------------------------------------------------------------------------------


@router.post("/nexus/agents/{agent_id}/messages", responses={201: {"model": shapes.Sent}})
async def send(nexus: Hub, agent_id: AgentId, message: shapes.NewMessage, by: Known) -> Response:
    """Send a message from an agent in the nexus: to all who are there, to one, or to its team."""
    by.may_act_for(agent_id)
    with nexus.ledger.change() as book:
        check_not_removed(book, agent_id)
        to = waiting.send(book, agent_id, message.kind, message.content, to=message.to)
    return answer({"recipients": to}, 201)


@router.get("/nexus/agents/{agent_id}/messages", responses={200: {"model": shapes.Messages}})
async def messages(
    nexus: Hub, agent_id: AgentId, by: Known, limit: Annotated[int, Query(ge=1, le=500)] = 100
) -> Response:
    """The messages that wait for an agent, oldest first; they wait until they are said to be read."""
    by.may_act_for(agent_id)
    with nexus.ledger.look() as book:
        check_not_removed(book, agent_id)
        found = waiting.inbox(book, agent_id, limit=limit)
    return answer({"messages": found})


@router.post("/nexus/agents/{agent_id}/messages/read", responses={200: {"model": shapes.Messages}})
async def read(nexus: Hub, agent_id: AgentId, wanted: shapes.ReadRequest, by: Known) -> Response:
    """Take messages as read, and return those that still wait."""
    by.may_act_for(agent_id)
    with nexus.ledger.change() as book:
        check_not_removed(book, agent_id)
        waiting.mark_read(book, agent_id, wanted.ids)
        found = waiting.inbox(book, agent_id, limit=100)
    return answer({"messages": found})
