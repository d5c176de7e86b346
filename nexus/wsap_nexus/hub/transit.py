"""Moving agents: into worlds and out of them, with their skills, their things, and nothing twice.

Entering: the way is *prepared* (checks, items taken out of escrow into the transfer) in one
transaction; then the world is made or woken, lets in what it will, and gives a first observation;
then everything is *committed* in a second transaction: body, items, session, place. A nexus that
is killed in between finds the prepared transfer when it starts again and takes it back: the world
had not been kept yet, so nothing has happened.

Leaving: the world gives out what the agent may carry; then body, items, skills, achievements,
memories, the world's state and the agent's place are committed in one transaction. Killed before
it, the session is still open, and goes on from the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.context import derive_seed
from wsap_core.errors import UsageError, WorldError
from wsap_core.models import (
    Avatar,
    AvatarSpec,
    AvatarState,
    DeathEvent,
    EmbodiedObservation,
    Entry,
    Receipt,
    TransitPackage,
)
from wsap_core.specs import AdapterSpec
from wsap_core.wire import encode
from wsap_core.worlds import Seat
from wsap_nexus.hub.book import Book, Ledger
from wsap_nexus.hub.conditions import parse_condition
from wsap_nexus.hub.errors import AgentPausedError, AlreadyInWorldError, RosterFullError
from wsap_nexus.hub.records import AgentIdentity, AvatarRecord, SessionRecord, Terms, WorldRecord
from wsap_nexus.hub.skills import skill_gains
from wsap_nexus.hub.stay import Deeds
from wsap_nexus.hub.worlds import WorldFace

MODES: Mapping[str, AvatarState] = {
    "dormant": AvatarState.DORMANT,
    "suspend": AvatarState.SUSPENDED,
    "despawn": AvatarState.DESTROYED,
}


@dataclass(frozen=True)
class Way:
    """An agent's prepared way into a game."""

    transfer_id: str
    agent_id: str
    game: str
    terms: Terms
    avatar: AvatarRecord | None
    """The body to wake or bring back; None for a new one."""


@dataclass(frozen=True)
class Arrival:
    """An agent that a world has let in, before that is committed."""

    way: Way
    seat_name: str
    avatar: Avatar
    entry: Entry
    receipt: Receipt
    seat: Seat
    respawned: bool = False


@dataclass(frozen=True)
class Departure:
    """What an agent leaves a world with."""

    reason: str
    package: TransitPackage
    avatar: Avatar
    deeds: Deeds
    death: DeathEvent | None = None
    stats: Mapping[str, Any] = field(default_factory=dict)
    """Final statistics, as the world and the log have them. Any: JSON-ready."""
    seconds: float = 0.0
    world_state: bytes | None = None
    """The world's state to be kept; None where it is not kept."""
    mind: bytes | None = None
    """What the agent's memory gave to keep."""


def prepare_enter(book: Book, agent_id: str, spec: AdapterSpec, terms: Terms) -> Way:
    """Return the prepared way of an agent into a game; its portable items are in the transfer now.

    Raises:
        UnknownNameError: there is no such agent.
        AgentPausedError: it is paused.
        AlreadyInWorldError: it is in a world, or on its way.
        RosterFullError: it has as many living bodies in the game as it may.
        UsageError: the avatar asked for is not there.
        ConfigError: the exit condition can't be read.
    """
    agent = book.agent(agent_id)
    if agent.state == "paused":
        raise AgentPausedError(f"{agent_id!r} is paused; resume it first.")
    if agent.state != "active":
        raise UsageError(f"{agent_id!r} was removed.")
    if agent.place != "nexus":
        raise AlreadyInWorldError(f"{agent_id!r} is in a world already; it has to leave that first.")
    if terms.exit_when:
        parse_condition(terms.exit_when)
    avatar = _choose_avatar(book, agent, spec, terms)
    carried = book.items(agent_id, place="escrow")
    transfer_id = book.prepare(
        agent_id,
        "enter",
        world_id=avatar.world_id if avatar else None,
        game=spec.name,
        terms=terms.to_json(),
        items=[record.item.item_id for record in carried],
    )
    for record in carried:
        book.move_item(agent_id, record.item.item_id, from_place="escrow", to_place="transfer", to_id=transfer_id)
    return Way(transfer_id, agent_id, spec.name, terms, avatar)


def take_back(book: Book, transfer_id: str, agent_id: str, why: str) -> None:
    """Cancel a prepared way: the items are in escrow again, and the agent never left the nexus."""
    for record in book.items(agent_id, place="transfer", place_id=transfer_id):
        book.move_item(
            agent_id,
            record.item.item_id,
            from_place="transfer",
            from_id=transfer_id,
            to_place="escrow",
            note=why,
        )
    book.settle(transfer_id, "cancelled", why=why)
    book.note("transfer_cancelled", agent=agent_id, transfer=transfer_id, why=why)


async def let_in(
    ledger: Ledger, world: WorldFace, record: WorldRecord, way: Way, *, seat_name: str, kept: bytes | None
) -> Arrival:
    """Bring an agent into a world, new or woken, up to its seat; nothing is committed yet.

    Args:
        ledger: where skills and items are looked up.
        world: begun, if it is new; just made, if `kept` is given.
        record: the world's.
        way: the agent's.
        seat_name: the seat, which is also who the agent is in the world.
        kept: the world's state to wake; None for a new world.

    Raises:
        WorldError: the world refuses or fails.
    """
    with ledger.look() as book:
        agent = book.agent(way.agent_id)
        skills = book.skills(way.agent_id)
        items = [r.item for r in book.items(way.agent_id, place="transfer", place_id=way.transfer_id)]
    away = agent.lifetime_steps - way.avatar.left_at if way.avatar else 0
    entry = Entry(way.transfer_id, seat_name, skills, items, away, way.terms.difficulty)
    if kept is not None:
        # A snapshot is given back to a world with the same seats.
        await world.begin(record.seed)
        await world.open_seat(seat_name)
        await world.restore(kept)
        avatar = await _body(world, seat_name, way.avatar.avatar.avatar_id if way.avatar else None)
    else:
        wanted = AvatarSpec(agent.name, spawn_location=way.terms.spawn, skill_bonuses=skills)
        made = await world.create_avatar(seat_name, wanted)
        avatar = made or Avatar(f"{seat_name}@{world.spec.name}", world.spec.name)
    respawned = avatar.state is AvatarState.DESTROYED
    if respawned:
        death = await world.death(avatar.avatar_id)
        options = death.respawn_options if death else ()
        if not options:
            raise WorldError(f"The avatar {avatar.avatar_id!r} can't live again.")
        await world.respawn(seat_name, avatar.avatar_id, options[0].id)
    receipt = await world.admit(avatar.avatar_id, entry)
    _check_receipt(entry, receipt, world.spec.name)
    seat = await world.open_seat(seat_name)
    # With several seats, a first observation may wait for others to act.
    observation = await seat.observe() if world.spec.seats[1] == 1 else None
    if isinstance(observation, EmbodiedObservation):
        avatar = observation.avatar
    else:
        avatar = await _body(world, seat_name, None)
    return Arrival(way, seat_name, avatar, entry, receipt, seat, respawned)


def commit_enter(book: Book, arrival: Arrival, record: WorldRecord, run_id: str) -> SessionRecord:
    """Write down that an agent is in a world: body, items, session and place, as one."""
    way, avatar, receipt = arrival.way, arrival.avatar, arrival.receipt
    if way.avatar is None:
        book.put_avatar(record.id, way.agent_id, replace(avatar, state=AvatarState.UNBOUND))
    book.put_avatar(record.id, way.agent_id, avatar, respawning=arrival.respawned)
    for item_id in receipt.admitted:
        book.move_item(
            way.agent_id,
            item_id,
            from_place="transfer",
            from_id=way.transfer_id,
            to_place="world",
            to_id=record.id,
        )
    for item_id, why in sorted(receipt.refused.items()):
        book.move_item(
            way.agent_id, item_id, from_place="transfer", from_id=way.transfer_id, to_place="escrow", note=why
        )
    session = book.open_session(way.agent_id, way.game, record.id, avatar.avatar_id, run_id, way.terms)
    book.settle(way.transfer_id, "done", session=session.id, receipt=encode(receipt))
    book.note(
        "entered",
        agent=way.agent_id,
        game=way.game,
        session=session.id,
        world=record.id,
        run=run_id,
        avatar=avatar.avatar_id,
        respawned=arrival.respawned,
        woken=way.avatar is not None and not arrival.respawned,
        bonuses=dict(receipt.bonuses_applied),
        notes=list(receipt.notes),
    )
    return session


def commit_leave(book: Book, session: SessionRecord, spec: AdapterSpec, departure: Departure, transfer_id: str) -> None:
    """Write down that an agent is back in the nexus, with all it brings, as one.

    Raises:
        ConservationError: the world gave out an item twice, or one that is elsewhere.
    """
    agent = book.agent(session.agent_id)
    deeds = departure.deeds
    lifetime = agent.lifetime_steps + deeds.steps
    book.put_avatar(session.world_id, agent.id, departure.avatar, left_at=lifetime)
    _take_items(book, session, spec, departure)
    for name in deeds.achievements:
        book.add_achievement(agent.id, spec.name, session.id, name, deeds.done[f"achievement:{name}"])
    shown = {(row.domain, row.source): row.times for row in book.evidence(agent.id, spec.name)}
    gains = list(skill_gains(spec.skills or {}, deeds.done, levels=book.skills(agent.id), shown=shown))
    for gain in gains:
        book.add_gain(agent.id, spec.name, session.id, gain)
    if departure.death is not None:
        book.note("died", agent=agent.id, game=spec.name, session=session.id, **_json(departure.death))
    stats = {
        **departure.stats,
        "reward": round(deeds.reward, 6),
        "achievements": deeds.achievements,
        "done": dict(sorted(deeds.done.items())),
        "seconds": round(departure.seconds, 3),
    }
    book.close_session(session.id, reason=departure.reason, steps=deeds.steps, stats=stats)
    book.update_agent(agent.id, lifetime_steps=lifetime, playtime=agent.playtime + departure.seconds)
    if departure.mind is not None:
        book.keep_mind(agent.id, departure.mind)
    book.keep_world(session.world_id, snapshot=departure.world_state, run_id=None)
    book.settle(transfer_id, "done", reason=departure.reason)
    book.note(
        "left",
        agent=agent.id,
        game=spec.name,
        session=session.id,
        world=session.world_id,
        run=session.run_id,
        reason=departure.reason,
        steps=deeds.steps,
        reward=round(deeds.reward, 6),
        achievements=deeds.achievements,
        done=dict(sorted(deeds.done.items())),
        avatar_state=departure.avatar.state.value,
        items=[item.item_id for item in departure.package.items],
    )


def _take_items(book: Book, session: SessionRecord, spec: AdapterSpec, departure: Departure) -> None:
    inside = {r.item.item_id for r in book.items(session.agent_id, place="world", place_id=session.world_id)}
    for item in departure.package.items:
        if item.item_id in inside:
            inside.discard(item.item_id)
            book.move_item(
                session.agent_id,
                item.item_id,
                from_place="world",
                from_id=session.world_id,
                to_place="escrow",
            )
        else:
            book.mint_item(session.agent_id, item, game=spec.name, session=session.id)
    for item_id, why in sorted(departure.package.lost.items()):
        inside.discard(item_id)
        book.move_item(
            session.agent_id,
            item_id,
            from_place="world",
            from_id=session.world_id,
            to_place="lost",
            note=why,
        )
    if departure.world_state is None:
        # The world is not kept, so what it has not given out is gone with it.
        for item_id in sorted(inside):
            book.move_item(
                session.agent_id,
                item_id,
                from_place="world",
                from_id=session.world_id,
                to_place="lost",
                note="the world that it was in is no more",
            )


def _choose_avatar(book: Book, agent: AgentIdentity, spec: AdapterSpec, terms: Terms) -> AvatarRecord | None:
    """Return the body to enter: the one asked for, else one that sleeps, else a dead one where no more may live."""
    if spec.seats[1] > 1:
        return None
    bodies = [b for b in book.avatars(agent.id, spec.name) if "snapshot" in spec.abilities]
    if terms.avatar is not None and terms.avatar != "new":
        chosen = [b for b in bodies if terms.avatar in (b.avatar.avatar_id, b.world_id)]
        if not chosen:
            known = ", ".join(f"{b.avatar.avatar_id} in {b.world_id}" for b in bodies) or "none"
            raise UsageError(f"{agent.id!r} has no avatar {terms.avatar!r} in {spec.name!r}; it has: {known}.")
        return chosen[0]
    living = [b for b in bodies if b.avatar.state is not AvatarState.DESTROYED]
    if living and terms.avatar is None:
        return living[0]
    if len(living) >= spec.max_avatars:
        raise RosterFullError(
            f"{agent.id!r} has {len(living)} living avatars in {spec.name!r}, as many as it may; enter one of them."
        )
    return None


async def _body(world: WorldFace, seat_name: str, avatar_id: str | None) -> Avatar:
    bodies = await world.avatars(seat_name)
    for body in bodies:
        if body.avatar_id == avatar_id or avatar_id is None:
            return body
    raise WorldError(f"The game {world.spec.name!r} no longer has the avatar {avatar_id!r} of {seat_name!r}.")


def _check_receipt(entry: Entry, receipt: Receipt, game: str) -> None:
    brought = sorted(item.item_id for item in entry.items)
    answered = sorted([*receipt.admitted, *receipt.refused])
    if brought != answered:
        raise WorldError(f"The game {game!r} did not say of every item whether it lets it in.")


def _json(value: Any) -> dict[str, Any]:
    # Any: a part of the protocol as JSON-ready data; names that the event has itself are left out.
    data = encode(value)
    return {f"death_{k}": v for k, v in data.items()}


def way_seed(seed: int, way: Way) -> int:
    """Return the seed of what is decided by chance during a stay."""
    return derive_seed(seed, "way", way.transfer_id)
