"""Agents leaving worlds with their items, skills and memories.

The world releases the agent's items; then body, items, skills, achievements, memories, the world's state and the
agent's place are committed in one transaction. If the nexus is killed before it, the session is still open and is
resumed from the log.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from wsap_core.errors import WireError, WorldError
from wsap_core.protocol import Avatar, AvatarState, DeathEvent, TransitPackage
from wsap_core.protocol.wire import encode
from wsap_core.specs import AdapterSpec
from wsap_nexus.agents.metagoals import advance
from wsap_nexus.agents.skills import skill_gains
from wsap_nexus.hub.live_session import SessionStats
from wsap_nexus.hub.transit.item_transfer import take_items
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.errors import UnfitValueError
from wsap_nexus.store.events.sessions import Died, Left
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.worlds.port import WorldPort, avatar_in
from wsap_nexus.worlds.seats import SeatPort, leave

T = TypeVar("T")

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorldExit:
    """An agent's exit from a world, before the commit."""

    reason: str
    package: TransitPackage
    avatar: Avatar
    stats: SessionStats
    death: DeathEvent | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further final statistics; `told` are those that the game counted. Any: JSON-ready."""
    seconds: float = 0.0
    world_state: bytes | None = None
    """The world's state to store; None if nobody can return there."""
    memories: bytes | None = None
    """The agent's memories to store."""


def commit_exit(
    tx: Transaction,
    session: SessionRecord,
    spec: AdapterSpec,
    world_exit: WorldExit,
    transfer_id: str,
    *,
    lives_on: bool = False,
) -> None:
    """Commit an agent's return to the nexus with all it brings; NotInWorldError if its session is already closed.

    If the world `lives_on`, the agent's body stays there with the items that were not released.
    """
    agent = tx.agent(session.agent_id)
    stats = world_exit.stats
    lifetime = agent.lifetime_steps + stats.steps
    tx.put_avatar(session.world_id, agent.id, world_exit.avatar, left_at=lifetime)
    refused = take_items(tx, agent.id, session.world_id, spec.name, world_exit.package, session=session.id)
    if world_exit.world_state is None and not lives_on:
        tx.lose_items(agent.id, session.world_id)
    learn(tx, session, spec.skills or {}, stats)
    if world_exit.death is not None:
        tx.note(Died.of(world_exit.death, agent_id=agent.id, game=spec.name, session_id=session.id))
    items = [item.item_id for item in world_exit.package.items if item.item_id not in refused]
    close(
        tx, session, stats, world_exit.reason, world_exit.seconds, details=world_exit.details,
        memories=world_exit.memories, avatar=world_exit.avatar.state, items=items,
    )  # fmt: skip
    if lives_on or tx.is_played(session.world_id):
        pass  # the last agent's exit decides
    elif world_exit.world_state is None:
        tx.end_world(session.world_id)
    else:
        tx.keep_world(session.world_id, snapshot=world_exit.world_state, run_id=None, failures=0)
    tx.settle(transfer_id, "done", reason=world_exit.reason, session=session.id, package=encode(world_exit.package))
    advance(tx, agent.id)


def learn(tx: Transaction, session: SessionRecord, declared: Mapping[str, Sequence[str]], stats: SessionStats) -> None:
    """Record a session's achievements, and the skill gains that the game declares for them."""
    agent_id, game = session.agent_id, session.game
    for name in stats.achievements:
        tx.add_achievement(agent_id, game, session.id, name, stats.done[f"achievement:{name}"])
    shown = {(row.domain, row.source): row.times for row in tx.evidence(agent_id, game)}
    for gain in list(skill_gains(declared, stats.done, levels=tx.skills(agent_id), shown=shown)):
        tx.add_gain(agent_id, game, session.id, gain)


def close(
    tx: Transaction, session: SessionRecord, stats: SessionStats, reason: str, seconds: float, *,
    memories: bytes | None, details: Mapping[str, Any] | None = None, avatar: AvatarState = AvatarState.DESTROYED,
    items: Sequence[str] = (),
) -> None:  # fmt: skip
    """Close a session with its statistics and its agent's memories, and put the agent into the nexus.

    Args:
        details: final statistics besides those of the log.
        avatar: the final state of its body.
        items: the ids of the items it brought back.

    Raises:
        NotInWorldError: the session is already closed.
    """
    agent = tx.agent(session.agent_id)
    totals = _totals(stats)
    kept = {**(details or {}), **totals, "seconds": round(seconds, 3)}
    tx.close_session(session.id, reason=reason, steps=stats.steps, stats=kept)
    tx.update_agent(agent.id, lifetime_steps=agent.lifetime_steps + stats.steps, playtime=agent.playtime + seconds)
    if memories is not None:
        tx.save_memories(agent.id, memories)
    tx.note(
        Left(
            agent_id=agent.id,
            game=session.game,
            session_id=session.id,
            world=session.world_id,
            run=session.run_id,
            reason=reason,
            steps=stats.steps,
            **totals,
            avatar_state=avatar.value,
            items=list(items),
        )
    )


def recount(tx: Transaction, session: SessionRecord, stats: SessionStats) -> None:
    """Give a closed session the statistics of all its steps, of which the last came after it was closed."""
    agent = tx.agent(session.agent_id)
    tx.recount_session(session.id, steps=stats.steps, stats={**session.stats, **_totals(stats)})
    tx.update_agent(agent.id, lifetime_steps=agent.lifetime_steps + stats.steps - session.steps)


def _totals(stats: SessionStats) -> dict[str, Any]:
    done = dict(sorted(stats.done.items()))
    return {"reward": round(stats.reward, 6), "achievements": stats.achievements, "done": done}


def in_any_case(nexus_store: NexusStore, close: Callable[..., T]) -> T:
    """Return what `close` does in a transaction; if its statistics don't fit the database, do it again with `bare`.

    So nothing that a game reported can keep an agent in its world.
    """
    try:
        with nexus_store.change() as tx:
            return close(tx, bare=False)
    except (UnfitValueError, ValueError, ArithmeticError, LookupError, TypeError, WireError) as problem:
        _LOG.warning("A session is closed without its statistics, which can't be recorded: %s", problem)
    with nexus_store.change() as tx:
        return close(tx, bare=True)


async def exit_world(
    world: WorldPort,
    session: SessionRecord,
    seat: SeatPort,
    transfer_id: str,
    reason: str,
    stats: SessionStats,
    seconds: float,
    *,
    others: bool = False,
    lives_on: bool = False,
) -> WorldExit:
    """Take an agent out of its seat with the items it may carry; nothing is committed yet.

    An agent that has not left by itself is taken out, safe or not, and its body is suspended: nothing can happen to it
    until the agent returns.

    Args:
        transfer_id: makes the exit idempotent: the world carries it out once.
        reason: why the agent leaves; a death is detected here.
        others: others play on: the world is theirs, and the agent can't return to this body.
        lives_on: the world lives, and the body stays in it until its agent returns.

    Raises:
        WorldError: the world fails, or releases an invalid package.
    """
    body = await avatar_in(world, seat.agent_id, session.avatar_id)
    chose = seat.left is not None
    died = body.state is AvatarState.DESTROYED and not chose
    gone = body.state is AvatarState.DESTROYED and chose
    keeps = world.can_snapshot and not gone and not others and (died or reason != "finished")
    if not chose and body.state is AvatarState.BOUND:
        await leave(seat, "dormant" if lives_on else "suspend" if keeps else "despawn")
        body = await avatar_in(world, seat.agent_id, session.avatar_id)
    if lives_on and body.state is not AvatarState.DESTROYED:
        body = replace(body, state=AvatarState.DORMANT, bound_agent=None)
    elif not keeps:
        body = replace(body, state=AvatarState.DESTROYED, bound_agent=None)
    elif body.state is AvatarState.BOUND:
        body = replace(body, state=AvatarState.SUSPENDED, bound_agent=None)
    death = await world.death(body.avatar_id) if died else None
    if death is not None and not death.respawn_options:
        keeps = False  # nobody can return to it
    package = await world.release(body.avatar_id, transfer_id)
    if package.transfer_id != transfer_id:
        raise WorldError(f"The game {world.spec.name!r} released a package of another transfer than {transfer_id!r}.")
    state = await world.snapshot() if keeps else None
    told = {} if seat.left is None else dict(seat.left.session_stats)
    return WorldExit(
        "death" if died else reason,
        package,
        body,
        stats,
        death,
        {"told": told} if told else {},
        seconds=seconds,
        world_state=state,
    )
