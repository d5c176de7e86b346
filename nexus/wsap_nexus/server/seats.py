"""Observations and actions over the wire API, in the nexus or in a world."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from fastapi import Response

from wsap_core.errors import StorageError, UsageError
from wsap_core.protocol import Action, Observation, View
from wsap_core.protocol.wire import dumps, encode
from wsap_nexus.errors import TransitError
from wsap_nexus.http.refusals import SessionClosedError
from wsap_nexus.http.replies import Reply, answer, pending, reply_of
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.outside.external import SeatLeftError
from wsap_nexus.server.bodies.requests import ActRequest
from wsap_nexus.server.idempotency import IdempotentRequest, Intent
from wsap_nexus.store.entities import AgentIdentity, SessionRecord
from wsap_nexus.store.errors import is_passing


class NotExternalError(TransitError):
    """A policy of the nexus decides for the agent, so no client can."""

    code = "NOT_EXTERNAL"


def the_agent(nexus: Nexus, agent_id: str) -> AgentIdentity:
    """Return an agent; UnknownNameError if there is none of that id."""
    with nexus.nexus_store.look() as tx:
        return tx.agent(agent_id)


def place_of(nexus: Nexus, agent_id: str) -> tuple[str, str | None]:
    """Return an agent's place (`nexus`, or a game) and its session there."""
    stay = nexus.live.sessions.get(agent_id)
    return ("nexus", None) if stay is None else (stay.session.game, stay.session.id)


def check_external(nexus: Nexus, agent: AgentIdentity) -> None:
    """Raise NotExternalError if a policy of the nexus decides for an agent, UsageError if it was removed."""
    if agent.state == "removed":
        raise UsageError(f"The agent {agent.id!r} was removed.")
    place, _ = place_of(nexus, agent.id)
    policy = agent.policy(place)
    if policy is None or not policy.external:
        decides = f"{policy.agent!r}" if policy is not None else "the world's own agent"
        raise NotExternalError(f"{decides} decides for {agent.id!r} in {place!r}, not a client of the wire API.")


def open_session(nexus: Nexus, record: SessionRecord) -> LiveSession:
    """Return an open session; SessionClosedError if it has ended, SeatLeftError while it is being resumed."""
    session_id = record.id
    if record.closed is not None:
        raise SessionClosedError(f"The session {session_id!r} ended ({record.reason}) at {record.closed}.")
    stay = nexus.live.sessions.get(record.agent_id)
    if stay is None or stay.session.id != session_id:
        raise SeatLeftError(f"The session {session_id!r} is being resumed; try again.")
    return stay


async def own_view(nexus: Nexus, live: LiveSession) -> View | None:
    """Return what a seat perceives, drawn by its game, never the view of the whole world; None if there is none."""
    run = nexus.playing(live.session.run_id)
    return None if run is None else await run.loop(live.seat_name).seat.look()


def meters_in(nexus: Nexus, live: LiveSession) -> Mapping[str, float]:
    """Return the meters of the game that an agent plays."""
    port = nexus.live.ports.get(live.session.run_id)
    return {} if port is None else port.spec.meters


async def observe(nexus: Nexus, agent_id: str, wait: float, session_id: str | None = None) -> Response:
    """Reply with an agent's next observation, or 202 after `wait` seconds without a decision point."""
    seen = await next_observation(nexus, agent_id, wait)
    place, session = place_of(nexus, agent_id)
    if session_id is not None and session != session_id:
        raise SessionClosedError(f"The session {session_id!r} has ended.")
    if seen is None:
        return pending("There is nothing to decide yet.")
    return answer({"place": place, "session_id": session, "observation": seen})


async def next_observation(nexus: Nexus, agent_id: str, wait: float) -> Observation | None:
    """Return an agent's next observation; None after `wait` seconds without a decision point."""
    try:
        async with asyncio.timeout(wait):
            _, seen = await nexus.live.external.observation(agent_id)
            return seen
    except TimeoutError:
        return None


async def describe_seat(nexus: Nexus, agent_id: str, wait: float, what: str, place: str | None = None) -> Response:
    """Reply with the description or action space of an agent's seat, or 202 if it does not arrive in `wait` seconds.

    Args:
        what: "description" or "action_space".
        place: the place to report; by default where the agent is.

    Raises:
        NotExternalError: a policy of the nexus decides for the agent.
    """
    check_external(nexus, the_agent(nexus, agent_id))
    try:
        async with asyncio.timeout(wait):
            seat = await nexus.live.external.seat(agent_id)
    except TimeoutError:
        return pending("The agent is on its way.")
    return answer({"place": place or place_of(nexus, agent_id)[0], what: getattr(seat, what)})


def idempotent_act(nexus: Nexus, agent_id: str, request: ActRequest, what: str) -> IdempotentRequest:
    """Return the idempotent request to take an action, identified by `what` and its body."""
    action = Action(request.name, request.parameters, request.reasoning)

    async def do() -> Reply:
        seat = nexus.live.external.get(agent_id)
        if seat is None:
            raise SeatLeftError(f"{agent_id!r} is in transit; request its observation first.")
        result = await seat.act(action, request.turn)
        await _until_recorded(nexus)
        return reply_of({"result": result})

    return IdempotentRequest(
        f"act {what} {dumps(request.model_dump(exclude=None if request.turn else {'turn'}))}",
        lambda: _next_step(nexus, agent_id),
        do,
        lambda intent: _recorded(nexus, intent, action),
    )


async def _until_recorded(nexus: Nexus) -> None:
    # An action is acknowledged only after the log is written, during a fault of the machine once that is over.
    while True:
        try:
            await asyncio.to_thread(nexus.store.writer.flush)
            return
        except StorageError as error:
            if nexus.live.stopping or not is_passing(error):
                raise
            await nexus.storage.sound()


def _next_step(nexus: Nexus, agent_id: str) -> Intent:
    # The log position of the agent's next decision.
    stay = nexus.live.sessions.get(agent_id)
    if stay is not None:
        return {"run": stay.session.run_id, "seat": stay.seat_name, "step": stay.stats.steps}
    seat = nexus.live.external.get(agent_id)
    return {"run": nexus.live.visits.get(agent_id), "seat": agent_id, "step": seat.decisions if seat else 0}


def _recorded(nexus: Nexus, intent: Mapping[str, Any], action: Action) -> Reply | None:
    # The result of an action, if the log has it at the intended step.
    nexus.store.writer.flush()  # events may wait for the end of a fault
    if intent.get("run") is None:
        return None
    for event in nexus.store.repository.read_events(intent["run"], kinds=("step",), seat=intent["seat"]):
        if event.step == intent["step"]:
            step = json.loads(event.body)["step"]
            done = step["action"]
            # Parameters are recorded with the types declared by the game: 3 for a sent "3".
            if done["name"] != action.name or _plain(done["parameters"]) != _plain(encode(action.parameters)):
                return None
            return Reply(200, dumps({"result": {**step["result"], "observation": step["observation"]}}))
    return None


def _plain(parameters: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in parameters.items()}
