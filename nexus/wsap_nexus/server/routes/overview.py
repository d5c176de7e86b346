"""The route of what a person sees first: numbers, occupied worlds, agents at home, and what needs attention."""

from __future__ import annotations

import shlex
from functools import cache
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, Request, Response

from wsap_core.protocol.wire import encode
from wsap_core.untrusted import single_line
from wsap_nexus.agents.chronicle import failure_of
from wsap_nexus.http.access.auth import is_owner, record_json
from wsap_nexus.http.access.callers import Reader
from wsap_nexus.hub.nexus import Nexus
from wsap_nexus.hub.served import Hub
from wsap_nexus.hub.upkeep.storage import LOG_MOST
from wsap_nexus.hub.waiting.waits import ATTENTION_AFTER, waits
from wsap_nexus.server.bodies import watched
from wsap_nexus.server.deps import replies
from wsap_nexus.server.routes.events import logged
from wsap_nexus.server.routes.recorded.runs import usage_last_day
from wsap_nexus.server.serializers import json_response, session_json, shortened
from wsap_nexus.server.watched.places import Place, places
from wsap_nexus.store.events import PUBLIC_KINDS
from wsap_nexus.store.events.nexus import WorldRewound
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.upkeep.prune import DAY, size_of
from wsap_nexus.store.upkeep.room import log_bytes

# Any, in this module: JSON.

router = APIRouter(tags=["nexus"])

WORLDS_SHOWN = 24
"""Maximum number of worlds."""

AGENTS_SHOWN = 60
"""Maximum number of agents in the nexus."""

EVENTS_SHOWN = 120
"""Maximum number of recent events."""


@router.get("/overview", responses=replies(watched.Overview))
async def overview(nexus: Hub, request: Request, who: Reader) -> Response:
    """Numbers, occupied worlds, agents in the nexus, recent events, and what needs attention.

    What agents do in worlds, and most of what needs attention, is for the owner only.
    """
    private = is_owner(who)
    with nexus.nexus_store.look() as tx:
        here = tx.agents(place="nexus", limit=AGENTS_SHOWN)
        occupied = places(nexus)
        cards = occupied[:WORLDS_SHOWN]
        names = tx.names_of(stay.session.agent_id for place in cards for stay in place.stays)
        recent = tx.event_page(kinds=() if private else PUBLIC_KINDS, limit=EVENTS_SHOWN)
        moving = tx.transfers("prepared", "unknown")[:100]
        body = {
            "now": tx.now,
            "seq": tx.last_seq(),
            "counts": {**_counts(tx), "on_the_way": len(moving), "playing": len(nexus.live.sessions)},
            "worlds": [_world_card(place, private) for place in cards],
            "more_worlds": len(occupied) - len(cards),
            "nexus": [record_json(agent, private=False) for agent in here],
            "names": names,
            "transit": [{"agent": row.agent_id, "kind": row.kind, "world": row.world_id} for row in moving],
            "recent": logged(tx, recent, who),
            "attention": attention(nexus, tx, private=private),
            "games": [encode(info) for info in nexus.entrance.games()],
        }
    return json_response(body | {"spent": usage_last_day(nexus), "health": _health(nexus, request)})


def attention(nexus: Nexus, tx: Transaction, *, private: bool) -> list[dict[str, Any]]:
    """Return what a person should look at: `kind`, `id` and `name` of what it is about, and `what` in a sentence."""
    found = _held(nexus)
    if private:
        found += [*_held_up(nexus), *_undeleted(nexus), *_waiting(nexus), *_failed(tx)]
    return found


# --- parts ------------------------------------------------------------------------------------------


def _counts(tx: Transaction) -> dict[str, int]:
    by_place = tx.count_by_place()
    in_worlds = sum(count for (place, _), count in by_place.items() if place == "world")
    agents = sum(by_place.values())
    return {
        "agents": agents,
        "in_worlds": in_worlds,
        "in_nexus": agents - in_worlds,
        "paused": sum(count for (_, state), count in by_place.items() if state == "paused"),
        "sessions": tx.number("session") or 0,  # faster than counting rows
        "worlds": tx.count_worlds(),
        "events": tx.last_seq(),
    }


def _world_card(place: Place, private: bool) -> dict[str, Any]:
    return {
        "id": place.id,
        "game": place.game,
        "title": place.spec.display_title if place.spec is not None else place.game,
        "run": place.run,
        "draws": place.draws,
        "stays": [session_json(stay, private=private) for stay in place.stays[:16]],
        "lives": place.lives,
    }


def _held(nexus: Nexus) -> list[dict[str, Any]]:
    """Return the public message that a fault of the machine holds agents, if one does."""
    why = nexus.live.held
    return [{"kind": "machine", "id": "machine", "name": "Agents are held", "what": why}] if why else []


def _held_up(nexus: Nexus) -> list[dict[str, Any]]:
    """Return the message that a reader makes the write-ahead log grow, if one does."""
    log = log_bytes(nexus.store.database)
    if log is None or log <= LOG_MOST:
        return []
    what = (
        f"Its write-ahead log has grown to {log >> 20} MiB, because a program has been reading it for very long; it "
        "shrinks once that program ends."
    )
    return [{"kind": "machine", "id": "log", "name": "The database", "what": what}]


def _undeleted(nexus: Nexus) -> list[dict[str, Any]]:
    why = nexus.live.undeleted
    return [{"kind": "clock", "id": "clock", "name": "Old records are kept", "what": why}] if why else []


def _waiting(nexus: Nexus) -> list[dict[str, Any]]:
    """Return who has been waiting for whom for long; private, as whose turn it is may be a secret of the game."""
    found: list[dict[str, Any]] = []
    for wait in waits(nexus.live, ATTENTION_AFTER)[:20]:
        # Of a world that waits for its model, the world is what a person looks at.
        kind, name = ("world", wait.who) if wait.kind == "model" else (wait.kind, wait.whom)
        found.append({"kind": kind, "id": name, "name": name, "what": shortened(f"{wait.text}.", 500)})
    return found


def _failed(tx: Transaction) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"kind": "agent", "id": agent.id, "name": agent.name, "what": why}
        for agent in tx.agents(state="paused", limit=20)
        if (why := failure_of(tx, agent.id))
    ]
    for move in tx.transfers("unknown")[:20]:
        what = f"The outcome of its transfer to {move.data.get('game')} is unknown: {move.data.get('why')}"
        decide = _command("Decide with", "agents settle", move.agent_id, "--as arrived, or --as returned")
        what = shortened(what, 400) + decide
        found.append({"kind": "agent", "id": move.agent_id, "name": move.agent_id, "what": what})
    found += [
        {"kind": "world", "id": event.world, "name": event.world, "what": event.sentence()}
        for event in tx.events(kinds=(WorldRewound,), limit=1000)[-20:]
        if isinstance(event, WorldRewound) and event.time > tx.now - DAY
    ]
    for game in tx.closed_games()[:20]:
        what = shortened(f"{game.status}: {game.reason}" if game.reason else game.status, 400)
        what += _command("Open it with", "games online", game.name)
        found.append({"kind": "game", "id": game.name, "name": game.name, "what": what})
    return found


def _command(words: str, command: str, name: str, how: str = "") -> str:
    return f" {words}: wsap nexus {command} {shlex.quote(single_line(name))} {how}".rstrip()


def _health(nexus: Nexus, request: Request) -> dict[str, Any]:
    activity = request.app.state.activity
    return {
        "since": request.app.state.started,
        "database_bytes": size_of(nexus.store.database),
        "version": _version(),
        "held": nexus.live.held,
        "decisions": activity.decisions,
        "rate": activity.rate(),
    }


@cache
def _version() -> str:
    return version("wsap-nexus")
