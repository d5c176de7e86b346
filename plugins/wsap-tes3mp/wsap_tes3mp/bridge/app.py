"""The bridge over HTTP: the seed's three endpoints and the additions of 1.1.0."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Query, Request, Response

from wsap_core.errors import UsageError
from wsap_core.protocol.wire import dumps
from wsap_nexus.http import errors
from wsap_nexus.http.access.auth import Caller, OneToken
from wsap_nexus.http.access.callers import Admin, Reader, caller
from wsap_nexus.http.access.guard import Guard, HttpLimits
from wsap_nexus.http.listening import Address, listen
from wsap_nexus.http.replies import WAIT_MOST, Key
from wsap_nexus.http.serving import HttpServer
from wsap_nexus.http.streams import EventStream, Streams
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.protocol import bridge as payloads
from wsap_tes3mp.protocol.commands import CommandAccepted, CommandInput, Outcome
from wsap_tes3mp.protocol.errors import PROTOCOL_VERSION, SEED_CODES, BridgeUnavailableError
from wsap_tes3mp.protocol.perception import Name, PerceptionOutput

router = APIRouter()
AgentQuery = Annotated[str | None, Query(max_length=200, description="Optional if there is only one agent.")]


def _refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    known = [(401, "UNAUTHORIZED"), *((kind.http_status, kind.code) for kind in SEED_CODES)]
    told = {status: ", ".join(code for at, code in known if at == status) for status in statuses}
    return {status: {"description": codes or "See the error's code."} for status, codes in told.items()}


async def _the_bridge(request: Request) -> Bridge:
    bridge: Bridge = request.app.state.bridge
    return bridge


TheBridge = Annotated[Bridge, Depends(_the_bridge)]


@router.get("/perception", responses=_refusals(400, 422, 503, 504))
async def perception(bridge: TheBridge, agent_id: AgentQuery = None) -> PerceptionOutput:
    """Return the latest perception of an agent."""
    return await bridge.perception(agent_id)


@router.post(
    "/command",
    status_code=202,
    responses=_refusals(400, 401, 409, 422, 500, 503),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/CommandInput"}}},
        }
    },
)
async def command(request: Request, bridge: TheBridge, who: Admin, idempotency_key: Key = None) -> CommandAccepted:
    """Submit a command; `/command/{command_id}` has its outcome."""
    body = await request.body()  # `Guard` has read it: it is JSON, or empty
    return await bridge.receive(json.loads(body) if body else None, key=idempotency_key)


@router.get("/command/{command_id}", responses=_refusals(400, 404))
async def outcome(
    bridge: TheBridge, command_id: Name, wait: Annotated[float, Query(ge=0, le=WAIT_MOST)] = 0.0
) -> Outcome:
    """Return the outcome of a command, waiting up to `wait` seconds for it to finish (1.1.0)."""
    return await bridge.outcome(command_id, wait=wait)


@router.get("/morrowind/status")
async def status(bridge: TheBridge) -> payloads.BridgeStatus:
    """Return the state of the bridge and whether its engine is connected."""
    return await bridge.status()


@router.get("/agents", responses=_refusals(503))
async def agents(bridge: TheBridge) -> payloads.AgentList:
    """Return the agents with bodies (1.1.0)."""
    return payloads.AgentList(agents=tuple(await bridge.agents()))


@router.post("/agents", responses=_refusals(400, 401, 501, 503))
async def join(bridge: TheBridge, body: payloads.JoinRequest, who: Admin) -> payloads.AgentInfo:
    """Give an agent a body, or wake its sleeping one (1.1.0)."""
    return await bridge.join(body)


@router.delete(
    "/agents/{agent_id:path}", status_code=204, response_class=Response, responses=_refusals(400, 401, 501, 503)
)
async def leave(bridge: TheBridge, agent_id: Name, who: Admin, mode: payloads.LeaveMode = "dormant") -> None:
    """Put an agent's body to sleep, hide it, or delete it (1.1.0)."""
    await bridge.leave(agent_id, mode)


@router.post("/agents/{agent_id:path}/respawn", responses=_refusals(400, 401, 501, 503))
async def respawn(bridge: TheBridge, agent_id: Name, who: Admin) -> payloads.AgentInfo:
    """Bring an agent's dead body back to life (1.1.0)."""
    return await bridge.respawn(agent_id)


@router.post("/agents/{agent_id:path}/items", responses=_refusals(400, 401, 501, 503))
async def transfer(bridge: TheBridge, agent_id: Name, body: payloads.ItemsRequest, who: Admin) -> payloads.ItemsReceipt:
    """Add items to an agent's inventory and remove items from it, once per transfer id (1.1.0)."""
    return await bridge.transfer(agent_id, body)


@router.get(
    "/events",
    response_class=Response,
    responses={200: {"description": "Server-sent events.", "content": {"text/event-stream": {}}}},
)
async def events(request: Request, bridge: TheBridge, who: Reader) -> Response:
    """Stream changed perceptions, outcomes, and agents joining and leaving, from now on (1.1.0)."""
    listener = bridge.listen()

    async def later() -> str | None:
        event = await listener.get()
        return None if event is None else f"event: {event.kind}\ndata: {dumps(event.body)}\n\n"

    return EventStream(later, request.app.state.streams, who)


def create_app(
    bridge: Bridge,
    token: str,
    address: Address | None = None,
    limits: HttpLimits | None = None,
    *,
    trusting: bool = False,
) -> FastAPI:
    """Return the application of a bridge that the caller starts and stops; see `serve` for the arguments."""
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
    """Start a bridge, serve it until `until` is set or the task is cancelled, and stop it.

    Args:
        bridge: not started yet.
        address: where to listen; beyond loopback, reading needs the token, too.
        token: required for changing anything.
        ready: called with the URL once requests are answered.
        trusting: let programs on this machine act without the token.

    Raises:
        UsageError: `trusting` beyond loopback.
        PortInUseError: the port is in use.
    """
    address.check()
    limits = limits or HttpLimits()
    if trusting and not address.is_loopback:
        raise UsageError("Only a bridge on loopback may accept commands without the token.")
    app = create_app(bridge, token, address, limits, trusting=trusting)
    listening = listen(address)
    stopping = BridgeUnavailableError("The bridge is stopping; try again later, with the same idempotency key if any.")
    server = HttpServer(
        app, listening, limits, until=until, ready=ready, over=lambda: bridge.tell(None), stopping=stopping
    )
    try:
        await bridge.start()
        await server.run()
    finally:
        listening.close()
        await bridge.stop()
