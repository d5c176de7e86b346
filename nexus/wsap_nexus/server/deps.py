"""Shared route parameters: agents and sessions that the caller may use, and idempotent replies."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Path, Request, Response
from pydantic import StringConstraints

from wsap_nexus.agents.portable import check_not_removed
from wsap_nexus.http.access.callers import Admin, Known
from wsap_nexus.http.replies import Key, Wait, pending
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.served import Hub
from wsap_nexus.server.bodies import responses
from wsap_nexus.server.idempotency import IdempotencyStore, IdempotentRequest
from wsap_nexus.server.seats import open_session
from wsap_nexus.store.entities import AGENT_ID, SessionRecord

AgentId = Annotated[str, StringConstraints(pattern=AGENT_ID, max_length=64)]
WorldId = Annotated[str, Path(max_length=200)]
RunId = Annotated[str, Path(max_length=200)]
Seq = Annotated[int, Path(ge=0, le=2**63 - 1, description="The number of an event in the run.")]
SessionId = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$")]


def replies(model: type[Any], *statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documented responses of a route: the model for each status (by default 200), and 202 as pending.

    Any: the class of a pydantic model or dataclass.
    """
    return {status: {"model": responses.Pending if status == 202 else model} for status in statuses or (200,)}


def page_start(before: str) -> tuple[str, str] | None:
    """Return (created, id) of the last entry of the page before; None for the first page."""
    created, _, name = before.partition(" ")
    return (created, name) if before else None


async def _own_agent(agent_id: AgentId, by: Known) -> str:
    by.may_act_for(agent_id)
    return agent_id


async def _managed_agent(nexus: Hub, agent_id: AgentId, by: Admin) -> str:
    with nexus.nexus_store.look() as tx:
        check_not_removed(tx, agent_id)
    return agent_id


async def _own_session(nexus: Hub, session_id: SessionId, by: Known) -> SessionRecord:
    with nexus.nexus_store.look() as tx:
        record = tx.session(session_id)
    by.may_act_for(record.agent_id)
    return record


OwnAgent = Annotated[str, Depends(_own_agent)]
"""The id of an agent that the caller may act for."""
ManagedAgent = Annotated[str, Depends(_managed_agent)]
"""The id of an agent that was not removed; only for the owner."""
OwnSession = Annotated[SessionRecord, Depends(_own_session)]
"""A session, open or closed, of an agent that the caller may act for."""


async def _live_session(nexus: Hub, record: OwnSession) -> LiveSession:
    return open_session(nexus, record)


Live = Annotated[LiveSession, Depends(_live_session)]
"""An open session of an agent that the caller may act for."""


@dataclass(frozen=True)
class Once:
    """Handles a caller's request once per idempotency key, if it has one."""

    store: IdempotencyStore
    caller: str
    key: str | None
    wait: float
    """Seconds to wait for the reply."""

    @property
    def known(self) -> bool:
        """Whether a request with this key was made before."""
        return self.key is not None and self.store.knows(self.caller, self.key)

    async def reply(self, request: IdempotentRequest, pending_message: str) -> Response:
        """Return the reply to a request, or 202 with a message after `wait` seconds."""
        reply = await self.store.once(self.caller, self.key, request, self.wait)
        if reply is None:
            return pending(pending_message)
        response = Response(reply.body, reply.status, media_type="application/json")
        if reply.repeated:
            response.headers["Idempotent-Replayed"] = "true"
        return response


def _once(seconds: float) -> Callable[..., Coroutine[Any, Any, Once]]:
    async def once(request: Request, by: Known, key: Key = None, wait: Wait = seconds) -> Once:
        return Once(request.app.state.idempotency, by.name, key, wait)

    return once


Once10 = Annotated[Once, Depends(_once(10.0))]
"""Idempotent handling that by default waits 10 seconds for the reply."""
Once30 = Annotated[Once, Depends(_once(30.0))]
"""Idempotent handling that by default waits 30 seconds for the reply."""
