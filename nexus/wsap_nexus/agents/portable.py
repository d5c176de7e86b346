"""Export of an agent to a file, and import into this nexus or another one.

An export contains the identity with persona, policies, skills with their evidence, achievements, core memories and
strategies, meta-goals, diary and memories, but no items, worlds, avatars, recordings, messages, tokens or events.

Policies are imported only on request, because they can name programs and addresses.
"""

from __future__ import annotations

import base64
import binascii
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from pydantic import JsonValue

from wsap_core.errors import UsageError, WireError, WsapError
from wsap_core.untrusted import error_line
from wsap_nexus.agents import agent_file
from wsap_nexus.agents.chronicle import every, time_of
from wsap_nexus.agents.metagoals import TEMPLATES, pursuits
from wsap_nexus.errors import TransitError
from wsap_nexus.store.entities import GoalRecord, Policy
from wsap_nexus.store.events.agents import AgentImported, AgentRegistered, AgentRemoved, DiaryWritten, SkillGained
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.store.repositories.log import event_row

_UNFINISHED = "unfinished"  # in an agent's lore: the import that is adding it

PIECE = 1000
"""Rows that an import writes in one transaction; others wait for it."""

T = TypeVar("T")


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
        goals=[agent_file.PackedGoal(id=row.id, state=row.state, data=_uncounted(row)) for row in tx.goals(agent_id)],
        diary=_diary(tx, agent_id),
        mind=None if memories is None else base64.b64encode(memories).decode("ascii"),
        left=agent_file.Left(bodies=len(bodies), items=sum(r.place != "lost" for r in tx.items(agent_id))),
    )


def _diary(tx: Transaction, agent_id: str) -> list[agent_file.PackedEntry]:
    newest = deque(every(tx, DiaryWritten, agent=agent_id), maxlen=agent_file.MOST_ENTRIES)
    return [
        agent_file.PackedEntry(
            written=event.written or time_of(event), game=event.game, text=event.text, own_words=event.own_words
        )
        for event in newest
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
    nexus_store: NexusStore,
    package: agent_file.Package,
    *,
    agent_id: str | None = None,
    policies: Mapping[str, Policy] | None = None,
    known: Collection[str] = (),
    trust: bool = False,
    paused: bool = False,
    pause: Callable[[float], object] = time.sleep,
) -> Imported:
    """Add the agent of a file, in pieces between which others can write; it appears whole at the end, or not at all.

    Until then its row is that of a removed agent. If this process is killed, `forget_unfinished` deletes the pieces.

    Args:
        agent_id: None for the id in the file.
        policies: take precedence over the file's.
        known: agents whose policies are imported from the file if they have no options.
        trust: import all policies of the file.
        pause: waits some seconds between two pieces.

    Raises:
        ImportRefusedError: the id is taken, or another import of this agent began.
        WireError: the package is invalid.
    """
    name = agent_id or package.agent.id
    packed = {game: Policy(p.agent, p.options) for game, p in sorted(package.policies.items())}
    taken = {game: p for game, p in packed.items() if trust or (p.agent in known and not p.options)}
    forget_unfinished(nexus_store, name, pause=pause)
    token = secrets.token_hex(8)
    with nexus_store.change() as tx:
        _check_free(tx, name)
        own = package.agent
        tx.add_agent(
            name,
            "removed",
            name=own.name,
            persona=own.persona,
            policies={**taken, **(policies or {})},
            lore={"core_memories": [], "strategies": [], _UNFINISHED: token},
        )
        _fill(tx, name, package)
        _add_goals(tx, name, package)
    try:
        _add_history(nexus_store, name, package, token, pause)
        with nexus_store.change() as tx:
            _check_mine(tx, name, token)
            lore = {"core_memories": list(own.core_memories), "strategies": list(own.strategies)}
            tx.update_agent(name, state="paused" if paused else "active", lore=lore)
            tx.note(AgentRegistered(agent_id=name, name=own.name or name))
            for domain, level in sorted(package.skills.items()):
                # Goals for a level count this event.
                tx.note(SkillGained(agent_id=name, domain=domain, source="import", times=1, gain=0.0, level=level))
            tx.note(AgentImported(agent_id=name, was=own.id))
    except BaseException:
        with suppress(WsapError):  # else the next import or start of a nexus deletes the pieces
            forget_unfinished(nexus_store, name, token=token, pause=pause)
        raise
    return Imported(name, tuple(f"{game}: {p.agent}" for game, p in packed.items() if game not in taken))


def forget_unfinished(
    nexus_store: NexusStore,
    agent_id: str | None = None,
    *,
    token: str | None = None,
    pause: Callable[[float], object] = time.sleep,
) -> None:
    """Delete the pieces of imports that did not end: of one agent or all; if a `token` is given, of that import."""
    with nexus_store.look() as tx:
        found = tx.lores(state="removed")
    for name, lore in found.items():
        if agent_id not in (None, name) or lore.get(_UNFINISHED) is None:
            continue
        if token not in (None, lore[_UNFINISHED]):
            continue
        with nexus_store.change() as tx:  # the import, if it still runs, notices
            tx.update_agent(name, lore={**lore, _UNFINISHED: "given up"})
        while _forget_piece(nexus_store, name, pause):
            pass
        with nexus_store.change() as tx:
            tx.forget_agent(name)


def _forget_piece(nexus_store: NexusStore, name: str, pause: Callable[[float], object]) -> bool:
    with _piece(pause), nexus_store.change() as tx:
        return tx.forget_some_history(name, most=PIECE)


@contextmanager
def _piece(pause: Callable[[float], object]) -> Iterator[None]:
    """Leave others more time than the block took, so that they get their turn."""
    began = time.monotonic()
    yield
    pause(max(0.02, 2 * (time.monotonic() - began)))


def _add_history(
    nexus_store: NexusStore,
    name: str,
    package: agent_file.Package,
    token: str,
    pause: Callable[[float], object],
) -> None:
    for evidence in _pieces([row.model_dump() for row in package.evidence]):
        with _piece(pause), nexus_store.change() as tx:
            _check_mine(tx, name, token)
            tx.put_evidence(name, evidence)
    for achievements in _pieces([row.model_dump() for row in package.achievements]):
        with _piece(pause), nexus_store.change() as tx:
            _check_mine(tx, name, token)
            tx.put_achievements(name, achievements)
    for entries in _pieces(package.diary):
        rows = [  # made before the transaction, in which others have to wait
            event_row(DiaryWritten(agent_id=name, game=e.game, text=e.text, own_words=e.own_words, written=e.written))
            for e in entries
        ]
        with _piece(pause), nexus_store.change() as tx:
            _check_mine(tx, name, token)
            tx.note_rows(rows)


def _pieces(rows: Sequence[T]) -> Iterator[Sequence[T]]:
    return (rows[start : start + PIECE] for start in range(0, len(rows), PIECE))


def _check_mine(tx: Transaction, name: str, token: str) -> None:
    if tx.lore(name).get(_UNFINISHED) != token:
        raise ImportRefusedError(f"Another import of {name!r} began, or a nexus was started; try again.")


def _check_free(tx: Transaction, name: str) -> None:
    if (agent := tx.find_agent(name)) is not None:
        was = "was removed here, and ids are not reused" if agent.state == "removed" else "already lives here"
        raise ImportRefusedError(f"{name!r} {was}; import it under another id with --as NAME.")


def _fill(tx: Transaction, name: str, package: agent_file.Package) -> None:
    own = package.agent
    tx.update_agent(name, created=own.created, lifetime_steps=own.lifetime_steps, playtime=own.playtime)
    if package.mind is not None:
        try:
            tx.save_memories(name, base64.b64decode(package.mind, validate=True))
        except binascii.Error:
            raise WireError("The agent's memories in the file are damaged; use another copy.") from None
    tx.put_skills(name, package.skills)


def _add_goals(tx: Transaction, name: str, package: agent_file.Package) -> None:
    since = tx.last_seq()
    for goal in package.goals:
        tx.put_goal(name, goal.id, state=goal.state, since=since, data=goal.data)
    try:
        for pursuit in pursuits(tx, name):
            for requirement in pursuit.goal.requirements:
                requirement.check()
            pursuit.measures()
            if pursuit.goal.reward is not None and pursuit.goal != TEMPLATES.get(pursuit.goal.id):
                raise WireError(f"{pursuit.goal.id!r} has a reward, which only goals of the nexus may have.")
    except (KeyError, TypeError, ValueError, AttributeError, WsapError) as error:
        raise WireError(f"A meta-goal in the file is invalid: {error_line(error, 200)}") from None


def _uncounted(stored: GoalRecord) -> dict[str, JsonValue]:
    data = dict(stored.data)
    if stored.state == "active":
        data = {**data, "tallies": [{} for _ in data.get("tallies", ())], "seq": 0}
    return data
