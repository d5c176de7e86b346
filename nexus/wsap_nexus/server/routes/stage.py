"""The route of the stage: the world that is shown, why, and what happened."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from wsap_nexus.http.access.auth import is_owner
from wsap_nexus.http.access.callers import Reader
from wsap_nexus.server.bodies import watched
from wsap_nexus.server.deps import replies
from wsap_nexus.server.serializers import json_response
from wsap_nexus.server.watched.stage import Language, Stage

router = APIRouter(tags=["nexus"])


@router.get("/stage", responses=replies(watched.StageAnswer))
async def stage(request: Request, who: Reader, language: Language = "en") -> Response:
    """The world on stage and why, all worlds that can be, agents at home, and the latest moments.

    Without the owner's token, only what is public counts: agents that enter and leave. Moments are told in `language`.
    """
    shown: Stage = request.app.state.stage
    return json_response(shown.seen_by(private=is_owner(who), language=language))
