"""Agents on their way into worlds, with their skills and their items, and nothing twice.

Entering: the way is *prepared* (checks, items taken out of escrow into the transfer) in one
transaction; then the world is made or woken, lets in what it will, and gives a first observation;
then everything is *committed* in a second transaction: body, items, session, place. A nexus that
is killed in between finds the prepared transfer when it starts again and takes it back: the world
had not been kept yet, so nothing has happened.

Whatever a world says, the books are right: an item that it gives out and that is elsewhere stays
elsewhere, one that it writes off and never had is not lost, and the agent can leave all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from wsap_core import protocol
from wsap_core.errors import UsageError, WorldError
from wsap_core.protocol.wire import encode
from wsap_core.seams.context import derive_seed
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_nexus.agents.chronicle import death_words, respawn_words
from wsap_nexus.agents.exit_rules import parse_condition
from wsap_nexus.agents.metagoals import advance
from wsap_nexus.errors import AgentPausedError, AlreadyInWorldError, DiedAsleepError, RosterFullError
from wsap_nexus.hub.item_transfer import by_reason, lose_world, take_items
from wsap_nexus.store.entities import AgentIdentity, AvatarRecord, EntryRequest, SessionRecord, WorldRecord
from wsap_nexus.store.events.sessions import Died, Entered, TransferCancelled
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.worlds.port import WorldPort, avatar_in
from wsap_nexus.worlds.seats import SeatPort, leave


@dataclass(frozen=True)
class PreparedEntry:
    """An agent's entry into a game, prepared in a transaction of its own."""

    transfer_id: str
    agent_id: str
    game: str
    terms: EntryRequest
    avatar: AvatarRecord | None
    """The body to wake or bring back; None for a new one."""


@dataclass(frozen=True)
class WorldEntry:
    """An agent that a world has let in, before that is committed."""

    prepared: PreparedEntry
    seat_name: str
    avatar: protocol.Avatar
    entry: protocol.Entry
    receipt: protocol.Receipt
    seat: SeatPort
    respawned: bool = False
    wanted: protocol.AvatarSpec | None = None
    """What body was asked for; None where there was one."""
    death: protocol.DeathEvent | None = None
    """What the body died of while it slept, if it did; it was brought back, as had been asked for."""
    package: protocol.TransitPackage | None = None
    """What came out of the body that died in its sleep, and what was lost with it."""


def prepare_enter(tx: Transaction, agent_id: str, spec: AdapterSpec, terms: EntryRequest) -> PreparedEntry:
    """Return the prepared entry of an agent into a game; its portable items are in the transfer now.

    Raises:
        UnknownNameError: there is no such agent.
        AgentPausedError: it is paused.
        AlreadyInWorldError: it is in a world, or on its way.
        RosterFullError: it has as many living bodies in the game as it may.
        UsageError: the avatar asked for is not there.
        ConfigError: the exit condition can't be read.
    """
    agent = tx.agent(agent_id)
    if agent.state == "paused":
        raise AgentPausedError(f"{agent_id!r} is paused; resume it first.")
    if agent.state != "active":
        raise UsageError(f"{agent_id!r} was removed.")
    if agent.place != "nexus":
        raise AlreadyInWorldError(f"{agent_id!r} is in a world already; it has to leave that first.")
    if terms.exit_when:
        parse_condition(terms.exit_when)
    avatar = _choose_avatar(tx, agent, spec, terms)
    if avatar is not None and not tx.has_state(avatar.world_id):
        raise UsageError(f"The world of {avatar.avatar.avatar_id!r} ({avatar.world_id}) is no more.")
    carried = [record.item.item_id for record in tx.items(agent_id, place="escrow")]
    world_id = avatar.world_id if avatar else None
    transfer_id = tx.prepare(agent_id, "enter", world_id=world_id, game=spec.name, terms=terms.to_json(), items=carried)
    tx.move_items(agent_id, carried, from_place="escrow", to_place="transfer", to_id=transfer_id)
    return PreparedEntry(transfer_id, agent_id, spec.name, terms, avatar)


def cancel_entry(tx: Transaction, transfer_id: str, agent_id: str, why: str) -> None:
    """Cancel a prepared entry: the items are in escrow again, and the agent never left the nexus."""
    items = [record.item.item_id for record in tx.items(agent_id, place="transfer", place_id=transfer_id)]
    tx.move_items(agent_id, items, from_place="transfer", from_id=transfer_id, to_place="escrow", note=why)
    tx.settle(transfer_id, "cancelled", why=why)
    tx.note(TransferCancelled(agent_id=agent_id, transfer=transfer_id, why=why))


async def enter_world(
    nexus_store: NexusStore,
    world: WorldPort,
    record: WorldRecord,
    prepared: PreparedEntry,
    *,
    seat_name: str,
    kept: bytes | None,
) -> WorldEntry:
    """Bring an agent into a world, new or woken, up to its seat; nothing is committed yet.

    Args:
        world: begun, if it is new; just made, if `kept` is given.
        seat_name: the seat, which is also who the agent is in the world.
        kept: the world's state to wake; None for a new world.

    Raises:
        DiedAsleepError: the body died while it slept, and the way says nothing of how it is to live again;
            `commit_death` writes that down.
        WorldError: the world refuses or fails.
    """
    with nexus_store.look() as tx:
        agent = tx.agent(prepared.agent_id)
        skills = tx.skills(prepared.agent_id)
        items = [r.item for r in tx.items(prepared.agent_id, place="transfer", place_id=prepared.transfer_id)]
    asleep = prepared.avatar is not None and prepared.avatar.avatar.state is protocol.AvatarState.DORMANT
    away = agent.lifetime_steps - prepared.avatar.left_at if prepared.avatar is not None and asleep else 0
    entry = protocol.Entry(prepared.transfer_id, seat_name, skills, items, away, prepared.terms.difficulty)
    wanted: protocol.AvatarSpec | None = None
    made: protocol.Avatar | None = None
    if kept is not None:
        # A snapshot is given back to a world with the same seats.
        await world.begin(record.seed)
        sleeping = await world.open_seat(seat_name)
        await world.restore(kept)
        if sleeping.left is None:
            # It was saved in the middle of play: nobody left it in order, because the world failed.
            await leave(sleeping, "suspend")
        avatar = await avatar_in(world, seat_name, prepared.avatar.avatar.avatar_id if prepared.avatar else None)
    else:
        wanted = protocol.AvatarSpec(agent.name, spawn_location=prepared.terms.spawn, skill_bonuses=skills)
        made = await world.create_avatar(seat_name, wanted)
        avatar = made or protocol.Avatar(f"{seat_name}@{world.spec.name}", world.spec.name)
    respawned = avatar.state is protocol.AvatarState.DESTROYED
    if respawned:
        await _bring_back(world, seat_name, avatar.avatar_id, prepared.terms.respawn)
    receipt = await world.admit(avatar.avatar_id, entry)
    _check_receipt(entry, receipt, world.spec)
    death = package = None
    if asleep and (await avatar_in(world, seat_name, avatar.avatar_id)).state is protocol.AvatarState.DESTROYED:
        # Nobody was there when it died; it is learned of on coming back.
        package = await world.release(avatar.avatar_id, f"{prepared.transfer_id}-death")
        if prepared.terms.respawn is None:
            raise await _found_dead(world, seat_name, avatar.avatar_id, receipt, package)
        death = await _bring_back(world, seat_name, avatar.avatar_id, prepared.terms.respawn)
    seat = await world.open_seat(seat_name)
    # With several seats, a first observation may wait for others to act.
    observation = await seat.observe() if world.spec.seats[1] == 1 else None
    if isinstance(observation, protocol.EmbodiedObservation):
        avatar = observation.avatar
    else:
        avatar = await avatar_in(world, seat_name, avatar.avatar_id if kept is not None or made else None)
    # In its own process, or by its own account, the game may go by another name.
    avatar = replace(avatar, game_id=world.spec.name)
    if avatar.state is not protocol.AvatarState.BOUND:
        raise WorldError(
            f"The game {world.spec.name!r} let {prepared.agent_id!r} in, but its body is {avatar.state.value}."
        )
    return WorldEntry(prepared, seat_name, avatar, entry, receipt, seat, respawned, wanted, death, package)


async def _found_dead(
    world: WorldPort, seat_name: str, avatar_id: str, receipt: protocol.Receipt, package: protocol.TransitPackage
) -> DiedAsleepError:
    """Return what there is to tell of a body that died in its sleep."""
    body = replace(await avatar_in(world, seat_name, avatar_id), bound_agent=None)
    death = await world.death(avatar_id) or protocol.DeathEvent(avatar_id, "unknown causes")
    state = await world.snapshot() if death.respawn_options else None
    told = Died.of(death, agent_id=seat_name, game=world.spec.name)
    options = told.death_respawn_options
    choice = f" Enter with avatar={avatar_id} and respawn={options[0]['id']}, or with avatar=new." if options else ""
    message = f"While you were away, {death_words(told)} {respawn_words(options)}{single_line(choice)}"
    return DiedAsleepError(message, death=death, body=body, receipt=receipt, package=package, state=state)


async def _bring_back(world: WorldPort, seat_name: str, avatar_id: str, wanted: str | None) -> protocol.DeathEvent:
    """Have a dead body live again, as was asked for or in the first way there is, and return what it died of."""
    death = await world.death(avatar_id)
    options = {option.id: option for option in death.respawn_options} if death is not None else {}
    if death is None or not options:
        raise WorldError(f"The avatar {avatar_id!r} can't live again.")
    if wanted is not None and wanted not in options:
        raise UsageError(f"The avatar {avatar_id!r} can't live again by {wanted!r}; there are: {', '.join(options)}.")
    await world.respawn(seat_name, avatar_id, wanted or next(iter(options)))
    return death


def commit_enter(tx: Transaction, arrived: WorldEntry, record: WorldRecord, run_id: str) -> SessionRecord:
    """Write down that an agent is in a world: body, items, session and place, as one.

    Raises:
        AgentPausedError: it was paused meanwhile.
        AlreadyInWorldError: it is in a world, or was removed.
    """
    prepared, avatar, receipt = arrived.prepared, arrived.avatar, arrived.receipt
    if tx.agent(prepared.agent_id).state == "paused":
        raise AgentPausedError(f"{prepared.agent_id!r} was paused on its way.")
    if prepared.avatar is None:
        tx.put_avatar(record.id, prepared.agent_id, replace(avatar, state=protocol.AvatarState.UNBOUND))
    if arrived.death is not None:
        tx.put_avatar(
            record.id, prepared.agent_id, replace(avatar, state=protocol.AvatarState.DESTROYED, bound_agent=None)
        )
        tx.note(Died.of(arrived.death, agent_id=prepared.agent_id, game=prepared.game))
    tx.put_avatar(record.id, prepared.agent_id, avatar, respawning=arrived.respawned or arrived.death is not None)
    if arrived.package is not None:
        # Before the newcomer's own things are written in: this is about what lay there.
        take_items(tx, prepared.agent_id, record.id, prepared.game, arrived.package, session="")
    source = {"from_place": "transfer", "from_id": prepared.transfer_id}
    tx.move_items(prepared.agent_id, receipt.admitted, **source, to_place="world", to_id=record.id)
    for why, refused in by_reason(receipt.refused).items():
        tx.move_items(prepared.agent_id, refused, **source, to_place="escrow", note=why)
    session = tx.open_session(prepared.agent_id, prepared.game, record.id, avatar.avatar_id, run_id, prepared.terms)
    tx.settle(prepared.transfer_id, "done", session=session.id, receipt=encode(receipt))
    tx.note(
        Entered(
            agent_id=prepared.agent_id,
            game=prepared.game,
            session_id=session.id,
            world=record.id,
            run=run_id,
            avatar=avatar.avatar_id,
            respawned=arrived.respawned,
            woken=prepared.avatar is not None and not arrived.respawned,
            bonuses=encode(receipt.bonuses_applied),
            notes=list(receipt.notes),
        )
    )
    advance(tx, prepared.agent_id)
    return session


def commit_death(tx: Transaction, prepared: PreparedEntry, record: WorldRecord, found: DiedAsleepError) -> None:
    """Write down that a body died in its sleep, and that its agent, whose choice it is now, is still in the nexus."""
    tx.put_avatar(record.id, prepared.agent_id, replace(found.body, state=protocol.AvatarState.DESTROYED))
    tx.note(Died.of(found.death, agent_id=prepared.agent_id, game=prepared.game))
    source = {"from_place": "transfer", "from_id": prepared.transfer_id}
    tx.move_items(prepared.agent_id, found.receipt.admitted, **source, to_place="world", to_id=record.id)
    take_items(tx, prepared.agent_id, record.id, prepared.game, found.package, session="")
    if found.state is None:
        lose_world(tx, prepared.agent_id, record.id)
        tx.end_world(record.id)
    else:
        tx.keep_world(record.id, snapshot=found.state)
    cancel_entry(tx, prepared.transfer_id, prepared.agent_id, str(found))
    advance(tx, prepared.agent_id)


def _choose_avatar(
    tx: Transaction, agent: AgentIdentity, spec: AdapterSpec, terms: EntryRequest
) -> AvatarRecord | None:
    """Return the body to enter: the one asked for, else one that sleeps, else a dead one where no more may live."""
    if spec.seats[1] > 1:
        return None
    bodies = [b for b in tx.avatars(agent.id, spec.name) if "snapshot" in spec.abilities]
    if terms.avatar is not None and terms.avatar != "new":
        chosen = [b for b in bodies if terms.avatar in (b.avatar.avatar_id, b.world_id)]
        if not chosen:
            known = ", ".join(f"{b.avatar.avatar_id} in {b.world_id}" for b in bodies) or "none"
            raise UsageError(f"{agent.id!r} has no avatar {terms.avatar!r} in {spec.name!r}; it has: {known}.")
        return chosen[0]
    living = [b for b in bodies if b.avatar.state is not protocol.AvatarState.DESTROYED]
    if living and terms.avatar is None:
        return living[0]
    if len(living) >= spec.max_avatars:
        raise RosterFullError(
            f"{agent.id!r} has {len(living)} living avatars in {spec.name!r}, as many as it may; enter one of them."
        )
    return None


def _check_receipt(entry: protocol.Entry, receipt: protocol.Receipt, spec: AdapterSpec) -> None:
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


def entry_seed(seed: int, prepared: PreparedEntry) -> int:
    """Return the seed of what is decided by chance during a stay."""
    return derive_seed(seed, "way", prepared.transfer_id)
