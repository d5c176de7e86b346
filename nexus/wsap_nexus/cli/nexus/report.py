"""What is to be told of a nexus, running or not, as its database has it."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import Connection, func, select

from wsap_nexus import state
from wsap_nexus.hub.place import GAME
from wsap_nexus.hub.prune import size_of
from wsap_nexus.paths import database_location
from wsap_nexus.store.book import Book, Ledger
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import AgentIdentity, SessionRecord
from wsap_nexus.store.events import NexusEvent
from wsap_nexus.store.tables import METADATA

_EVENT, _NEXUS_EVENT = METADATA.tables["event"], METADATA.tables["nexus_event"]
_SESSION, _AGENT, _WORLD = METADATA.tables["session"], METADATA.tables["agent"], METADATA.tables["world"]


@dataclass(frozen=True)
class AgentRow:
    """One agent, as it is listed."""

    id: str
    name: str
    state: str
    """"active" or "paused"."""
    place: str
    """The game that it is in, or "nexus"."""
    session: str | None
    since: str | None
    """When the session was opened."""
    steps: int
    """Decisions in the session."""
    lifetime_steps: int
    decided_by: str
    """Who decides for it where nothing else is said."""


@dataclass(frozen=True)
class WorldLine:
    """One game, and how many worlds of it there are."""

    game: str
    worlds: int
    agents: int
    """Agents in them now."""


@dataclass(frozen=True)
class Status:
    """A nexus at one moment."""

    running: bool
    answers: bool
    url: str | None
    pid: int | None
    uptime: float | None
    """Seconds since it was started."""
    database: str
    bytes: int | None
    """What the database takes on the disk."""
    keep_days: float | None
    """Days after which a running nexus forgets; None where it does not, or none runs."""
    agents: list[AgentRow] = field(default_factory=list)
    worlds: list[WorldLine] = field(default_factory=list)
    events: int = 0
    """Events in the nexus' log."""
    sessions: int = 0
    """Stays, open and over."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return asdict(self)


def running_on(database: str | None) -> state.Running | None:
    """Return the nexus that runs on a database, None if none does."""
    return state.read(state.state_file(database_location(database, os.environ), os.environ))


def status_of(database: Database | None, running: state.Running | None, where: str, *, answers: bool) -> Status:
    """Return how a nexus stands."""
    found = Status(
        running is not None,
        answers,
        running.url if running else None,
        running.pid if running else None,
        max(0.0, time.time() - running.started) if running else None,
        where,
        size_of(database) if database is not None else None,
        running.keep_days if running else None,
    )
    if database is None:
        return found
    with Ledger(database).look() as book:
        count = book.connection.execute(select(func.count()).select_from(_NEXUS_EVENT)).scalar_one()
        sessions = book.connection.execute(select(func.count()).select_from(_SESSION)).scalar_one()
        return Status(
            **{
                **{name: getattr(found, name) for name in found.__dataclass_fields__},
                "agents": agent_rows(book),
                "worlds": worlds_of(book.connection),
                "events": int(count),
                "sessions": int(sessions),
            }
        )


def agent_rows(book: Book) -> list[AgentRow]:
    """Return every agent with where it is."""
    opened = {
        row.id: row
        for row in book.connection.execute(
            select(_SESSION.c.id, _SESSION.c.game, _SESSION.c.opened, _SESSION.c.run_id, _SESSION.c.agent_id).where(
                _SESSION.c.closed.is_(None)
            )
        )
    }
    return [agent_row(book.connection, agent, opened.get(agent.session_id or "")) for agent in book.agents()]


def agent_row(connection: Connection, agent: AgentIdentity, session: Any) -> AgentRow:
    """Return an agent with where it is. Any: a row, or a record, of its open session."""
    policy = agent.policies.get("*") or agent.policies.get(GAME)
    decides = "the game's own" if policy is None or policy.agent == "wanderer" else policy.agent
    if policy is not None and policy.options.get("model"):
        decides = str(policy.options["model"])
    return AgentRow(
        agent.id,
        agent.name,
        agent.state,
        session.game if session is not None else GAME,
        session.id if session is not None else None,
        session.opened if session is not None else None,
        last_step(connection, session.run_id) if session is not None else 0,
        agent.lifetime_steps,
        decides,
    )


def last_step(connection: Connection, run_id: str) -> int:
    """Return how many decisions a recording has; a walk back from its end to the last one."""
    query = select(_EVENT.c.step).where(_EVENT.c.run_id == run_id, _EVENT.c.kind == "step")
    return int(connection.execute(query.order_by(_EVENT.c.seq.desc()).limit(1)).scalar() or 0)


def worlds_of(connection: Connection) -> list[WorldLine]:
    """Return every game that has worlds, with how many are in them."""
    made: dict[str, int] = dict(
        connection.execute(select(_WORLD.c.game, func.count()).group_by(_WORLD.c.game)).tuples().all()
    )
    inside: dict[str, int] = dict(
        connection.execute(
            select(_SESSION.c.game, func.count()).where(_SESSION.c.closed.is_(None)).group_by(_SESSION.c.game)
        )
        .tuples()
        .all()
    )
    return [WorldLine(game, int(made.get(game, 0)), int(inside.get(game, 0))) for game in sorted({*made, *inside})]


def told(event: NexusEvent) -> str:
    """Return an event as a person reads it, without the time; empty for one that is of no interest to them."""
    teller = _TOLD.get(event.kind)
    body = event.body
    if teller is None:
        return f"{event.agent_id}: {event.kind.replace('_', ' ')}" if event.agent_id else event.kind.replace("_", " ")
    try:
        return str(teller(event, body))
    except (KeyError, TypeError, ValueError, AttributeError):
        return f"{event.agent_id or 'the nexus'}: {event.kind.replace('_', ' ')}"


def _entered(event: NexusEvent, body: Any) -> str:
    how = "lives again in" if body.get("respawned") else "wakes in" if body.get("woken") else "enters"
    bonuses = ", ".join(f"{name} {value}" for name, value in dict(body.get("bonuses") or {}).items())
    return f"{event.agent_id} {how} {event.game}" + (f" (with {bonuses})" if bonuses else "")


def _left(event: NexusEvent, body: Any) -> str:
    achieved = body.get("achievements") or []
    deeds = f", achieved {', '.join(achieved)}" if achieved else ""
    reason = str(body["reason"]).replace("_", " ")
    steps = "1 decision" if body["steps"] == 1 else f"{body['steps']} decisions"
    return f"{event.agent_id} leaves {event.game} after {steps} ({reason}{deeds})"


_GOES = {
    "escrow": ("goes into safe keeping", "go into safe keeping"),
    "transfer": ("goes on its way", "go on their way"),
    "world": ("goes into a world", "go into a world"),
    "lost": ("is lost", "are lost"),
}
"""How it is said that one thing, or several, go to a place."""


def _moved(event: NexusEvent, body: Any) -> str:
    one, several = _GOES[body["to"]]
    why = f": {body['why']}" if body.get("why") else ""
    if "items" in body:
        return f"{len(body['items'])} things of {event.agent_id} {several}{why}"
    return f"{event.agent_id}'s {body.get('name') or body['item_id']} {one}{why}"


def _body(event: NexusEvent, body: Any) -> str:
    # What else becomes of bodies goes with entering and leaving, which are told.
    return "" if body["state"] != "destroyed" else f"{event.agent_id}'s body in {event.game} is destroyed"


_TOLD: dict[str, Any] = {
    # Any: what tells an event from its body.
    "started": lambda e, b: f"the nexus starts, {b.get('agents', 0)} agents",
    "stopped": lambda e, b: "the nexus stops",
    "agent_registered": lambda e, b: f"{e.agent_id} joins the nexus",
    "agent_paused": lambda e, b: f"{e.agent_id} is paused",
    "agent_resumed": lambda e, b: f"{e.agent_id} goes on",
    "agent_failed": lambda e, b: f"{e.agent_id} fails and is paused: {b['error']}",
    "entered": _entered,
    "left": _left,
    "resumed": lambda e, b: f"{e.agent_id} goes on in {e.game}",
    "died": lambda e, b: f"{e.agent_id} dies in {e.game}: {b.get('death_cause') or 'nobody knows of what'}",
    "achievement": lambda e, b: f"{e.agent_id} achieves {b['name']} in {e.game}",
    "skill_gained": lambda e, b: f"{e.agent_id} is better at {b['domain']}: {b['level']:.2f} (+{b['gain']:.2f})",
    "item_found": lambda e, b: f"{e.agent_id} takes {b['item']['name']} out of {e.game}",
    "item_moved": _moved,
    "items_moved": _moved,
    "avatar_changed": _body,
    "onward_refused": lambda e, b: f"{e.agent_id} can't go on to {b['destination']}: {b['why']}",
    "game_failed": lambda e, b: f"a world of {e.game} fails: {b['error']}",
    "game_offline": lambda e, b: f"{e.game} is offline" + (f": {b['reason']}" if b.get("reason") else ""),
    "game_available": lambda e, b: f"{e.game} can be entered",
    "agent_moved_away": lambda e, b: f"{e.agent_id} goes to another nexus",
    "agent_imported": lambda e, b: f"{e.agent_id} comes in from a file",
    "agent_removed": lambda e, b: f"{e.agent_id} is removed",
    "diary": lambda e, b: f"{e.agent_id} writes: {b['text']}",
    "world_failed": lambda e, b: f"{e.game} did not let {e.agent_id} in: {b['error']}",
    "transfer_cancelled": lambda e, b: f"{e.agent_id}'s way is taken back: {b['why']}",
    "transfer_in_doubt": lambda e, b: f"it is not known what became of {e.agent_id}'s way to {e.game}: {b['why']}",
    "transfer_settled": lambda e, b: f"a person says that what {e.agent_id} took to {e.game} has {b['outcome']}",
    "pruned": lambda e, b: f"{b['runs']} old recordings and {b['nexus_events']} old events are forgotten",
}


def session_of(book: Book, agent: AgentIdentity) -> SessionRecord | None:
    """Return an agent's open session."""
    return book.session(agent.session_id) if agent.session_id is not None else None
