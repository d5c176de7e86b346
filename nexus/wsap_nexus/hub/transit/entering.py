"""Agents entering worlds with their skills and items; no item is ever duplicated.

1. *Prepare*, in one transaction: check, and move items from escrow into the transfer.
2. Make the world or restore it; it admits items and gives a first observation.
3. *Commit*, in a second transaction: body, items, session and place.

A nexus killed in between finds the prepared transfer at its next start and cancels it: the world had not been stored
yet, so nothing has happened.

The nexus does not trust worlds about items: one that a world releases but that is elsewhere stays elsewhere, one that
it reports lost but never had is not lost, and the agent can leave all the same.
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
from wsap_nexus.hub.transit.item_transfer import by_reason, take_items
from wsap_nexus.store.entities import USUAL_TERMS, AgentIdentity, AvatarRecord, EntryRequest, SessionRecord, WorldRecord
from wsap_nexus.store.events.sessions import Died, Entered, TransferCancelled
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.worlds.port import WorldPort, avatar_in
from wsap_nexus.worlds.seats import SeatPort, leave


@dataclass(frozen=True)
class PreparedEntry:
    """An agent's prepared entry into a game."""

    transfer_id: str
    agent_id: str
    game: str
    terms: EntryRequest
    avatar: AvatarRecord | None
    """The body to wake or respawn; None for a new one."""


@dataclass(frozen=True)
class WorldEntry:
    """An agent that a world has admitted, before the commit."""

    prepared: PreparedEntry
    seat_name: str
    avatar: protocol.Avatar
    entry: protocol.Entry
    receipt: protocol.Receipt
    seat: SeatPort
    respawned: bool = False
    wanted: protocol.AvatarSpec | None = None
    """The requested body; None where there was one already."""
    death: protocol.DeathEvent | None = None
    """The death of the body while it was dormant, if it died; it has been respawned as requested."""
    package: protocol.TransitPackage | None = None
    """What the dead body released and lost."""


def prepare_enter(tx: Transaction, agent_id: str, spec: AdapterSpec, terms: EntryRequest) -> PreparedEntry:
    """Prepare an agent's entry into a game; its escrowed items are in the transfer afterwards.

    Raises:
        UnknownNameError: there is no such agent.
        AgentPausedError: it is paused.
        AlreadyInWorldError: it is in a world, or on its way into one.
        RosterFullError: it has the maximum of living bodies in the game.
        UsageError: the requested avatar does not exist, or the game does not take the spawn, loadout or difficulty.
        ConfigError: the exit condition is invalid.
    """
    agent = tx.agent(agent_id)
    if agent.state == "paused":
        raise AgentPausedError(f"{agent_id!r} is paused; resume it first.")
    if agent.state != "active":
        raise UsageError(f"{agent_id!r} was removed.")
    if agent.place != "nexus":
        raise AlreadyInWorldError(f"{agent_id!r} is already in a world; it has to leave that first.")
    if terms.exit_when:
        parse_condition(terms.exit_when)
    avatar = _choose_avatar(tx, agent, spec, terms)
    if avatar is not None and not tx.has_state(avatar.world_id):
        raise UsageError(f"The world of {avatar.avatar.avatar_id!r} ({avatar.world_id}) no longer exists.")
    _check_terms(spec, terms, avatar)
    carried = [record.item.item_id for record in tx.items(agent_id, place="escrow")]
    world_id = avatar.world_id if avatar else None
    transfer_id = tx.prepare(agent_id, "enter", world_id=world_id, game=spec.name, terms=terms.to_json(), items=carried)
    tx.move_items(agent_id, carried, from_place="escrow", to_place="transfer", to_id=transfer_id)
    return PreparedEntry(transfer_id, agent_id, spec.name, terms, avatar)


def cancel_entry(tx: Transaction, transfer_id: str, agent_id: str, why: str) -> None:
    """Cancel a prepared entry: its items return to escrow, and the agent never left the nexus."""
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
    """Bring an agent into a new or restored world and its seat; nothing is committed yet.

    Args:
        world: started, or unstarted if `kept` is given.
        seat_name: the seat, and the agent's id in the world.
        kept: the world's state to restore; None for a new world.

    Raises:
        DiedAsleepError: the body died while dormant, and the entry requests no respawn; record it with `commit_death`.
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
        # A snapshot is restored to a world with the same seats.
        await world.begin(record.seed)
        sleeping = await world.open_seat(seat_name)
        await world.restore(kept)
        if sleeping.left is None:
            # Saved in the middle of play: the world failed, so the agent never left it properly.
            await leave(sleeping, "suspend")
        avatar = await avatar_in(world, seat_name, prepared.avatar.avatar.avatar_id if prepared.avatar else None)
    else:
        wanted = protocol.AvatarSpec(
            agent.name, spawn_location=prepared.terms.spawn, starting_loadout=prepared.terms.loadout
        )
        made = await world.create_avatar(seat_name, wanted)
        avatar = made or protocol.Avatar(f"{seat_name}@{world.spec.name}", world.spec.name)
    respawned = avatar.state is protocol.AvatarState.DESTROYED
    if respawned:
        await _bring_back(world, seat_name, avatar.avatar_id, prepared.terms.respawn)
    receipt = await world.admit(avatar.avatar_id, entry)
    _check_receipt(entry, receipt, world.spec)
    death = package = None
    if asleep and (await avatar_in(world, seat_name, avatar.avatar_id)).state is protocol.AvatarState.DESTROYED:
        # It died while its agent was away.
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
    # The game may use another name for itself, in its own process for example.
    avatar = replace(avatar, game_id=world.spec.name)
    if avatar.state is not protocol.AvatarState.BOUND:
        raise WorldError(
            f"The game {world.spec.name!r} let {prepared.agent_id!r} in, but its body is {avatar.state.value}."
        )
    return WorldEntry(prepared, seat_name, avatar, entry, receipt, seat, respawned, wanted, death, package)


async def _found_dead(
    world: WorldPort, seat_name: str, avatar_id: str, receipt: protocol.Receipt, package: protocol.TransitPackage
) -> DiedAsleepError:
    """Return the error that reports a body's death while dormant."""
    body = replace(await avatar_in(world, seat_name, avatar_id), bound_agent=None)
    death = await world.death(avatar_id) or protocol.DeathEvent(avatar_id, "unknown causes")
    state = await world.snapshot() if death.respawn_options else None
    told = Died.of(death, agent_id=seat_name, game=world.spec.name)
    options = told.death_respawn_options
    choice = f" Enter with avatar={avatar_id} and respawn={options[0]['id']}, or with avatar=new." if options else ""
    message = f"While you were away, {death_words(told)} {respawn_words(options)}{single_line(choice)}"
    return DiedAsleepError(message, death=death, body=body, receipt=receipt, package=package, state=state)


async def _bring_back(world: WorldPort, seat_name: str, avatar_id: str, wanted: str | None) -> protocol.DeathEvent:
    """Respawn a dead body by the requested option, or the first there is, and return its death."""
    death = await world.death(avatar_id)
    options = {option.id: option for option in death.respawn_options} if death is not None else {}
    if death is None or not options:
        raise WorldError(f"The avatar {avatar_id!r} can't respawn.")
    if wanted is not None and wanted not in options:
        raise UsageError(f"The avatar {avatar_id!r} can't respawn by {wanted!r}; there are: {', '.join(options)}.")
    await world.respawn(seat_name, avatar_id, wanted or next(iter(options)))
    return death


def commit_enter(tx: Transaction, arrived: WorldEntry, record: WorldRecord, run_id: str) -> SessionRecord:
    """Commit an agent's entry (body, items, session, place) and return its session.

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
        # Before the items that the agent brings: this is about those already in the world.
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
    """Commit a body's death while dormant; its agent is still in the nexus and chooses what to do."""
    tx.put_avatar(record.id, prepared.agent_id, replace(found.body, state=protocol.AvatarState.DESTROYED))
    tx.note(Died.of(found.death, agent_id=prepared.agent_id, game=prepared.game))
    source = {"from_place": "transfer", "from_id": prepared.transfer_id}
    tx.move_items(prepared.agent_id, found.receipt.admitted, **source, to_place="world", to_id=record.id)
    take_items(tx, prepared.agent_id, record.id, prepared.game, found.package, session="")
    if found.state is None:
        tx.lose_items(prepared.agent_id, record.id)
        tx.end_world(record.id)
    else:
        tx.keep_world(record.id, snapshot=found.state)
    cancel_entry(tx, prepared.transfer_id, prepared.agent_id, str(found))
    advance(tx, prepared.agent_id)


def _choose_avatar(
    tx: Transaction, agent: AgentIdentity, spec: AdapterSpec, terms: EntryRequest
) -> AvatarRecord | None:
    """Return the body to enter: the requested one, else a living one; None for a new one."""
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
    roster = protocol.AvatarRoster(agent.id, spec.name, [b.avatar for b in bodies], max_avatars=spec.max_avatars)
    if not roster.can_create_new():
        raise RosterFullError(
            f"{agent.id!r} has {len(living)} living avatars in {spec.name!r}, the maximum; enter one of them."
        )
    return None


def _check_terms(spec: AdapterSpec, terms: EntryRequest, avatar: AvatarRecord | None) -> None:
    """Refuse terms that would change nothing: those that the game does not take, and those of a new body for one that
    exists."""
    for name, usual in USUAL_TERMS.items():
        value, taken = getattr(terms, name), spec.terms.get(name, ())
        if value == usual:
            continue
        if value not in taken:
            there = f"it takes {name}={' or '.join((usual, *taken))}" if taken else f"it takes no {name}"
            raise UsageError(f"{spec.display_title} has no {name}={single_line(value)[:80]}; {there}.")
        if avatar is not None and name != "difficulty":
            raise UsageError(
                f"{name}={value} is for a new avatar, and {avatar.avatar.avatar_id!r} is in {spec.display_title} "
                "already; leave it out, or enter with avatar=new."
            )


def _check_receipt(entry: protocol.Entry, receipt: protocol.Receipt, spec: AdapterSpec) -> None:
    """Refuse a receipt that is of another entry, leaves items out, or claims bonuses that are not due."""
    game = spec.name
    if receipt.transfer_id != entry.transfer_id:
        raise WorldError(f"The game {game!r} gave no receipt for {entry.transfer_id!r}.")
    brought = sorted(item.item_id for item in entry.items)
    if brought != sorted([*receipt.admitted, *receipt.refused]):
        raise WorldError(f"The game {game!r} must admit or refuse each item exactly once.")
    due = {rule.id for rule in spec.transfer_rules if entry.skills.get(rule.domain, 0.0) >= rule.threshold}
    undue = sorted(set(receipt.bonuses_applied) - due)
    if undue:
        raise WorldError(f"The game {game!r} applied the bonus {undue[0]!r}, which no rule grants at this skill level.")


def entry_seed(seed: int, prepared: PreparedEntry) -> int:
    """Return the seed of an entry's session."""
    return derive_seed(seed, "way", prepared.transfer_id)
