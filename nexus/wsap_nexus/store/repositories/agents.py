"""The repository of agents: identities, memories, skills and achievements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import zstandard
from sqlalchemy import Row, delete, func, insert, select

from wsap_core.errors import UnknownNameError, UsageError
from wsap_core.protocol.wire import encode
from wsap_nexus.store.entities import (
    AGENT_ID,
    LONGEST_TEXT,
    AgentIdentity,
    Policy,
    SkillGain,
    identity_of,
    is_reserved,
    recorded,
)
from wsap_nexus.store.events import Names, NexusEvent
from wsap_nexus.store.events.agents import AchievementEarned, AgentRegistered, MessageSent, SkillGained
from wsap_nexus.store.repositories.log import EventRepository, matching
from wsap_nexus.store.tables import METADATA

_T = METADATA.tables
_AGENT, _SKILL, _EVIDENCE, _ACHIEVEMENT = _T["agent"], _T["skill"], _T["evidence"], _T["achievement"]
_EVENT, _TOKEN = _T["nexus_event"], _T["token"]
# What an agent brings with it from elsewhere, with a column that tells an agent's rows apart.
_HISTORY = (_EVENT.c.seq, _EVIDENCE.c.source, _ACHIEVEMENT.c.name)

_NAME = re.compile(AGENT_ID)


def check_agent_id(agent_id: str) -> str:
    """Return an agent's id; UsageError, with the rule, if it is invalid."""
    if not _NAME.fullmatch(agent_id):
        raise UsageError(
            f"{agent_id[:80]!r} can't be an agent's id; use up to 64 of a-z, 0-9, dot, dash and underscore, "
            "starting with a letter or digit."
        )
    return agent_id


def _refuse_reserved(word: str) -> None:
    if is_reserved(word):
        raise UsageError(
            f"An agent can't be called {word!r}, which is reserved for others that act and speak; choose another name."
        )


def _check_identity(agent_id: str, name: str, persona: str) -> None:
    check_agent_id(agent_id)
    if not (name or agent_id).isprintable() or len(name) > 200 or len(persona) > LONGEST_TEXT:
        raise UsageError(
            f"{ascii(name)[:80]} can't be an agent's name; use up to 200 printable characters, "
            f"and at most {LONGEST_TEXT} for the persona."
        )


class AgentRepository(EventRepository):
    """Reads and writes agents."""

    def register(
        self, agent_id: str, *, name: str = "", persona: str = "", policies: Mapping[str, Policy] | None = None
    ) -> tuple[AgentIdentity, bool]:
        """Return the agent of that id, unchanged if it exists, and whether it is new; UsageError if that is refused."""
        _check_identity(agent_id, name, persona)
        if (known := self.find_agent(agent_id)) is not None:
            if known.state == "removed":
                raise UsageError(f"The agent {agent_id!r} was removed; choose another id.")
            return known, False
        lore: dict[str, Any] = {"core_memories": [], "strategies": []}
        self.add_agent(agent_id, "active", name=name, persona=persona, policies=policies, lore=lore)
        self.note(AgentRegistered(agent_id=agent_id, name=name or agent_id))
        return self.agent(agent_id), True

    def add_agent(
        self,
        agent_id: str,
        state: str,
        *,
        name: str,
        persona: str,
        policies: Mapping[str, Policy] | None,
        lore: Mapping[str, Any],
    ) -> None:
        """Add the row of a new agent, without an event; UsageError if its identity is refused. Any: JSON."""
        _check_identity(agent_id, name, persona)
        for word in (agent_id, name):
            _refuse_reserved(word)
        self._insert(
            _AGENT,
            id=agent_id,
            name=name or agent_id,
            created=self.stamp,
            state=state,
            place="nexus",
            persona=persona,
            policies={game: recorded(policy) for game, policy in (policies or {}).items()},
            lore=dict(lore),
            lifetime_steps=0,
            playtime=0.0,
        )

    def find_agent(self, agent_id: str) -> AgentIdentity | None:
        """Return an agent; None if there is none of that id."""
        row = self.connection.execute(select(_AGENT).where(_AGENT.c.id == agent_id)).one_or_none()
        return None if row is None else identity_of(row)

    def agent(self, agent_id: str) -> AgentIdentity:
        """Return an agent; UnknownNameError if there is none of that id."""
        if (agent := self.find_agent(agent_id)) is None:
            known = self.connection.execute(select(_AGENT.c.id).limit(1000)).scalars().all()
            raise UnknownNameError("agent", agent_id, known, hint="See them with: wsap nexus agents list")
        return agent

    def agents(
        self,
        *,
        state: str | None = None,
        place: str | None = None,
        search: str = "",
        after: str = "",
        limit: int = 100_000,
    ) -> list[AgentIdentity]:
        """Return agents ordered by id, removed ones only for the state "removed".

        Args:
            search: a part of an agent's id, or of its name in any case.
        """
        query = select(_AGENT).where(_AGENT.c.id > after, *matching(_AGENT, place=place))
        if search:
            named = _AGENT.c.name.icontains(search, autoescape=True)
            query = query.where(_AGENT.c.id.contains(search, autoescape=True) | named)
        query = query.where(_AGENT.c.state == state if state else _AGENT.c.state != "removed")
        return [identity_of(row) for row in self.connection.execute(query.order_by(_AGENT.c.id).limit(limit))]

    def ids_in_nexus(self, *, limit: int) -> list[str]:
        """Return the ids of active agents that are in the nexus, in order."""
        query = select(_AGENT.c.id).where((_AGENT.c.place == "nexus") & (_AGENT.c.state == "active"))
        return list(self.connection.execute(query.order_by(_AGENT.c.id).limit(limit)).scalars())

    def count_agents(self, *, state: str | None = None) -> int:
        """Return the number of agents in a state, by default of all that are not removed."""
        query = select(func.count()).select_from(_AGENT)
        query = query.where(_AGENT.c.state == state if state else _AGENT.c.state != "removed")
        return int(self.connection.execute(query).scalar_one())

    def count_by_place(self) -> dict[tuple[str, str], int]:
        """Return (place, state) -> the number of agents there, without removed ones."""
        query = select(_AGENT.c.place, _AGENT.c.state, func.count()).where(_AGENT.c.state != "removed")
        rows = self.connection.execute(query.group_by(_AGENT.c.place, _AGENT.c.state))
        return {(place, state): int(count) for place, state, count in rows}

    def lore(self, agent_id: str) -> dict[str, Any]:
        """Return what else is stored about an agent, such as its team; empty if there is no such agent. Any: JSON."""
        return dict(self.connection.execute(select(_AGENT.c.lore).where(_AGENT.c.id == agent_id)).scalar() or {})

    def lores(self, *, state: str | None = None) -> dict[str, dict[str, Any]]:
        """Return agent -> its `lore`, of agents in a state, by default of all that are not removed, ordered by id."""
        query = select(_AGENT.c.id, _AGENT.c.lore).order_by(_AGENT.c.id)
        query = query.where(_AGENT.c.state == state if state else _AGENT.c.state != "removed")
        return {row.id: dict(row.lore) for row in self.connection.execute(query)}

    def forget_agent(self, agent_id: str) -> None:
        """Delete the row of an agent that never lived here, after `forget_some_history`."""
        self.connection.execute(delete(_AGENT).where(_AGENT.c.id == agent_id))

    def forget_some_history(self, agent_id: str, *, most: int) -> bool:
        """Delete some of an agent's events, evidence and achievements, and return whether there were any."""
        for key in _HISTORY:
            mine = key.table.c.agent_id == agent_id
            some = delete(key.table).where(mine, key.in_(select(key).where(mine).limit(most)))
            if self.connection.execute(some).rowcount:
                return True
        return False

    # --- tokens ---------------------------------------------------------------------------------

    def owner_of_token(self, digest: str) -> str | None:
        """Return the agent of a token with this hash; None if there is none, or if the agent was removed."""
        query = select(_TOKEN.c.agent_id).join(_AGENT, _AGENT.c.id == _TOKEN.c.agent_id)
        found: str | None = self.connection.execute(
            query.where((_TOKEN.c.hash == digest) & (_AGENT.c.state != "removed"))
        ).scalar_one_or_none()
        return found

    def replace_token(self, agent_id: str, digest: str) -> None:
        """Store the hash of an agent's token, in place of its earlier ones."""
        self.connection.execute(delete(_TOKEN).where(_TOKEN.c.agent_id == agent_id))
        self._insert(_TOKEN, hash=digest, agent_id=agent_id, created=self.stamp)

    def update_agent(self, agent_id: str, **values: Any) -> None:
        """Change columns of an agent; StorageError if a value does not fit, UsageError for a reserved name."""
        if values.get("name") is not None and values["name"] != self.agent(agent_id).name:
            _refuse_reserved(values["name"])
        self._update(_AGENT, _AGENT.c.id == agent_id, **values)

    def memories(self, agent_id: str) -> bytes | None:
        """Return the stored memories of an agent, if any."""
        kept = self.connection.execute(select(_AGENT.c.mind).where(_AGENT.c.id == agent_id)).scalar_one()
        return None if kept is None else zstandard.decompress(bytes(kept))

    def save_memories(self, agent_id: str, memories: bytes) -> None:
        """Store the memories of an agent."""
        self.update_agent(agent_id, mind=zstandard.compress(memories))

    def names(self, events: Iterable[NexusEvent]) -> Names:
        """Return the names of the agents in some events."""
        told = list(events)
        ids = {event.agent_id for event in told} | {event.to for event in told if isinstance(event, MessageSent)}
        return Names(self.names_of(ids, limit=len(ids)))

    def names_of(self, ids: Iterable[str | None], *, limit: int = 1000) -> dict[str, str]:
        """Return id -> name of some agents; Nones and unknown ids are left out."""
        query = select(_AGENT.c.id, _AGENT.c.name).where(_AGENT.c.id.in_(sorted({key for key in ids if key})[:limit]))
        return {row.id: row.name for row in self.connection.execute(query)}

    # --- skills and achievements ----------------------------------------------------------------

    def skills(self, agent_id: str) -> dict[str, float]:
        """Return domain -> level."""
        rows = self.connection.execute(
            select(_SKILL.c.domain, _SKILL.c.level).where(_SKILL.c.agent_id == agent_id).order_by(_SKILL.c.domain)
        )
        return {row.domain: row.level for row in rows}

    def put_skills(self, agent_id: str, levels: Mapping[str, float]) -> None:
        """Store the first levels of an agent's skills, by domain, without evidence."""
        rows = [{"agent_id": agent_id, "domain": domain, "level": level} for domain, level in sorted(levels.items())]
        if rows:
            self.connection.execute(insert(_SKILL), rows)

    def put_evidence(self, agent_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Store evidence from elsewhere: rows with domain, game, source, times, gained."""
        self.connection.execute(insert(_EVIDENCE), [{"agent_id": agent_id, **row} for row in rows])

    def put_achievements(self, agent_id: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Store achievements from elsewhere: rows with game, name, first, times."""
        self.connection.execute(insert(_ACHIEVEMENT), [{"agent_id": agent_id, **row} for row in rows])

    def evidence(self, agent_id: str, game: str | None = None) -> list[Row[Any]]:
        """Return rows of evidence: domain, game, source, times, gained."""
        query = select(_EVIDENCE).where(*matching(_EVIDENCE, agent_id=agent_id, game=game))
        return list(self.connection.execute(query.order_by(_EVIDENCE.c.domain, _EVIDENCE.c.game, _EVIDENCE.c.source)))

    def add_gain(self, agent_id: str, game: str, session: str, gain: SkillGain) -> None:
        """Store a skill's new level, with its evidence."""
        skill = {"agent_id": agent_id, "domain": gain.domain}
        self._put(
            _EVIDENCE,
            {**skill, "game": game, "source": gain.source},
            changed={"times": _EVIDENCE.c.times + gain.times, "gained": _EVIDENCE.c.gained + gain.gain},
            new={"times": gain.times, "gained": gain.gain},
        )
        self._put(_SKILL, skill, changed={"level": gain.level}, new={"level": gain.level})
        self.note(SkillGained(agent_id=agent_id, game=game, session_id=session, **encode(gain)))

    def achievements(self, agent_id: str) -> list[Row[Any]]:
        """Return rows of achievements: game, name, first, times."""
        query = select(_ACHIEVEMENT).where(_ACHIEVEMENT.c.agent_id == agent_id)
        return list(self.connection.execute(query.order_by(_ACHIEVEMENT.c.game, _ACHIEVEMENT.c.name)))

    def add_achievement(self, agent_id: str, game: str, session: str, name: str, times: int) -> None:
        """Count an achievement; the first time is an event."""
        first = self._put(
            _ACHIEVEMENT,
            {"agent_id": agent_id, "game": game, "name": name},
            changed={"times": _ACHIEVEMENT.c.times + times},
            new={"first": self.stamp, "times": times},
        )
        if first:
            self.note(AchievementEarned(agent_id=agent_id, game=game, session_id=session, name=name))
