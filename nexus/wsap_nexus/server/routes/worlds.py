"""Routes of worlds: the list, a world with who is in it, and its view."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from wsap_core.protocol.wire import encode
from wsap_nexus.http.access.auth import is_owner
from wsap_nexus.http.access.callers import Reader
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.server.bodies import watched
from wsap_nexus.server.deps import WorldId, page_start, replies
from wsap_nexus.server.routes.recorded.runs import look_back
from wsap_nexus.server.serializers import json_response, past_session_json, session_json
from wsap_nexus.server.watched.frames import Frames
from wsap_nexus.store.entities import AvatarRecord, WorldRecord

# Any, in this module: JSON.

router = APIRouter(prefix="/worlds", tags=["worlds"])

AWAKE_SHOWN = 200
"""Maximum number of occupied worlds in the list of all worlds."""

AVATARS_SHOWN = 100
"""Maximum number of avatars in a world."""

PAST_SHOWN = 30
"""Maximum number of a world's past sessions."""


@router.get("", responses=replies(watched.WorldPage))
async def worlds(
    nexus: Hub,
    before: Annotated[str, Query(max_length=300, description="`next` of the page before.")] = "",
    limit: Annotated[int, Query(ge=1, le=500)] = 60,
) -> Response:
    """Worlds, newest first, a page at a time; the first page also has those that are occupied or live by themselves."""
    inside: dict[str, list[str]] = {}
    for stay in nexus.live.sessions.values():
        inside.setdefault(stay.session.world_id, []).append(stay.session.agent_id)
    lives = {kept.record.id for kept in nexus.kept.open}
    with nexus.nexus_store.look() as tx:
        awake = [] if before else tx.some_worlds(lives.union(inside), limit=AWAKE_SHOWN)
        found = tx.newest_worlds(before=page_start(before), limit=limit)
        agents = (agent for world in awake for agent in inside.get(world.id, ()))
        names = tx.names_of([*(world.owner for world in (*awake, *found)), *agents])

    def rows(some: Iterable[WorldRecord]) -> list[dict[str, Any]]:
        return [
            {
                "id": world.id,
                "game": world.game,
                "owner": world.owner,
                "created": world.created,
                "failures": world.failures,
                "agents": inside.get(world.id, []),
                "lives": world.id in lives,
            }
            for world in some
        ]

    last = f"{found[-1].created} {found[-1].id}" if len(found) == limit else None
    return json_response({"awake": rows(awake), "worlds": rows(found), "names": names, "next": last})


@router.get("/{world_id}", responses=replies(watched.WorldAnswer))
async def world(nexus: Hub, world_id: WorldId, who: Reader) -> Response:
    """A world with its live sessions, avatars and past sessions.

    What agents do in it, and its seed, which determines roles, are for the owner only.
    """
    private = is_owner(who)
    stays = _stays(nexus, world_id)
    with nexus.nexus_store.look() as tx:
        record = tx.world(world_id)
        past = tx.sessions(world_id=world_id, limit=PAST_SHOWN)
        avatars = tx.avatars_in(world_id, limit=AVATARS_SHOWN)
        kept = _kept_run(nexus, world_id)
        # Without a stored state, no agent can enter again.
        over = bool(past) and not stays and kept is None and not tx.has_state(world_id)
        names = tx.names_of([record.owner, *(s.agent_id for s in past), *(avatar.agent_id for avatar in avatars)])
    info = next((game for game in nexus.entrance.games() if game.id == record.game), None)
    return json_response(
        {
            "world": {
                "id": record.id,
                "game": record.game,
                "owner": record.owner,
                "seed": record.seed if private else None,
                "created": record.created,
                "failures": record.failures,
            },
            "game": None if info is None else encode(info),
            "lives": kept is not None,
            "over": over,
            "look_back": look_back(nexus, past[0].run_id) if over else "",
            "run": stays[0].session.run_id if stays else kept or (past[0].run_id if past else None),
            "stays": [session_json(stay, private=private) for stay in stays],
            "avatars": [_avatar(avatar, private) for avatar in avatars],
            "sessions": [past_session_json(session, private=private) for session in past],
            "names": names,
        }
    )


@router.get("/{world_id}/view", responses={**replies(watched.WorldView), 304: {"description": "It has not changed."}})
async def view(nexus: Hub, request: Request, world_id: WorldId, who: Reader) -> Response:
    """The current view of a world for spectators, at most 0.2 s old; repeat the request with its ETag."""
    return await view_of(nexus, request, world_id, private=is_owner(who))


async def view_of(nexus: Nexus, request: Request, world_id: str, *, private: bool) -> Response:
    """Return the response with a world's view; `private` is whether it may say how the game's code failed."""
    stays = _stays(nexus, world_id)
    run = _kept_run(nexus, world_id) or (stays[0].session.run_id if stays else None)
    if run is None:
        with nexus.nexus_store.look() as tx:
            tx.world(world_id)
        return json_response({"view": None, "remark": "Nobody is in this world, so it is suspended."})
    frames: Frames = request.app.state.frames
    frame = await frames.of_run(run)
    remark = frame.remark if private or not frame.error else "The game's view failed."
    return json_response({"view": frame.view, "remark": remark}, request, etag=frame.etag)


def _stays(nexus: Nexus, world_id: str) -> list[LiveSession]:
    return [stay for stay in nexus.live.sessions.values() if stay.session.world_id == world_id]


def _kept_run(nexus: Nexus, world_id: str) -> str | None:
    return next((kept.run_id for kept in nexus.kept.open if kept.record.id == world_id), None)


def _avatar(record: AvatarRecord, private: bool) -> dict[str, Any]:
    avatar = record.avatar
    data = encode(avatar) if private else {"name": avatar.name}
    return {"id": avatar.avatar_id, "agent_id": record.agent_id, "state": avatar.state.value, "data": data}
