"""Routes of what an agent has in mind, for itself and the owner: its observation, plan and memories."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from wsap_core.protocol.wire import encode
from wsap_core.seams.memory import Browsable, Recollection
from wsap_nexus.agents.chronicle import failure_of
from wsap_nexus.agents.memory import SavedMemories, recollections
from wsap_nexus.agents.metagoals import Pursuit, pursuits
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.hub.transit.reconciliation import unresolved_transfers
from wsap_nexus.server.bodies import watched
from wsap_nexus.server.deps import OwnAgent, replies
from wsap_nexus.server.seats import meters_in
from wsap_nexus.server.serializers import json_response, observation_json, session_json, shortened
from wsap_nexus.store.entities import AgentIdentity
from wsap_nexus.store.nexus_store import Transaction

router = APIRouter(prefix="/agents/{agent_id}", tags=["agents"])

RUNS = 10
"""Number of an agent's last sessions whose lessons are shown."""

MOST = 100
"""Maximum number of memories of each kind."""

MOST_THINGS = 1000
"""Maximum number of items, and of avatars, in one response."""


@router.get("/memories", responses=replies(watched.Memories))
async def memories(nexus: Hub, agent_id: OwnAgent, most: Annotated[int, Query(ge=1, le=MOST)] = 50) -> Response:
    """An agent's core memories, strategies, current memory, lessons of its last sessions, and diary."""
    with nexus.nexus_store.look() as tx:
        identity = tx.agent(agent_id)
        sessions = tx.sessions(agent_id=agent_id, limit=RUNS)
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
            "diary": [encode(entry) for entry in nexus.agent_context.words.diary(agent_id, limit=20)],
        }
    )


@router.get("/now", responses=replies(watched.Now))
async def now(nexus: Hub, agent_id: OwnAgent) -> Response:
    """An agent's last observation and plan, without waiting for its next decision."""
    stay = nexus.live.sessions.get(agent_id)
    if stay is None or stay.last is None:
        with nexus.nexus_store.look() as tx:
            tx.agent(agent_id)
        found = None if stay is None else session_json(stay, private=True)
        return json_response({"stay": found, "observation": None, "plan": [], "planned": 0})
    step = stay.last
    return json_response(
        {
            "stay": session_json(stay, private=True),
            "observation": observation_json(step.result.observation, meters_in(nexus, stay)),
            "plan": [shortened(line, 300) for line in step.plan[:40]],
            "planned": step.planned,
        }
    )


def mind_of(tx: Transaction, identity: AgentIdentity) -> dict[str, Any]:
    """Return an agent's private data. Any: JSON."""
    return {
        "skills": tx.skills(identity.id),
        "evidence": _evidence(tx, identity.id),
        "achievements": [dict(row._mapping) for row in tx.achievements(identity.id)[:300]],
        "items": [encode(item) for item in tx.items(identity.id)[:MOST_THINGS]],
        "avatars": [encode(avatar) for avatar in tx.avatars(identity.id)[:MOST_THINGS]],
        "meta_goals": [_goal(pursuit) for pursuit in pursuits(tx, identity.id)[:50]],
        "letters": _letters(tx, identity.id),
        "failure": failure_of(tx, identity.id) if identity.state == "paused" else "",
        "in_doubt": [encode(move) for move in unresolved_transfers(tx, identity.id)[:20]],
    }


def _seat_of(nexus: Nexus, run_id: str, agent_id: str) -> str | None:
    config = nexus.store.repository.get_run(run_id).config
    seats = [seat for seat in config.get("seats", ()) if isinstance(seat, dict)]
    return next((str(seat.get("name")) for seat in seats if agent_id in (seat.get("mind"), seat.get("name"))), None)


def _in_mind(nexus: Nexus, agent_id: str, most: int) -> list[dict[str, Any]]:
    """Return the memory of an agent in a world; empty if it can't be browsed."""
    stay = nexus.live.sessions.get(agent_id)
    run = None if stay is None else nexus.playing(stay.session.run_id)
    memory = None if run is None or stay is None else getattr(run.agent(stay.seat_name), "memory", None)
    if not isinstance(memory, Browsable):
        return []
    return [_shown(item) for item in memory.browse(most=most)]


def _kept(nexus: Nexus, agent_id: str, most: int) -> list[dict[str, Any]]:
    with nexus.nexus_store.look() as tx:
        saved = SavedMemories.from_bytes(tx.memories(agent_id))
    found, missing = recollections(saved, nexus.host, limit=most)
    unread = [{"text": f"A memory can't be read: {why}", "kind": "", "world": "", "run": ""} for why in missing]
    return [*map(_shown, found), *unread][:most]


def _shown(item: Recollection) -> dict[str, Any]:
    return {
        "text": shortened(item.text, 2000),
        "kind": item.kind,
        "world": item.world,
        "step": item.step,
        "run": item.run,
    }


def _evidence(tx: Transaction, agent_id: str) -> list[dict[str, Any]]:
    names = ("domain", "game", "source", "times")
    return [
        {**{name: getattr(row, name) for name in names}, "gained": round(row.gained, 5)}
        for row in tx.evidence(agent_id)[:2000]
    ]


def _goal(pursuit: Pursuit) -> dict[str, Any]:
    measures = pursuit.measures()
    share = min((min(1.0, have / need) for have, need in measures if need > 0), default=0.0)
    return {
        "id": pursuit.goal.id,
        "description": shortened(pursuit.goal.description, 500),
        "state": pursuit.state,
        "progress": pursuit.progress[:500],
        "share": 1.0 if pursuit.state == "reached" else round(share, 4),
    }


def _letters(tx: Transaction, agent_id: str) -> list[dict[str, Any]]:
    # What people say is in `talk`.
    return [
        {**asdict(message), "content": shortened(message.content, 4000)}
        for message in tx.correspondence(agent_id, limit=50)
    ]
