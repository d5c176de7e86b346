"""Moving agents: into worlds and out of them, with their skills, their things, and nothing twice.

Entering: the way is *prepared* (checks, items taken out of escrow into the transfer) in one
transaction; then the world is made or woken, lets in what it will, and gives a first observation;
then everything is *committed* in a second transaction: body, items, session, place. A nexus that
is killed in between finds the prepared transfer when it starts again and takes it back: the world
had not been kept yet, so nothing has happened.

Leaving: the world gives out what the agent may carry; then body, items, skills, achievements,
memories, the world's state and the agent's place are committed in one transaction. Killed before
it, the session is still open, and goes on from the log.

Whatever a world says, the books are right: an item that it gives out and that is elsewhere stays
elsewhere, one that it writes off and never had is not lost, and the agent can leave all the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_core.errors import UsageError, WorldError
from wsap_core.protocol import (
    Avatar,
    AvatarSpec,
    AvatarState,
    DeathEvent,
    EmbodiedObservation,
    Entry,
    Receipt,
    TransitPackage,
)
from wsap_core.protocol.wire import encode
from wsap_core.seams.context import derive_seed
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import one_line
from wsap_nexus.agents.chronicle import death_words, respawn_words
from wsap_nexus.agents.exit_rules import parse_condition
from wsap_nexus.agents.metagoals import advance
from wsap_nexus.agents.skills import skill_gains
from wsap_nexus.errors import AgentPausedError, AlreadyInWorldError, DiedAsleepError, RosterFullError
from wsap_nexus.hub.item_transfer import by_reason, lose_world, take_items
from wsap_nexus.hub.live_session import Deeds
from wsap_nexus.store.book import Book, Ledger
from wsap_nexus.store.entities import AgentIdentity, AvatarRecord, SessionRecord, Terms, WorldRecord
from wsap_nexus.store.events import Died, Entered, Left, TransferCancelled
from wsap_nexus.worlds.port import WorldFace
from wsap_nexus.worlds.seats import SeatFace, leave

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
    seat: SeatFace
    respawned: bool = False
    wanted: AvatarSpec | None = None
    """What body was asked for; None where there was one."""
    death: DeathEvent | None = None
    """What the body died of while it slept, if it did; it was brought back, as had been asked for."""
    package: TransitPackage | None = None
    """What came out of the body that died in its sleep, and what was lost with it."""


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
    """The world's state to be kept; None where nobody can go there again."""
    memories: bytes | None = None
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
    if avatar is not None and not book.has_state(avatar.world_id):
        raise UsageError(f"The world of {avatar.avatar.avatar_id!r} ({avatar.world_id}) is no more.")
    carried = book.items(agent_id, place="escrow")
    transfer_id = book.prepare(
        agent_id,
        "enter",
        world_id=avatar.world_id if avatar else None,
        game=spec.name,
        terms=terms.to_json(),
        items=[record.item.item_id for record in carried],
    )
    carried_ids = [record.item.item_id for record in carried]
    book.move_items(agent_id, carried_ids, from_place="escrow", to_place="transfer", to_id=transfer_id)
    return Way(transfer_id, agent_id, spec.name, terms, avatar)


def take_back(book: Book, transfer_id: str, agent_id: str, why: str) -> None:
    """Cancel a prepared way: the items are in escrow again, and the agent never left the nexus."""
    items = [record.item.item_id for record in book.items(agent_id, place="transfer", place_id=transfer_id)]
    book.move_items(agent_id, items, from_place="transfer", from_id=transfer_id, to_place="escrow", note=why)
    book.settle(transfer_id, "cancelled", why=why)
    book.note(TransferCancelled(agent_id=agent_id, transfer=transfer_id, why=why))


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
        DiedAsleepError: the body died while it slept, and the way says nothing of how it is to live again;
            `commit_death` writes that down.
        WorldError: the world refuses or fails.
    """
    with ledger.look() as book:
        agent = book.agent(way.agent_id)
        skills = book.skills(way.agent_id)
        items = [r.item for r in book.items(way.agent_id, place="transfer", place_id=way.transfer_id)]
    asleep = way.avatar is not None and way.avatar.avatar.state is AvatarState.DORMANT
    away = agent.lifetime_steps - way.avatar.left_at if way.avatar is not None and asleep else 0
    entry = Entry(way.transfer_id, seat_name, skills, items, away, way.terms.difficulty)
    wanted: AvatarSpec | None = None
    made: Avatar | None = None
    if kept is not None:
        # A snapshot is given back to a world with the same seats.
        await world.begin(record.seed)
        sleeping = await world.open_seat(seat_name)
        await world.restore(kept)
        if sleeping.left is None:
            # It was saved in the middle of play: nobody left it in order, because the world failed.
            await leave(sleeping, "suspend")
        avatar = await _body(world, seat_name, way.avatar.avatar.avatar_id if way.avatar else None)
    else:
        wanted = AvatarSpec(agent.name, spawn_location=way.terms.spawn, skill_bonuses=skills)
        made = await world.create_avatar(seat_name, wanted)
        avatar = made or Avatar(f"{seat_name}@{world.spec.name}", world.spec.name)
    respawned = avatar.state is AvatarState.DESTROYED
    if respawned:
        await _bring_back(world, seat_name, avatar.avatar_id, way.terms.respawn)
    receipt = await world.admit(avatar.avatar_id, entry)
    _check_receipt(entry, receipt, world.spec)
    death = package = None
    if asleep and (await _body(world, seat_name, avatar.avatar_id)).state is AvatarState.DESTROYED:
        # Nobody was there when it died; it is learned of on coming back.
        package = await world.release(avatar.avatar_id, f"{way.transfer_id}-death")
        if way.terms.respawn is None:
            raise await _found_dead(world, seat_name, avatar.avatar_id, receipt, package)
        death = await _bring_back(world, seat_name, avatar.avatar_id, way.terms.respawn)
    seat = await world.open_seat(seat_name)
    # With several seats, a first observation may wait for others to act.
    observation = await seat.observe() if world.spec.seats[1] == 1 else None
    if isinstance(observation, EmbodiedObservation):
        avatar = observation.avatar
    else:
        avatar = await _body(world, seat_name, avatar.avatar_id if kept is not None or made else None)
    # In its own process, or by its own account, the game may go by another name.
    avatar = replace(avatar, game_id=world.spec.name)
    if avatar.state is not AvatarState.BOUND:
        raise WorldError(f"The game {world.spec.name!r} let {way.agent_id!r} in, but its body is {avatar.state.value}.")
    return Arrival(way, seat_name, avatar, entry, receipt, seat, respawned, wanted, death, package)


async def _found_dead(
    world: WorldFace, seat_name: str, avatar_id: str, receipt: Receipt, package: TransitPackage
) -> DiedAsleepError:
    """Return what there is to tell of a body that died in its sleep."""
    body = replace(await _body(world, seat_name, avatar_id), bound_agent=None)
    death = await world.death(avatar_id) or DeathEvent(avatar_id, "unknown causes")
    state = await world.snapshot() if death.respawn_options else None
    told = Died.of(death, agent_id=seat_name, game=world.spec.name)
    options = told.death_respawn_options
    choice = f" Enter with avatar={avatar_id} and respawn={options[0]['id']}, or with avatar=new." if options else ""
    message = f"While you were away, {death_words(told)} {respawn_words(options)}{one_line(choice)}"
    return DiedAsleepError(message, death=death, body=body, receipt=receipt, package=package, state=state)


async def _bring_back(world: WorldFace, seat_name: str, avatar_id: str, wanted: str | None) -> DeathEvent:
    """Have a dead body live again, as was asked for or in the first way there is, and return what it died of."""
    death = await world.death(avatar_id)
    ways = {option.id: option for option in death.respawn_options} if death is not None else {}
    if death is None or not ways:
        raise WorldError(f"The avatar {avatar_id!r} can't live again.")
    if wanted is not None and wanted not in ways:
        raise UsageError(f"The avatar {avatar_id!r} can't live again by {wanted!r}; there are: {', '.join(ways)}.")
    await world.respawn(seat_name, avatar_id, wanted or next(iter(ways)))
    return death


def commit_enter(book: Book, arrival: Arrival, record: WorldRecord, run_id: str) -> SessionRecord:
    """Write down that an agent is in a world: body, items, session and place, as one.

    Raises:
        AgentPausedError: it was paused meanwhile.
        AlreadyInWorldError: it is in a world, or was removed.
    """
    way, avatar, receipt = arrival.way, arrival.avatar, arrival.receipt
    if book.agent(way.agent_id).state == "paused":
        raise AgentPausedError(f"{way.agent_id!r} was paused on its way.")
    if way.avatar is None:
        book.put_avatar(record.id, way.agent_id, replace(avatar, state=AvatarState.UNBOUND))
    if arrival.death is not None:
        book.put_avatar(record.id, way.agent_id, replace(avatar, state=AvatarState.DESTROYED, bound_agent=None))
        book.note(Died.of(arrival.death, agent_id=way.agent_id, game=way.game))
    book.put_avatar(record.id, way.agent_id, avatar, respawning=arrival.respawned or arrival.death is not None)
    if arrival.package is not None:
        # Before the newcomer's own things are written in: this is about what lay there.
        take_items(book, way.agent_id, record.id, way.game, arrival.package, session="")
    ways = {"from_place": "transfer", "from_id": way.transfer_id}
    book.move_items(way.agent_id, receipt.admitted, **ways, to_place="world", to_id=record.id)
    for why, refused in by_reason(receipt.refused).items():
        book.move_items(way.agent_id, refused, **ways, to_place="escrow", note=why)
    session = book.open_session(way.agent_id, way.game, record.id, avatar.avatar_id, run_id, way.terms)
    book.settle(way.transfer_id, "done", session=session.id, receipt=encode(receipt))
    book.note(
        Entered(
            agent_id=way.agent_id,
            game=way.game,
            session_id=session.id,
            world=record.id,
            run=run_id,
            avatar=avatar.avatar_id,
            respawned=arrival.respawned,
            woken=way.avatar is not None and not arrival.respawned,
            bonuses=encode(receipt.bonuses_applied),
            notes=list(receipt.notes),
        )
    )
    advance(book, way.agent_id)
    return session


def commit_death(book: Book, way: Way, record: WorldRecord, found: DiedAsleepError) -> None:
    """Write down that a body died in its sleep, and that its agent, whose choice it is now, is still in the nexus."""
    book.put_avatar(record.id, way.agent_id, replace(found.body, state=AvatarState.DESTROYED))
    book.note(Died.of(found.death, agent_id=way.agent_id, game=way.game))
    admitted = list(found.receipt.admitted)
    book.move_items(
        way.agent_id, admitted, from_place="transfer", from_id=way.transfer_id, to_place="world", to_id=record.id
    )
    take_items(book, way.agent_id, record.id, way.game, found.package, session="")
    if found.state is None:
        lose_world(book, way.agent_id, record.id)
        book.end_world(record.id)
    else:
        book.keep_world(record.id, snapshot=found.state)
    take_back(book, way.transfer_id, way.agent_id, str(found))
    advance(book, way.agent_id)


def commit_leave(book: Book, session: SessionRecord, spec: AdapterSpec, departure: Departure, transfer_id: str) -> None:
    """Write down that an agent is back in the nexus, with all it brings, as one.

    Raises:
        NotInWorldError: its session is over already.
    """
    agent = book.agent(session.agent_id)
    deeds = departure.deeds
    lifetime = agent.lifetime_steps + deeds.steps
    book.put_avatar(session.world_id, agent.id, departure.avatar, left_at=lifetime)
    refused = take_items(book, agent.id, session.world_id, spec.name, departure.package, session=session.id)
    if departure.world_state is None:
        lose_world(book, agent.id, session.world_id)
    learn(book, session, spec.skills or {}, deeds)
    if departure.death is not None:
        book.note(Died.of(departure.death, agent_id=agent.id, game=spec.name, session_id=session.id))
    close(book, session, deeds, departure.reason, departure.seconds, stats=departure.stats, memories=departure.memories)
    if book.is_played(session.world_id):
        pass  # whoever leaves last says what becomes of it
    elif departure.world_state is None:
        book.end_world(session.world_id)
    else:
        book.keep_world(session.world_id, snapshot=departure.world_state, run_id=None, failures=0)
    book.settle(transfer_id, "done", reason=departure.reason, session=session.id, package=encode(departure.package))
    book.note(
        Left(
            agent_id=agent.id,
            game=spec.name,
            session_id=session.id,
            world=session.world_id,
            run=session.run_id,
            reason=departure.reason,
            steps=deeds.steps,
            reward=round(deeds.reward, 6),
            achievements=deeds.achievements,
            done=dict(sorted(deeds.done.items())),
            avatar_state=departure.avatar.state.value,
            items=[item.item_id for item in departure.package.items if item.item_id not in refused],
        )
    )
    advance(book, agent.id)


def learn(book: Book, session: SessionRecord, declared: Mapping[str, Sequence[str]], deeds: Deeds) -> None:
    """Write down what was achieved in a session, and what skills it is worth by what the game declares."""
    agent_id, game = session.agent_id, session.game
    for name in deeds.achievements:
        book.add_achievement(agent_id, game, session.id, name, deeds.done[f"achievement:{name}"])
    shown = {(row.domain, row.source): row.times for row in book.evidence(agent_id, game)}
    for gain in list(skill_gains(declared, deeds.done, levels=book.skills(agent_id), shown=shown)):
        book.add_gain(agent_id, game, session.id, gain)


def close(
    book: Book, session: SessionRecord, deeds: Deeds, reason: str, seconds: float,
    *, stats: Mapping[str, Any], memories: bytes | None,
) -> None:  # fmt: skip
    """Close a session with what was done in it and what its agent remembers now; the agent is in the nexus then.

    Raises:
        NotInWorldError: it was closed before.
    """
    agent = book.agent(session.agent_id)
    totals = {
        "reward": round(deeds.reward, 6),
        "achievements": deeds.achievements,
        "done": dict(sorted(deeds.done.items())),
        "seconds": round(seconds, 3),
    }
    book.close_session(session.id, reason=reason, steps=deeds.steps, stats={**stats, **totals})
    book.update_agent(agent.id, lifetime_steps=agent.lifetime_steps + deeds.steps, playtime=agent.playtime + seconds)
    if memories is not None:
        book.save_memories(agent.id, memories)


async def let_out(
    world: WorldFace,
    session: SessionRecord,
    seat: SeatFace,
    transfer_id: str,
    reason: str,
    deeds: Deeds,
    seconds: float,
    *,
    others: bool = False,
) -> Departure:
    """Take an agent out of its seat with what it may carry; nothing is committed yet.

    One that has not left by itself is taken out as it is, safe or not, and its body is frozen:
    nothing can happen to it, and whoever comes back is where it was.

    Args:
        world: where it is.
        session: its stay.
        seat: its seat.
        transfer_id: of the transfer; the world does everything once for it.
        reason: why it leaves, as far as that is known; a death is found out here.
        deeds: what it did.
        seconds: how long it was there.
        others: whether others play on there: the world is theirs then, and nobody comes back to this body.

    Raises:
        WorldError: the world fails, or gives out something that is no package.
    """
    body = await _body(world, seat.agent_id, session.avatar_id)
    chose = seat.left is not None
    died = body.state is AvatarState.DESTROYED and not chose
    gone = body.state is AvatarState.DESTROYED and chose
    keeps = world.can_snapshot and not gone and not others and (died or reason != "finished")
    if not chose and body.state is AvatarState.BOUND:
        await leave(seat, "suspend" if keeps else "despawn")
        body = await _body(world, seat.agent_id, session.avatar_id)
    if not keeps:
        body = replace(body, state=AvatarState.DESTROYED, bound_agent=None)
    elif body.state is AvatarState.BOUND:
        body = replace(body, state=AvatarState.SUSPENDED, bound_agent=None)
    death = await world.death(body.avatar_id) if died else None
    if death is not None and not death.respawn_options:
        keeps = False  # nobody can come back to it
    package = await world.release(body.avatar_id, transfer_id)
    if not isinstance(package, TransitPackage):
        raise WorldError(f"The game {world.spec.name!r} released a {type(package).__name__}, not a TransitPackage.")
    if package.transfer_id != transfer_id:
        raise WorldError(f"The game {world.spec.name!r} released a package of another transfer than {transfer_id!r}.")
    state = await world.snapshot() if keeps else None
    return Departure("death" if died else reason, package, body, deeds, death, seconds=seconds, world_state=state)


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


def _check_receipt(entry: Entry, receipt: Receipt, spec: AdapterSpec) -> None:
    """Refuse a receipt that is not of this entry, leaves items out, or tells of bonuses that there can't be."""
    game = spec.name
    if receipt.transfer_id != entry.transfer_id:
        raise WorldError(f"The game {game!r} gave no receipt for {entry.transfer_id!r}.")
    brought = sorted(item.item_id for item in entry.items)
    if brought != sorted([*receipt.admitted, *receipt.refused]):
        raise WorldError(f"The game {game!r} did not say of every item whether it lets it in.")
    due = {rule.id for rule in spec.transfer_rules if entry.skills.get(rule.domain, 0.0) >= rule.threshold}
    undue = sorted(set(receipt.bonuses_applied) - due)
    if undue:
        raise WorldError(f"The game {game!r} applied the bonus {undue[0]!r}, which it has no rule for, or not yet.")


def way_seed(seed: int, way: Way) -> int:
    """Return the seed of what is decided by chance during a stay."""
    return derive_seed(seed, "way", way.transfer_id)
