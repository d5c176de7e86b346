"""Moving agents over the wire, and the games that they can enter."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from wsap_core.models import Action
from wsap_nexus.hub.records import AGENT_ID, Terms
from wsap_nexus.server import errors
from wsap_nexus.server.deps import Hub, Known, answer

router = APIRouter()


class EnterRequest(BaseModel):
    """A way into a game."""

    model_config = ConfigDict(extra="forbid")

    agent_id: str = Field(pattern=AGENT_ID)
    game: str = Field(max_length=200)
    goals: list[Annotated[str, Field(max_length=500)]] = Field(default_factory=list, max_length=20)
    exit_when: str = Field(default="", max_length=500)
    steps: int | None = Field(default=None, ge=1, le=10**9)
    spawn: str = Field(default="safe", pattern="^(safe|challenging|random)$")
    difficulty: str = Field(default="normal", pattern="^(easy|normal|hard|adaptive)$")
    avatar: str | None = Field(default=None, max_length=200)


class ExitRequest(BaseModel):
    """A way out of a game."""

    model_config = ConfigDict(extra="forbid")

    agent_id: str = Field(pattern=AGENT_ID)
    mode: str = Field(default="dormant", pattern="^(dormant|suspend|despawn)$")


@router.get("/nexus/games")
async def games(nexus: Hub) -> Response:
    """List the games that can be entered."""
    return answer({"games": nexus.games()})


@router.post("/nexus/transit/enter")
async def enter(nexus: Hub, request: EnterRequest, by: Known) -> Response:
    """Send an agent into a game: its session, where its world is reached, and what it sees first."""
    by.may_act_for(request.agent_id)
    terms = Terms(
        tuple(request.goals),
        request.exit_when,
        request.steps,
        request.spawn,
        request.difficulty,
        request.avatar,
    )
    stay = await nexus.enter(request.agent_id, request.game, terms)
    body: dict[str, Any] = {"session": stay.session, "bridge_url": f"/nexus/agents/{request.agent_id}"}
    external = nexus.external.get(request.agent_id)
    if external is not None:
        body["observation"] = await external.observation()
    return answer(body, 201)


@router.post("/nexus/transit/exit")
async def leave(nexus: Hub, request: ExitRequest, by: Known) -> Response:
    """Bring an agent back; an agent's own token asks the world whether that is safe."""
    by.may_act_for(request.agent_id)
    external = nexus.external.get(request.agent_id)
    if by.agent_id is None or external is None:
        return answer({"session": await nexus.exit(request.agent_id)})
    leaving = nexus.await_exit(request.agent_id)
    await external.observation()
    result = await external.act(Action("jack_out", {"mode": request.mode}))
    if not result.success:
        return errors.error_response(409, "LEAVING_REFUSED", result.message)
    return answer({"session": await leaving})
