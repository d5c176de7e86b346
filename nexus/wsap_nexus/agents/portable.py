"""Export of an agent to a file, and import into this nexus or another one.

An export contains the identity with persona, policies, skills with their evidence, achievements, core memories and
strategies, meta-goals, diary and memories, but no items, worlds, avatars, recordings, messages, tokens or events.

Policies are imported only on request, because they can name programs and addresses.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Row, insert, select

from wsap_core.errors import UsageError, WireError, WsapError
from wsap_core.untrusted import error_line
from wsap_nexus.agents import agent_file
from wsap_nexus.agents.chronicle import every, time_of
from wsap_nexus.agents.metagoals import TEMPLATES, pursuits
from wsap_nexus.errors import TransitError
from wsap_nexus.store.entities import Policy
from wsap_nexus.store.events.agents import AgentImported, AgentRemoved, DiaryWritten, SkillGained
from wsap_nexus.store.nexus_store import Transaction
from wsap_nexus.store.tables import METADATA

_T = METADATA.tables
_SKILL, _EVIDENCE, _ACHIEVEMENT, _GOAL = (_T[name] for name in ("skill", "evidence", "achievement", "metagoal"))


@dataclass(frozen=True)
class Imported:
    """The result of an import."""

    agent_id: str
    policies_left_out: tuple[str, ...]
    """Policies that were not imported, such as "crafter: llm"."""


class RemovalRefusedError(UsageError):
    """The agent can't be removed now: it is in a world or in transit."""

    code = "EXPORT_REFUSED"


class ImportRefusedError(TransitError):
    """The nexus refuses the import of an agent."""

    code = "IMPORT_REFUSED"


def pack(tx: Transaction, agent_id: str) -> agent_file.Package:
    """Return the content of an agent's file; UnknownNameError if there is no such agent."""
    agent = tx.agent(agent_id)
    goals = tx.connection.execute(select(_GOAL).where(_GOAL.c.agent_id == agent_id).order_by(_GOAL.c.id)).all()
    bodies = [b for b in tx.avatars(agent_id) if b.avatar.state.value not in ("destroyed", "unbound")]
    memories = tx.memories(agent_id)
    return agent_file.Package(
        agent=agent_file.Identity.model_validate(agent),
        policies={
            game: agent_file.PackedPolicy(agent=p.agent, options=dict(p.options))
            for game, p in sorted(agent.policies.items())
        },
        skills=tx.skills(agent_id),
        evidence=[agent_file.Evidence.model_validate(row) for row in tx.evidence(agent_id)],
        achievements=[agent_file.Achieved.model_validate(row) for row in tx.achievements(agent_id)],
        goals=[agent_file.PackedGoal(id=row.id, state=row.state, data=_uncounted(row)) for row in goals],
        diary=_diary(tx, agent_id),
        mind=None if memories is None else base64.b64encode(memories).decode("ascii"),
        left=agent_file.Left(bodies=len(bodies), items=sum(r.place != "lost" for r in tx.items(agent_id))),
    )


def _diary(tx: Transaction, agent_id: str) -> list[agent_file.PackedEntry]:
    return [
        agent_file.PackedEntry(
            written=event.written or time_of(event), game=event.game, text=event.text, own_words=event.own_words
        )
        for event in every(tx, DiaryWritten, agent=agent_id)
    ]


def remove(tx: Transaction, agent_id: str) -> None:
    """Remove an agent, but keep its id and events; RemovalRefusedError if it is in a world or in transit."""
    check_not_removed(tx, agent_id)
    if tx.agent(agent_id).place != "nexus":
        raise RemovalRefusedError(
            f"{agent_id!r} is in a world; start the nexus and bring it back first: wsap nexus agents recall {agent_id}"
        )
    if tx.open_transfers(agent_id):
        raise RemovalRefusedError(f"{agent_id!r} is in transit; start the nexus, which completes that, and try again.")
    if any(row.agent_id == agent_id for row in tx.transfers("unknown")):
        raise RemovalRefusedError(
            f"A transfer of {agent_id!r} and its items is unresolved; wait for the game, or settle it: "
            f"wsap nexus agents settle {agent_id} --as returned"
        )
    tx.update_agent(agent_id, state="removed")
    tx.note(AgentRemoved(agent_id=agent_id))


def check_not_removed(tx: Transaction, agent_id: str) -> None:
    """Check that an agent exists (UnknownNameError) and was not removed (UsageError)."""
    if tx.agent(agent_id).state == "removed":
        raise UsageError(f"The agent {agent_id!r} was removed.")


def import_agent(
    tx: Transaction,
    package: agent_file.Package,
    *,
    agent_id: str | None = None,
    policies: Mapping[str, Policy] | None = None,
    known: Collection[str] = (),
    trust: bool = False,
    paused: bool = False,
) -> Imported:
    """Add the agent of a file.

    Args:
        agent_id: None for the id in the file.
        policies: take precedence over the file's.
        known: agents whose policies are imported from the file if they have no options.
        trust: import all policies of the file.

    Raises:
        ImportRefusedError: the id is taken.
        WireError: the package is invalid.
    """
    name = agent_id or package.agent.id
    _check_free(tx, name)
    packed = {game: Policy(p.agent, p.options) for game, p in sorted(package.policies.items())}
    taken = {game: p for game, p in packed.items() if trust or (p.agent in known and not p.options)}
    given = {**taken, **(policies or {})}
    tx.register(name, name=package.agent.name, persona=package.agent.persona, policies=given)
    _fill(tx, name, package, paused=paused)
    for entry in package.diary:
        own, written = entry.own_words, entry.written
        tx.note(DiaryWritten(agent_id=name, game=entry.game, text=entry.text, own_words=own, written=written))
    tx.note(AgentImported(agent_id=name, was=package.agent.id))
    _add_goals(tx, name, package)
    return Imported(name, tuple(f"{game}: {p.agent}" for game, p in packed.items() if game not in taken))


def _check_free(tx: Transaction, name: str) -> None:
    if (agent := tx.find_agent(name)) is not None:
        was = "was removed here, and ids are not reused" if agent.state == "removed" else "already lives here"
        raise ImportRefusedError(f"{name!r} {was}; import it under another id with --as NAME.")


def _fill(tx: Transaction, name: str, package: agent_file.Package, *, paused: bool) -> None:
    own = package.agent
    tx.update_agent(
        name,
        created=own.created,
        state="paused" if paused else "active",
        lore={"core_memories": list(own.core_memories), "strategies": list(own.strategies)},
        lifetime_steps=own.lifetime_steps,
        playtime=own.playtime,
    )
    if package.mind is not None:
        try:
            tx.save_memories(name, base64.b64decode(package.mind, validate=True))
        except binascii.Error:
            raise WireError("The agent's memories in the file are damaged; use another copy.") from None
    for domain, level in sorted(package.skills.items()):
        tx.connection.execute(insert(_SKILL).values(agent_id=name, domain=domain, level=level))
        # Goals for a level count this event.
        tx.note(SkillGained(agent_id=name, domain=domain, source="import", times=1, gain=0.0, level=level))
    for table, rows in ((_EVIDENCE, package.evidence), (_ACHIEVEMENT, package.achievements)):
        values = [{"agent_id": name, **row.model_dump()} for row in rows]
        if values:
            tx.connection.execute(insert(table), values)


def _add_goals(tx: Transaction, name: str, package: agent_file.Package) -> None:
    since = tx.last_seq()
    for goal in package.goals:
        tx.connection.execute(
            insert(_GOAL).values(agent_id=name, id=goal.id, state=goal.state, since=since, data=dict(goal.data))
        )
    try:
        for pursuit in pursuits(tx, name):
            for requirement in pursuit.goal.requirements:
                requirement.check()
            pursuit.measures()
            if pursuit.goal.reward is not None and pursuit.goal != TEMPLATES.get(pursuit.goal.id):
                raise WireError(f"{pursuit.goal.id!r} has a reward, which only goals of the nexus may have.")
    except (KeyError, TypeError, ValueError, AttributeError, WsapError) as error:
        raise WireError(f"A meta-goal in the file is invalid: {error_line(error, 200)}") from None


def _uncounted(row: Row[Any]) -> dict[str, JsonValue]:
    data = dict(row.data)
    if row.state == "active":
        data = {**data, "tallies": [{} for _ in data.get("tallies", ())], "seq": 0}
    return data
