"""Bringing agents home from a world that has failed, without asking the world.

What the world would have told is taken from the books: the body as it was last known, suspended; the
world as it was last saved, so that the body can be woken in it; what the agent did, from the log. Things
that the agent took there stay in the saved world; where nothing was saved, the world is no more,
and they are back in escrow.
"""

from __future__ import annotations

import base64
from dataclasses import replace

from wsap_core.errors import WireError
from wsap_core.protocol import Avatar, AvatarState, TransitPackage
from wsap_core.specs import AdapterSpec
from wsap_nexus.hub.stay import Deeds
from wsap_nexus.hub.transit import Departure, commit_leave
from wsap_nexus.hub.venue import START
from wsap_nexus.runs.recorder import read_snapshot
from wsap_nexus.store.book import Book
from wsap_nexus.store.entities import SessionRecord
from wsap_nexus.store.events import SessionForceClosed, WorldCrashed
from wsap_nexus.store.events.endings import WORLD_FAILED
from wsap_nexus.store.repository import Repository


def last_state(repository: Repository, run_id: str) -> bytes | None:
    """Return the newest state of a world in its run's log, None where none was saved."""
    saved = repository.last_event(run_id, "snapshot")
    if saved is not None:
        try:
            return read_snapshot(saved.body)[0]
        except WireError:
            pass  # then what the stay began with will do
    for start in repository.read_events(run_id, kinds=(START,)):
        world = start.data.get("world")
        return None if world is None else base64.b64decode(world)
    return None


def logged_deeds(repository: Repository, run_id: str, seat: str | None = None) -> Deeds:
    """Return what was done in a run, in one seat or in all."""
    deeds = Deeds()
    for event in repository.read_events(run_id, kinds=("step",)):
        if seat is None or event.seat == seat:
            deeds.count_logged(event)
    return deeds


def bring_home(
    book: Book,
    session: SessionRecord,
    spec: AdapterSpec,
    *,
    deeds: Deeds,
    reason: str,
    error: str = "",
    state: bytes | None = None,
    seconds: float = 0.0,
) -> SessionRecord:
    """Close a session whose world can't be asked, put its agent back into the nexus, and return it closed.

    Args:
        book: within a transaction.
        session: open.
        spec: the game.
        deeds: what was done.
        reason: why it ends.
        error: what went wrong.
        state: the world as it was last saved; None where it is no more.
        seconds: how long it took.
    """
    transfer_id = _transfer_of(book, session)
    if state is None:
        for record in book.items(session.agent_id, place="world", place_id=session.world_id):
            book.move_item(
                session.agent_id,
                record.item.item_id,
                from_place="world",
                from_id=session.world_id,
                to_place="escrow",
                note="the world that it was in failed and is no more",
            )
    if error:
        kind = WorldCrashed if reason == WORLD_FAILED else SessionForceClosed
        book.note(
            kind(
                agent_id=session.agent_id,
                game=session.game,
                session_id=session.id,
                world=session.world_id,
                run=session.run_id,
                reason=reason,
                error=error,
                kept=state is not None,
            )
        )
    departure = Departure(
        reason,
        TransitPackage(transfer_id),
        _body(book, session, kept=state is not None),
        deeds,
        stats={"error": error} if error else {},
        seconds=seconds,
        world_state=state,
    )
    commit_leave(book, session, spec, departure, transfer_id)
    return book.session(session.id)


def _transfer_of(book: Book, session: SessionRecord) -> str:
    """Return the transfer that the agent was leaving by when it went wrong, or a new one."""
    for row in book.transfers("prepared"):
        if row.agent_id == session.agent_id and row.kind == "leave":
            return str(row.id)
    return book.prepare_leave(session)


def _body(book: Book, session: SessionRecord, *, kept: bool) -> Avatar:
    for record in book.avatars(session.agent_id, session.game):
        if record.world_id == session.world_id and record.avatar.avatar_id == session.avatar_id:
            body = record.avatar
            if body.state is not AvatarState.BOUND:
                return body
            return replace(body, state=AvatarState.SUSPENDED if kept else AvatarState.DESTROYED, bound_agent=None)
    state = AvatarState.SUSPENDED if kept else AvatarState.DESTROYED
    return Avatar(session.avatar_id, session.game, None, state)
