"""The state of a nexus, running or not, read from its database."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from wsap_core.protocol.lines import plural
from wsap_core.protocol.wire import encode
from wsap_core.untrusted import single_line
from wsap_nexus import state
from wsap_nexus.agents.chronicle import failure_line, failure_of
from wsap_nexus.agents.messages import team_of
from wsap_nexus.hub.agents.place import GAME
from wsap_nexus.hub.transit.reconciliation import unresolved_transfers
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import AgentIdentity, SessionRecord
from wsap_nexus.store.events import why_ended
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.store.upkeep.prune import size_of


@dataclass(frozen=True)
class AgentRow:
    """One agent in a list."""

    id: str
    name: str
    state: str
    """"active" or "paused"."""
    place: str
    """The game it is in, or "nexus"."""
    session: str | None
    since: str | None
    """When the session was opened."""
    steps: int
    """Decisions in the session."""
    lifetime_steps: int
    decided_by: str
    """The model or agent that decides for it by default."""
    paused_because: str = ""
    """Why it is paused, if it failed; empty if a person paused it."""


def held(agent: AgentRow) -> str:
    """Return the state of an agent that is not active, with the reason if it failed."""
    return f"{agent.state}: {single_line(agent.paused_because)}" if agent.paused_because else agent.state


@dataclass(frozen=True)
class WorldLine:
    """The worlds of one game."""

    game: str
    worlds: int
    agents: int
    """Agents in them now."""


@dataclass(frozen=True)
class KeptLine:
    """A world that lives in the nexus, with or without agents in it."""

    name: str
    game: str
    tick: int
    """The number of its last tick."""
    agents: int
    """Agents in it now."""
    failures: int

    def text(self) -> str:
        """Return it as one line."""
        failed = f", failed {plural(self.failures, 'time')}" if self.failures else ""
        name, game = single_line(self.name), single_line(self.game)
        return f"{name} ({game}): tick {self.tick}, {plural(self.agents, 'agent')}{failed}"


@dataclass(frozen=True)
class DoubtLine:
    """A transfer whose outcome is unknown."""

    agent: str
    transfer: str
    game: str
    since: str
    """When it was prepared: ISO 8601."""
    items: int
    """The number of items in it."""
    why: str

    def text(self) -> str:
        """Return it as one line."""
        carried = f" with {plural(self.items, 'item')}" if self.items else ""
        return single_line(
            f"{self.agent}: {self.transfer} to {self.game}{carried}, since {self.since[:16]}: {self.why}"
        )


@dataclass(frozen=True)
class ClosedLine:
    """A game that was closed, by a person or because it failed."""

    game: str
    status: str
    """"offline" or "maintenance"."""
    reason: str

    def text(self) -> str:
        """Return it as one line."""
        return single_line(f"{self.game} is {self.status}" + (f": {self.reason}" if self.reason else ""))


@dataclass(frozen=True)
class Status:
    """A nexus at one moment."""

    running: bool
    answers: bool
    url: str | None
    pid: int | None
    uptime: float | None
    """Seconds since the start."""
    database: str
    bytes: int | None
    """Size of the database on disk."""
    keep_days: float | None
    """Days after which a running nexus deletes recordings; None if it does not, or is not running."""
    agents: list[AgentRow] = field(default_factory=list)
    worlds: list[WorldLine] = field(default_factory=list)
    kept: list[KeptLine] = field(default_factory=list)
    """The worlds that live, by name."""
    in_doubt: list[DoubtLine] = field(default_factory=list)
    """The unresolved transfers, oldest first."""
    closed: list[ClosedLine] = field(default_factory=list)
    """The games that can't be entered, by name."""
    events: int = 0
    """Events in the log of the nexus."""
    sessions: int = 0
    reason: str | None = None
    """Why a running nexus holds its agents."""
    undeleted: str | None = None
    """Why a running nexus deletes nothing by age although it should."""
    waits: list[dict[str, Any]] = field(default_factory=list)
    """Who waits for whom in a running nexus, longest first. Any: the shape is the API's."""
    storage: dict[str, Any] | None = None
    """The growth of the database as measured by a running nexus. Any: the shape is the API's."""


def status_of(
    database: Database | None, running: state.Running | None, where: str, *, health: Mapping[str, Any] | None
) -> Status:
    """Return the status of a nexus. Any: the shape is the API's."""
    found = Status(
        running is not None,
        health is not None,
        running.url if running else None,
        running.pid if running else None,
        max(0.0, time.time() - running.started) if running else None,
        where,
        size_of(database) if database is not None else None,
        running.keep_days if running else None,
        reason=None if health is None else health.get("reason"),
        undeleted=None if health is None else health.get("undeleted"),
        waits=[] if health is None else list(health.get("waits") or ()),
        storage=None if health is None else health.get("storage"),
    )
    if database is None:
        return found
    with NexusStore(database).look() as tx:
        return replace(
            found,
            agents=agent_rows(tx),
            worlds=worlds_of(tx),
            kept=kept_of(tx),
            in_doubt=in_doubt_of(tx),
            closed=closed_of(tx),
            events=tx.count_events(),
            sessions=tx.count_sessions(),
        )


def agent_rows(tx: Transaction) -> list[AgentRow]:
    """Return all agents."""
    opened = {session.id: session for session in tx.open_sessions()}
    return [agent_row(tx, agent, opened.get(agent.session_id or "")) for agent in tx.agents()]


def agent_row(tx: Transaction, agent: AgentIdentity, session: SessionRecord | None) -> AgentRow:
    """Return one agent, with its open session."""
    policy = agent.policies.get("*") or agent.policies.get(GAME)
    decides = "the game's default agent" if policy is None or policy.agent == "wanderer" else policy.agent
    if policy is not None and policy.options.get("model"):
        decides = str(policy.options["model"])
    return AgentRow(
        agent.id,
        agent.name,
        agent.state,
        session.game if session is not None else GAME,
        session.id if session is not None else None,
        session.opened if session is not None else None,
        tx.last_step(session.run_id) if session is not None else 0,
        agent.lifetime_steps,
        decides,
        failure_of(tx, agent.id) if agent.state == "paused" else "",
    )


def worlds_of(tx: Transaction) -> list[WorldLine]:
    """Return the numbers of worlds and agents of every game with worlds that are in use or can be re-entered."""
    worlds = tx.worlds_in_use()
    agents = Counter(session.game for session in tx.open_sessions())
    return [WorldLine(game, worlds.get(game, 0), agents[game]) for game in sorted({*worlds, *agents})]


def kept_of(tx: Transaction) -> list[KeptLine]:
    """Return the worlds that live in the nexus, by name."""
    inside = Counter(session.world_id for session in tx.open_sessions())
    return [
        KeptLine(world.id, world.game, tx.last_step(world.run_id or "", "tick"), inside[world.id], world.failures)
        for world in tx.living_worlds()
    ]


def in_doubt_of(tx: Transaction) -> list[DoubtLine]:
    """Return the transfers whose outcome is unknown, oldest first."""
    return [
        DoubtLine(
            str(row.agent_id),
            str(row.id),
            str(row.data.get("game", "")),
            str(row.created),
            len(tx.items(row.agent_id, place="transfer", place_id=str(row.id))),
            str(row.data.get("why", "")),
        )
        for row in tx.transfers("unknown")
    ]


def closed_of(tx: Transaction) -> list[ClosedLine]:
    """Return the games that were closed, by a person or because they failed."""
    return [ClosedLine(game.name, game.status, game.reason) for game in tx.closed_games()]


# Any, in this module: JSON-ready data.


def agent_report(tx: Transaction, name: str) -> dict[str, Any]:
    """Return all data about an agent, JSON-ready; UnknownNameError if there is no such agent."""
    agent = tx.agent(name)
    session = None if agent.session_id is None else tx.session(agent.session_id)
    return {
        **asdict(agent_row(tx, agent, session)),
        "created": agent.created,
        "persona": agent.persona,
        "core_memories": list(agent.core_memories),
        "strategies": list(agent.strategies),
        "origins": dict(agent.origins),
        "team": team_of(tx, name),
        "policies": {g: {"agent": p.agent, "options": dict(p.options)} for g, p in sorted(agent.policies.items())},
        "playtime": agent.playtime,
        "skills": tx.skills(name),
        "evidence": [dict(row._mapping) for row in tx.evidence(name)],
        "achievements": [dict(row._mapping) for row in tx.achievements(name)],
        "items": [
            {"item": encode(r.item), "place": r.place, "place_id": r.place_id, "note": r.note} for r in tx.items(name)
        ],
        "bodies": [{"world": b.world_id, "game": b.game, "avatar": encode(b.avatar)} for b in tx.avatars(name)],
        "in_doubt": [asdict(move) for move in unresolved_transfers(tx, name)],
        "sessions": [encode(session) for session in tx.sessions(agent_id=name, limit=20)],
    }


def report_lines(found: Mapping[str, Any]) -> list[str]:
    """Return an agent's report as lines."""
    where = f"in {found['place']}" + (f", {plural(found['steps'], 'decision')} so far" if found["session"] else "")
    state = "" if found["state"] == "active" else f", {found['state']}"
    lines = [f"{found['name']} ({found['id']}), {where}{state}"]
    if found["paused_because"]:
        lines.append(failure_line(found["paused_because"]))
    if found["persona"]:
        lines.append(found["persona"])
    played = f"{plural(found['lifetime_steps'], 'decision')} in games, {plural(round(found['playtime']), 'second')}"
    lines.append(f"{played}; created {found['created'][:10]}")
    lines += [f"team: {found['team']}"] if found["team"] else []
    deciders = [f"{game}: {_decider(policy)}" for game, policy in found["policies"].items()]
    lines.append("decided by: " + (", ".join(deciders) or "each game's default agent"))
    skills = sorted(found["skills"].items(), key=lambda pair: -pair[1])
    lines.append("skills: " + (", ".join(f"{name} {level:.2f}" for name, level in skills) or "none yet"))
    lines += [f"core memory: {line}{_from(found, line)}" for line in found["core_memories"]]
    lines += [f"strategy: {line}{_from(found, line)}" for line in found["strategies"]]
    for title, entries in (
        ("achievements", [f"{a['name']} ({a['game']})" for a in found["achievements"]]),
        ("items", [f"{i['item']['name']} ({i['place']})" for i in found["items"] if i["place"] != "lost"]),
        ("avatars", [f"{b['avatar']['avatar_id']} in {b['world']}, {b['avatar']['state']}" for b in found["bodies"]]),
    ):
        if entries:
            lines.append(f"{title}: {', '.join(entries)}")
    lines += [
        f"unresolved transfer: {move['transfer']} to {move['game']} with {plural(len(move['items']), 'item')}: "
        f"{move['why']} (settle it with: wsap nexus agents settle {found['id']} --as arrived|returned)"
        for move in found["in_doubt"]
    ]
    if found["sessions"]:
        lines.append("last sessions:")
    for session in found["sessions"][:5]:
        ended = why_ended(session["reason"]) if session["closed"] else "still there"
        steps = plural(session["steps"], "decision") if session["closed"] else "open"
        lines.append(f"  {session['opened'][:16].replace('T', ' ')}  {session['game']}: {steps}, {ended}"
                     f"  (wsap replay {session['run_id']})")  # fmt: skip
    return [single_line(line) if not line.startswith("  ") else "  " + single_line(line) for line in lines]


def _from(found: Mapping[str, Any], line: str) -> str:
    origin = found["origins"].get(line)
    return f" (from the session {origin})" if origin else ""


def _decider(policy: Mapping[str, Any]) -> str:
    return str(policy["options"].get("model") or policy["agent"])
