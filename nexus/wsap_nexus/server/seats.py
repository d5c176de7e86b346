"""Acting for an agent that is decided for over the wire, wherever it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from fastapi import Response

from wsap_core.protocol import Action, Observation
from wsap_core.protocol.wire import dumps, encode
from wsap_nexus.errors import TransitError
from wsap_nexus.http.refusals import SessionClosedError
from wsap_nexus.http.replies import Reply, answer, pending, reply_of
from wsap_nexus.hub.external import ExternalAgent, SeatLeftError
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.server.idempotency import IdempotentRequest, Intent
from wsap_nexus.server.shapes import ActRequest
from wsap_nexus.store.entities import AgentIdentity, SessionRecord


class NotExternalError(TransitError):
    """Somebody here decides for the agent, so that nobody outside can."""

    code = "NOT_EXTERNAL"


def the_agent(nexus: Nexus, agent_id: str) -> AgentIdentity:
    """Return an agent.

    Raises:
        UnknownNameError: there is none of that id.
    """
    with nexus.ledger.look() as book:
        return book.agent(agent_id)


def place_of(nexus: Nexus, agent_id: str) -> tuple[str, str | None]:
    """Return where an agent is (`nexus`, or a game), and its session there."""
    stay = nexus.live.sessions.get(agent_id)
    return ("nexus", None) if stay is None else (stay.session.game, stay.session.id)


def check_external(nexus: Nexus, agent: AgentIdentity) -> None:
    """Refuse to decide for an agent that somebody here decides for.

    Raises:
        NotExternalError: it is one.
    """
    place, _ = place_of(nexus, agent.id)
    policy = agent.policy(place)
    if policy is None or not policy.external:
        decides = f"{policy.agent!r}" if policy is not None else "the world's own agent"
        raise NotExternalError(f"{decides} decides for {agent.id!r} in {place!r}, not somebody over the wire.")


def open_session(nexus: Nexus, session_id: str, record: SessionRecord) -> LiveSession:
    """Return the stay of a session that is open.

    Raises:
        SessionClosedError: it is over.
        SeatLeftError: it is being gone on with; ask again.
    """
    if record.closed is not None:
        raise SessionClosedError(f"The session {session_id!r} ended ({record.reason}) at {record.closed}.")
    stay = nexus.live.sessions.get(record.agent_id)
    if stay is None or stay.session.id != session_id:
        raise SeatLeftError(f"The session {session_id!r} is being gone on with; ask again.")
    return stay


async def observe(nexus: Nexus, agent_id: str, wait: float, session_id: str | None = None) -> Response:
    """Answer with what an agent sees at its next decision; 202 when it has nothing to decide in time."""
    seen = await next_observation(nexus, agent_id, wait)
    place, session = place_of(nexus, agent_id)
    if session_id is not None and session != session_id:
        raise SessionClosedError(f"The session {session_id!r} has ended.")
    if seen is None:
        return pending("There is nothing to decide yet.")
    return answer({"place": place, "session_id": session, "observation": seen})


async def next_observation(nexus: Nexus, agent_id: str, wait: float) -> Observation | None:
    """Return what an agent sees at its next decision; None when it has nothing to decide in time."""
    try:
        async with asyncio.timeout(wait):
            _, seen = await nexus.live.external.observation(agent_id)
            return seen
    except TimeoutError:
        return None


async def current_seat(nexus: Nexus, agent_id: str, wait: float) -> ExternalAgent | None:
    """Return the seat that an agent is in; None when it is on its way all the time."""
    try:
        async with asyncio.timeout(wait):
            return await nexus.live.external.seat(agent_id)
    except TimeoutError:
        return None


async def seat_says(nexus: Nexus, agent_id: str, wait: float, what: str, place: str | None = None) -> Response:
    """Answer with something that the agent's seat knows; 202 when the agent is on its way all the time.

    Args:
        nexus: where the agent is.
        agent_id: decided for over the wire.
        wait: seconds to wait for it to arrive.
        what: "description" or "action_space".
        place: where the seat is; wherever the agent is by then when None.

    Raises:
        NotExternalError: somebody here decides for the agent.
    """
    check_external(nexus, the_agent(nexus, agent_id))
    seat = await current_seat(nexus, agent_id, wait)
    if seat is None:
        return pending("The agent is on its way.")
    told = {"description": seat.description, "action_space": seat.action_space}[what]
    return answer({"place": place or place_of(nexus, agent_id)[0], what: told})


def act_errand(nexus: Nexus, agent_id: str, request: ActRequest, what: str) -> IdempotentRequest:
    """Return what it is to hand in an action, for it to be done once."""
    action = Action(request.name, request.parameters, request.reasoning)

    async def do() -> Reply:
        seat = nexus.live.external.get(agent_id)
        if seat is None:
            raise SeatLeftError(f"{agent_id!r} is on its way; ask for its observation first.")
        result = await seat.act(action)
        # Nothing is acknowledged before it is kept.
        await asyncio.to_thread(nexus.store.writer.flush)
        return reply_of({"result": result})

    return IdempotentRequest(
        f"act {what} {dumps(request.model_dump())}",
        lambda: _where_it_will_stand(nexus, agent_id),
        do,
        lambda intent: _recorded(nexus, intent, action),
    )


def _where_it_will_stand(nexus: Nexus, agent_id: str) -> Intent:
    """Return where the log will have the agent's next decision."""
    stay = nexus.live.sessions.get(agent_id)
    if stay is not None:
        return {"run": stay.session.run_id, "seat": stay.seat_name, "step": stay.stats.steps}
    seat = nexus.live.external.get(agent_id)
    return {"run": nexus.live.visits.get(agent_id), "seat": agent_id, "step": seat.decisions if seat else 0}


def _recorded(nexus: Nexus, intent: Mapping[str, Any], action: Action) -> Reply | None:
    """Return what came of an action, if the log has it where it was to stand. Any: JSON."""
    if intent.get("run") is None:
        return None
    for event in nexus.store.repository.read_events(intent["run"], kinds=("step",), seat=intent["seat"]):
        if event.step == intent["step"]:
            step = json.loads(event.body)["step"]
            done = step["action"]
            # Parameters are recorded as the game declares them: 3 where "3" was sent.
            if done["name"] != action.name or _plain(done["parameters"]) != _plain(encode(action.parameters)):
                return None
            return Reply(200, dumps({"result": {**step["result"], "observation": step["observation"]}}))
    return None


def _plain(parameters: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in parameters.items()}
