"""The bridge over HTTP: the seed's three endpoints, and our additions of 1.1.0, served until told to stop."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, FastAPI, Query, Request, Response

from wsap_core.errors import UsageError
from wsap_core.protocol.wire import dumps
from wsap_nexus.http import errors
from wsap_nexus.http.auth import Caller, OneToken
from wsap_nexus.http.callers import Admin, Reader, caller
from wsap_nexus.http.guard import Guard, HttpLimits
from wsap_nexus.http.listening import Address, listen
from wsap_nexus.http.replies import Key
from wsap_nexus.http.serving import HttpServer
from wsap_nexus.http.streams import EventStream, HeldStream, Streams
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.protocol.bridge import (
    AgentInfo,
    AgentList,
    BridgeStatus,
    ItemsReceipt,
    ItemsRequest,
    JoinRequest,
    LeaveMode,
)
from wsap_tes3mp.protocol.commands import CommandAccepted, CommandInput, Outcome
from wsap_tes3mp.protocol.errors import SEED_CODES, BridgeUnavailableError
from wsap_tes3mp.protocol.perception import Name, Payload, PerceptionOutput
from wsap_tes3mp.protocol.versions import PROTOCOL_VERSION

router = APIRouter()
_WAIT_MOST = 60.0
AgentQuery = Annotated[str | None, Query(max_length=200, description="May be left out where there is one agent.")]


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what the OpenAPI document says of errors."""
    known = {400: "VALIDATION_ERROR", 401: "UNAUTHORIZED"}
    for kind in SEED_CODES:
        known[kind.http_status] = f"{known[kind.http_status]}, {kind.code}" if kind.http_status in known else kind.code
    return {status: {"description": known.get(status, "See the error's code.")} for status in statuses}


def _the_bridge(request: Request) -> Bridge:
    bridge: Bridge = request.app.state.bridge
    return bridge


@router.get("/perception", response_model=PerceptionOutput, responses=_refusals(400, 422, 503, 504))
async def perception(request: Request, agent_id: AgentQuery = None) -> Response:
    """Return the latest perception of an agent."""
    return _json(await _the_bridge(request).perception(agent_id))


@router.post(
    "/command",
    status_code=202,
    response_model=CommandAccepted,
    responses=_refusals(400, 401, 409, 422, 500, 503),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/CommandInput"}}},
        }
    },
)
async def command(request: Request, who: Admin, idempotency_key: Key = None) -> Response:
    """Submit a command; what becomes of it is at `/command/{command_id}`."""
    body = await request.body()  # `Guard` has read it: it is JSON, or empty
    accepted = await _the_bridge(request).receive(json.loads(body) if body else None, key=idempotency_key)
    return _json(accepted, 202)


@router.get("/command/{command_id}", response_model=Outcome, responses=_refusals(400, 404))
async def outcome(
    request: Request, command_id: Name, wait: Annotated[float, Query(ge=0, le=_WAIT_MOST)] = 0.0
) -> Response:
    """Return what became of a command, waiting up to so many seconds for its end (1.1.0)."""
    return _json(await _the_bridge(request).outcome(command_id, wait=wait))


@router.get("/morrowind/status", response_model=BridgeStatus)
async def status(request: Request) -> Response:
    """Return whether the bridge is well, and connected."""
    return _json(await _the_bridge(request).status())


@router.get("/agents", response_model=AgentList, responses=_refusals(503))
async def agents(request: Request) -> Response:
    """Return the agents that there are bodies for (1.1.0)."""
    return _json(AgentList(agents=tuple(await _the_bridge(request).agents())))


@router.post("/agents", response_model=AgentInfo, responses=_refusals(400, 401, 501, 503))
async def join(request: Request, body: JoinRequest, who: Admin) -> Response:
    """Give an agent a body, or wake its own (1.1.0)."""
    return _json(await _the_bridge(request).join(body))


@router.delete("/agents/{agent_id}", status_code=204, responses=_refusals(400, 401, 501, 503))
async def leave(request: Request, agent_id: Name, who: Admin, mode: LeaveMode = "dormant") -> Response:
    """Let an agent's body sleep, vanish or be gone (1.1.0)."""
    await _the_bridge(request).leave(agent_id, mode)
    return Response(status_code=204)


@router.post("/agents/{agent_id}/respawn", response_model=AgentInfo, responses=_refusals(400, 401, 501, 503))
async def respawn(request: Request, agent_id: Name, who: Admin) -> Response:
    """Bring an agent's dead body back to life (1.1.0)."""
    return _json(await _the_bridge(request).respawn(agent_id))


@router.post("/agents/{agent_id}/items", response_model=ItemsReceipt, responses=_refusals(400, 401, 501, 503))
async def transfer(request: Request, agent_id: Name, body: ItemsRequest, who: Admin) -> Response:
    """Move items into and out of an agent's inventory, once per transfer id (1.1.0)."""
    return _json(await _the_bridge(request).transfer(agent_id, body))


@router.get(
    "/events",
    response_class=Response,
    responses={200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}},
)
async def events(request: Request, who: Reader) -> Response:
    """Stream perceptions that changed, outcomes, and agents that came and went, from now on (1.1.0)."""
    listener = _the_bridge(request).listen()

    async def later() -> str | None:
        event = await listener.get()
        return None if event is None else f"event: {event.kind}\ndata: {dumps(event.body)}\n\n"

    return HeldStream(EventStream(later, request.app.state.limits), request.app.state.streams, who)


def create_app(
    bridge: Bridge,
    token: str,
    address: Address | None = None,
    limits: HttpLimits | None = None,
    *,
    trusting: bool = False,
) -> FastAPI:
    """Return the application of a bridge, which the caller starts and stops; `serve` says what the arguments are."""
    near = address is None or address.is_loopback
    hosts = frozenset[str]() if address is None else frozenset({address.host}) if near else None
    title = "Perception/Command bridge"
    app = FastAPI(title=title, version=PROTOCOL_VERSION, docs_url=None, redoc_url=None, redirect_slashes=False)
    limits = limits or HttpLimits()
    app.state.bridge, app.state.limits, app.state.streams = bridge, limits, Streams(limits)
    if trusting:
        app.dependency_overrides[caller] = lambda: Caller(None)
    errors.install(app)
    app.include_router(router)
    schemas = app.openapi().setdefault("components", {}).setdefault("schemas", {})
    schemas["CommandInput"] = CommandInput.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(schemas["CommandInput"].pop("$defs", {}))
    app.add_middleware(
        Guard,
        tokens=OneToken(token),
        limits=limits,
        hosts=hosts,
        guarded=not near,
        clock=time.monotonic,
        data_paths=("/",),
    )
    return app


async def serve(
    bridge: Bridge,
    address: Address,
    token: str,
    *,
    until: asyncio.Event | None = None,
    ready: Callable[[str], None] | None = None,
    limits: HttpLimits | None = None,
    trusting: bool = False,
) -> None:
    """Start a bridge, serve it until it is told to stop, and stop it.

    Args:
        bridge: not started yet.
        address: where to listen; where other machines can reach it, reading needs the token, too.
        token: what changing something needs.
        until: set to stop; None to serve until the task is cancelled.
        ready: called with the URL once requests are answered.
        limits: limits on requests and connections.
        trusting: whether programs on this machine need no token.

    Raises:
        UsageError: `trusting` where other machines can reach it.
        PortInUseError: the port is in use.
    """
    address.check()
    limits = limits or HttpLimits()
    if trusting and not address.is_loopback:
        raise UsageError("Only a bridge that this machine alone can reach may take commands without the token.")
    app = create_app(bridge, token, address, limits, trusting=trusting)
    listening = listen(address)
    stopping = BridgeUnavailableError("The bridge is stopping; ask again later, with the same key if there was one.")
    server = HttpServer(
        app, listening, limits, until=until, ready=ready, over=lambda: bridge.news.tell(None), stopping=stopping
    )
    try:
        await bridge.start()
        await server.run()
    finally:
        listening.close()
        await bridge.stop()


def _json(payload: Payload, status: int = 200) -> Response:
    return Response(payload.model_dump_json(), status, media_type="application/json")
