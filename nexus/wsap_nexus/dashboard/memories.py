"""The route of an agent's memories."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from wsap_core.protocol.wire import encode
from wsap_core.seams.memory import Browsable, Recollection
from wsap_nexus.agents.memory import SavedMemories, recollections
from wsap_nexus.dashboard.serializers import json_response, shortened
from wsap_nexus.http.callers import Admin
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub

router = APIRouter(prefix="/dashboard/data")

RUNS = 10
"""Sessions whose lessons are shown, the newest of an agent."""

MOST = 100
"""Most memories of each kind."""


@router.get("/agents/{agent_id}/memories")
async def memories(nexus: Hub, agent_id: str, by: Admin, most: Annotated[int, Query(ge=1, le=MOST)] = 50) -> Response:
    """An agent's core memories, strategies, current memory, lessons of its last sessions, and diary."""
    with nexus.ledger.look() as book:
        identity = book.agent(agent_id)
        sessions = book.sessions(agent_id=agent_id, limit=RUNS)
    lessons: list[dict[str, Any]] = []
    for session in sessions:
        seat = _seat_of(nexus, session.run_id, agent_id)
        for event in nexus.store.repository.read_events(session.run_id, kinds=("lessons",), seat=seat):
            where = {"run": session.run_id, "game": session.game, "step": (event.step or 0) + 1, "time": event.time}
            lessons += [{"text": shortened(line, 2000), **where} for line in event.data.get("lessons", ())]
    lessons.sort(key=lambda lesson: -lesson["time"])
    return json_response(
        {
            "core": [shortened(text, 2000) for text in identity.core_memories[:MOST]],
            "strategies": [shortened(text, 2000) for text in identity.strategies[:MOST]],
            "in_mind": _in_mind(nexus, agent_id, most) or _kept(nexus, agent_id, most),
            "lessons": lessons[:most],
            "diary": [encode(entry) for entry in nexus.diary(agent_id, limit=20)],
        }
    )


def _seat_of(nexus: Nexus, run_id: str, agent_id: str) -> str | None:
    """Return an agent's seat in a run; None if it is not known."""
    config = nexus.store.repository.get_run(run_id).config
    seats = [seat for seat in config.get("seats", ()) if isinstance(seat, dict)]
    return next((str(seat.get("name")) for seat in seats if agent_id in (seat.get("mind"), seat.get("name"))), None)


def _in_mind(nexus: Nexus, agent_id: str, most: int) -> list[dict[str, Any]]:
    """Return the memory of an agent in a world; empty if it cannot be browsed."""
    stay = nexus.live.sessions.get(agent_id)
    run = None if stay is None else nexus.playing(stay.session.run_id)
    memory = None if run is None or stay is None else getattr(run.agent(stay.seat_name), "memory", None)
    if not isinstance(memory, Browsable):
        return []
    return [_shown(item) for item in memory.browse(most=most)]


def _kept(nexus: Nexus, agent_id: str, most: int) -> list[dict[str, Any]]:
    """Return the stored memories of an agent."""
    with nexus.ledger.look() as book:
        saved = SavedMemories.from_bytes(book.memories(agent_id))
    found, missing = recollections(saved, nexus.host, limit=most)
    unread = [
        {"text": f"What it remembers can't be read: {why}", "kind": "", "world": "", "run": ""} for why in missing
    ]
    return [*map(_shown, found), *unread][:most]


def _shown(item: Recollection) -> dict[str, Any]:
    return {
        "text": shortened(item.text, 2000),
        "kind": item.kind,
        "world": item.world,
        "step": item.step,
        "run": item.run,
    }
