"""Who is where and with what: every change in one transaction, together with the event that tells of it.

`Ledger.change()` gives a `Book` within a transaction; what is written in it is committed as one or
not at all. Listeners hear of its events after the commit, never before.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import zstandard
from sqlalchemy import Connection, Row, Table, delete, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql import ColumnElement

from wsap_core.errors import StorageError, UnknownNameError, UsageError
from wsap_core.models import Avatar, AvatarState, PortableItem
from wsap_core.models.avatars import can_become
from wsap_core.wire import dumps, encode
from wsap_nexus.confidential import recordable
from wsap_nexus.hub.errors import AlreadyInWorldError, AvatarStateError, ConservationError, NotInWorldError
from wsap_nexus.hub.records import (
    AGENT_ID,
    AgentIdentity,
    AvatarRecord,
    ItemRecord,
    NexusEvent,
    Policy,
    SessionRecord,
    SkillGain,
    Terms,
    WorldRecord,
)
from wsap_nexus.hub.rows import (
    LONGEST_TEXT,
    avatar_of,
    checked,
    checked_item,
    event_of,
    identity_of,
    item_of,
    recorded,
    session_of,
)
from wsap_nexus.storage.database import Database
from wsap_nexus.storage.tables import METADATA

_T = METADATA.tables
_AGENT, _SKILL, _EVIDENCE = _T["agent"], _T["skill"], _T["evidence"]
_ACHIEVEMENT, _ITEM, _WORLD = _T["achievement"], _T["item"], _T["world"]
_AVATAR, _SESSION, _TRANSFER, _EVENT = _T["avatar"], _T["session"], _T["transfer"], _T["nexus_event"]
_COUNTER = _T["counter"]

_NAME = re.compile(AGENT_ID)
_LONGEST_NOTE = 500
# What a world says about an item is kept as far as that.
_AT_ONCE = 500
# Items that one statement moves.
_WRITERS_TURN = 0x57534151
# The advisory lock's number on PostgreSQL under which changes are made, one after the other.

_LOGGER = logging.getLogger(__name__)

Listener = Callable[[NexusEvent], None]


class Ledger:
    """The nexus' part of a database.

    Args:
        database: where it is.
        wall_clock: seconds since 1970.
    """

    def __init__(self, database: Database, *, wall_clock: Callable[[], float] = time.time) -> None:
        self.database = database
        """Where it is."""
        self.wall_clock = wall_clock
        """Seconds since 1970."""
        self._listeners: list[Listener] = []

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell a listener of each event once it is committed; call what is returned to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @contextmanager
    def change(self) -> Iterator[Book]:
        """Give a book to write in; committed as one at the end, or undone by an exception."""
        with self.database.write() as connection:
            if not self.database.is_sqlite:
                # Numbers of events must become visible in their order, and what is checked must still hold when it is
                # written: as in a file, one change after the other.
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITERS_TURN})
            book = Book(connection, self.wall_clock())
            yield book
        for event in book.noted:
            for listener in list(self._listeners):
                try:
                    listener(event)
                except Exception:  # what is committed has happened, whoever stumbles over hearing of it
                    _LOGGER.exception("A listener failed over event %d.", event.seq)

    @contextmanager
    def look(self) -> Iterator[Book]:
        """Give a book to read in: one state of everything."""
        with self.database.read() as connection:
            yield Book(connection, self.wall_clock())


class Book:
    """The nexus' records within one transaction. Made by a `Ledger`."""

    def __init__(self, connection: Connection, now: float) -> None:
        self.connection = connection
        """The transaction."""
        self.now = now
        """Seconds since 1970."""
        self.noted: list[NexusEvent] = []
        """What was noted in this transaction."""

    @property
    def stamp(self) -> str:
        """The time as ISO 8601, in UTC."""
        return datetime.fromtimestamp(self.now, UTC).isoformat(timespec="milliseconds")

    def _insert(self, table: Table, **values: Any) -> None:
        # Any: as the columns hold them.
        self.connection.execute(insert(table).values(**checked(table, values)))

    def _update(self, table: Table, where: ColumnElement[bool], **values: Any) -> int:
        """Change rows and return how many. Any: as the columns hold them."""
        return self.connection.execute(update(table).where(where).values(**checked(table, values))).rowcount

    # --- the log --------------------------------------------------------------------------------

    def note(
        self, kind: str, *, agent: str | None = None, game: str | None = None, session: str | None = None, **body: Any
    ) -> int:
        """Write an event and return its number. Any: JSON-ready data of an open shape."""
        values = {
            "kind": kind,
            "agent_id": agent,
            "game": game,
            "session_id": session,
            "time": self.now,
            "body": dumps(body),
        }
        inserted = self.connection.execute(insert(_EVENT).values(**checked(_EVENT, values))).inserted_primary_key
        seq = int(inserted[0]) if inserted else 0
        self.noted.append(NexusEvent(seq, kind, agent, game, session, self.now, json.loads(values["body"])))  # type: ignore[arg-type]
        return seq

    def events(
        self,
        *,
        after: int = 0,
        agent: str | None = None,
        kinds: tuple[str, ...] = (),
        limit: int = 500,
    ) -> list[NexusEvent]:
        """Return events with numbers above `after`, oldest first, at most `limit`."""
        query = select(_EVENT).where(_EVENT.c.seq > after).order_by(_EVENT.c.seq).limit(limit)
        if agent is not None:
            query = query.where(_EVENT.c.agent_id == agent)
        if kinds:
            query = query.where(_EVENT.c.kind.in_(kinds))
        return [event_of(row) for row in self.connection.execute(query)]

    def last_seq(self) -> int:
        """Return the number of the newest event, 0 if there is none."""
        return int(self.connection.execute(select(func.max(_EVENT.c.seq))).scalar() or 0)

    def next_number(self, what: str) -> int:
        """Return the next number of a kind of ids; none is given out twice."""
        where = _COUNTER.c.name == what
        if not self._update(_COUNTER, where, value=_COUNTER.c.value + 1):
            self._insert(_COUNTER, name=what, value=1)
        return int(self.connection.execute(select(_COUNTER.c.value).where(where)).scalar_one())

    # --- agents ---------------------------------------------------------------------------------

    def register(
        self, agent_id: str, *, name: str = "", persona: str = "", policies: Mapping[str, Policy] | None = None
    ) -> tuple[AgentIdentity, bool]:
        """Return the identity of that id, and whether it is new; a known one stays as it is.

        Raises:
            UsageError: it can't be an id, or was removed.
        """
        if not _NAME.fullmatch(agent_id):
            raise UsageError(
                f"{agent_id[:80]!r} can't be an agent's id; use up to 64 of a-z, 0-9, dot, dash and underscore, "
                "beginning with a letter or digit."
            )
        if not (name or agent_id).isprintable() or len(name) > 200 or len(persona) > LONGEST_TEXT:
            raise UsageError(
                f"{ascii(name)[:80]} can't be an agent's name; use up to 200 characters that can be printed, "
                f"and at most {LONGEST_TEXT} for the persona."
            )
        row = self.connection.execute(select(_AGENT).where(_AGENT.c.id == agent_id)).one_or_none()
        if row is not None:
            if row.state == "removed":
                raise UsageError(f"The agent {agent_id!r} was removed; choose another id.")
            return identity_of(row), False
        self._insert(
            _AGENT,
            id=agent_id,
            name=name or agent_id,
            created=self.stamp,
            state="active",
            place="nexus",
            persona=persona,
            policies={game: recorded(policy) for game, policy in (policies or {}).items()},
            lore={"core_memories": [], "strategies": []},
            lifetime_steps=0,
            playtime=0.0,
        )
        self.note("agent_registered", agent=agent_id, name=name or agent_id)
        return self.agent(agent_id), True

    def agent(self, agent_id: str) -> AgentIdentity:
        """Return an agent.

        Raises:
            UnknownNameError: there is none of that id.
        """
        row = self.connection.execute(select(_AGENT).where(_AGENT.c.id == agent_id)).one_or_none()
        if row is None:
            known = self.connection.execute(select(_AGENT.c.id).limit(1000)).scalars().all()
            raise UnknownNameError("agent", agent_id, known, hint="See them with: wsap nexus agents list")
        return identity_of(row)

    def agents(
        self, *, state: str | None = None, place: str | None = None, after: str = "", limit: int = 100_000
    ) -> list[AgentIdentity]:
        """Return agents by id, those that were removed left out."""
        query = select(_AGENT).where(_AGENT.c.id > after).order_by(_AGENT.c.id).limit(limit)
        query = query.where(_AGENT.c.state == state) if state else query.where(_AGENT.c.state != "removed")
        if place is not None:
            query = query.where(_AGENT.c.place == place)
        return [identity_of(row) for row in self.connection.execute(query)]

    def count_agents(self) -> int:
        """Return how many agents there are that live when the nexus does."""
        query = select(func.count()).select_from(_AGENT).where(_AGENT.c.state == "active")
        return int(self.connection.execute(query).scalar_one())

    def update_agent(self, agent_id: str, **values: Any) -> None:
        """Change columns of an agent. Any: as the column holds it.

        Raises:
            StorageError: a value is not what its column is for.
        """
        self._update(_AGENT, _AGENT.c.id == agent_id, **values)

    def mind(self, agent_id: str) -> bytes | None:
        """Return what an agent's memory gave to keep."""
        kept = self.connection.execute(select(_AGENT.c.mind).where(_AGENT.c.id == agent_id)).scalar_one()
        return None if kept is None else zstandard.decompress(bytes(kept))

    def keep_mind(self, agent_id: str, mind: bytes) -> None:
        """Keep what an agent's memory gives."""
        self.update_agent(agent_id, mind=zstandard.compress(mind))

    # --- skills and achievements ----------------------------------------------------------------

    def skills(self, agent_id: str) -> dict[str, float]:
        """Return domain -> level, for the domains that have one."""
        rows = self.connection.execute(
            select(_SKILL.c.domain, _SKILL.c.level).where(_SKILL.c.agent_id == agent_id).order_by(_SKILL.c.domain)
        )
        return {row.domain: row.level for row in rows}

    def evidence(self, agent_id: str, game: str | None = None) -> list[Row[Any]]:
        """Return the rows of evidence: domain, game, source, times, gained."""
        query = select(_EVIDENCE).where(_EVIDENCE.c.agent_id == agent_id)
        if game is not None:
            query = query.where(_EVIDENCE.c.game == game)
        return list(self.connection.execute(query.order_by(_EVIDENCE.c.domain, _EVIDENCE.c.game, _EVIDENCE.c.source)))

    def add_gain(self, agent_id: str, game: str, session: str, gain: SkillGain) -> None:
        """Raise a skill, with its evidence."""
        key = (
            (_EVIDENCE.c.agent_id == agent_id)
            & (_EVIDENCE.c.domain == gain.domain)
            & (_EVIDENCE.c.game == game)
            & (_EVIDENCE.c.source == gain.source)
        )
        changed = self._update(
            _EVIDENCE, key, times=_EVIDENCE.c.times + gain.times, gained=_EVIDENCE.c.gained + gain.gain
        )
        if not changed:
            self._insert(
                _EVIDENCE,
                agent_id=agent_id,
                domain=gain.domain,
                game=game,
                source=gain.source,
                times=gain.times,
                gained=gain.gain,
            )
        where = (_SKILL.c.agent_id == agent_id) & (_SKILL.c.domain == gain.domain)
        if not self._update(_SKILL, where, level=gain.level):
            self._insert(_SKILL, agent_id=agent_id, domain=gain.domain, level=gain.level)
        self.note("skill_gained", agent=agent_id, game=game, session=session, **encode(gain))

    def achievements(self, agent_id: str) -> list[Row[Any]]:
        """Return the rows of achievements: game, name, first, times."""
        query = select(_ACHIEVEMENT).where(_ACHIEVEMENT.c.agent_id == agent_id)
        return list(self.connection.execute(query.order_by(_ACHIEVEMENT.c.game, _ACHIEVEMENT.c.name)))

    def add_achievement(self, agent_id: str, game: str, session: str, name: str, times: int) -> None:
        """Count an achievement, and note the first time."""
        where = (_ACHIEVEMENT.c.agent_id == agent_id) & (_ACHIEVEMENT.c.game == game) & (_ACHIEVEMENT.c.name == name)
        if self._update(_ACHIEVEMENT, where, times=_ACHIEVEMENT.c.times + times):
            return
        self._insert(_ACHIEVEMENT, agent_id=agent_id, game=game, name=name, first=self.stamp, times=times)
        self.note("achievement", agent=agent_id, game=game, session=session, name=name)

    # --- items ----------------------------------------------------------------------------------

    def items(self, agent_id: str, *, place: str | None = None, place_id: str | None = None) -> list[ItemRecord]:
        """Return an agent's items by id, in one place or in all."""
        query = select(_ITEM).where(_ITEM.c.agent_id == agent_id).order_by(_ITEM.c.id)
        if place is not None:
            query = query.where(_ITEM.c.place == place)
        if place_id is not None:
            query = query.where(_ITEM.c.place_id == place_id)
        return [item_of(row) for row in self.connection.execute(query)]

    def mint_item(
        self, agent_id: str, item: PortableItem, *, game: str, session: str, transfer_id: str | None = None
    ) -> None:
        """Take a new item into escrow; one that a world made has an id that begins with the transfer's.

        Raises:
            ConservationError: there is an item of that id already, or it is none that may be taken in.
        """
        checked_item(item, transfer_id)
        if self.connection.execute(select(_ITEM.c.id).where(_ITEM.c.id == item.item_id)).first():
            raise ConservationError(f"there is an item {item.item_id!r} already")
        self._insert(_ITEM, id=item.item_id, agent_id=agent_id, place="escrow", note="", data=encode(item))
        self.note("item_found", agent=agent_id, game=game, session=session, item=encode(item))

    def move_item(
        self,
        agent_id: str,
        item_id: str,
        *,
        from_place: str,
        to_place: str,
        from_id: str | None = None,
        to_id: str | None = None,
        note: str = "",
    ) -> None:
        """Move an item from the place where it must be to another.

        Raises:
            ConservationError: it is not there.
        """
        where = (_ITEM.c.id == item_id) & (_ITEM.c.agent_id == agent_id) & (_ITEM.c.place == from_place)
        where &= _ITEM.c.place_id.is_(None) if from_id is None else _ITEM.c.place_id == from_id
        note = note[:_LONGEST_NOTE]
        if self._update(_ITEM, where, place=to_place, place_id=to_id, note=note) != 1:
            raise ConservationError(f"The item {item_id!r} is not in {from_place} {from_id or ''}, so it can't leave.")
        self.note("item_moved", agent=agent_id, item_id=item_id, to=to_place, to_id=to_id, why=note)

    def move_items(
        self,
        agent_id: str,
        item_ids: Sequence[str],
        *,
        from_place: str,
        to_place: str,
        from_id: str | None = None,
        to_id: str | None = None,
        note: str = "",
    ) -> None:
        """Move some items that are in one place to another, told of in one event.

        Raises:
            ConservationError: one is not there.
        """
        if not item_ids:
            return
        if len(item_ids) == 1:
            self.move_item(
                agent_id, item_ids[0], from_place=from_place, from_id=from_id, to_place=to_place, to_id=to_id, note=note
            )
            return
        wanted = sorted(item_ids)
        note = note[:_LONGEST_NOTE]
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            where = _ITEM.c.id.in_(some) & (_ITEM.c.agent_id == agent_id) & (_ITEM.c.place == from_place)
            where &= _ITEM.c.place_id.is_(None) if from_id is None else _ITEM.c.place_id == from_id
            if self._update(_ITEM, where, place=to_place, place_id=to_id, note=note) != len(some):
                raise ConservationError(f"Not all of {', '.join(some)[:500]} are in {from_place} {from_id or ''}.")
        self.note("items_moved", agent=agent_id, items=wanted, to=to_place, to_id=to_id, why=note)

    # --- worlds and avatars ---------------------------------------------------------------------

    def add_world(self, game: str, owner: str | None, seed: int, options: Mapping[str, Any]) -> WorldRecord:
        """Make a record of a new world and return it."""
        world_id = f"{game}-{self.next_number(f'world {game}'):06d}"
        self._insert(
            _WORLD,
            id=world_id,
            game=game,
            owner=owner,
            seed=seed,
            options=recordable(options),
            created=self.stamp,
            failures=0,
        )
        return self.world(world_id)

    def world(self, world_id: str) -> WorldRecord:
        """Return a world.

        Raises:
            UnknownNameError: there is none of that id.
        """
        row = self.connection.execute(select(*_WORLD_COLUMNS).where(_WORLD.c.id == world_id)).one_or_none()
        if row is None:
            raise UnknownNameError("world", world_id, ())
        return WorldRecord(**row._mapping)

    def worlds(self, *, owner: str | None = None, game: str | None = None) -> list[WorldRecord]:
        """Return worlds by id."""
        query = select(*_WORLD_COLUMNS).order_by(_WORLD.c.id)
        if owner is not None:
            query = query.where(_WORLD.c.owner == owner)
        if game is not None:
            query = query.where(_WORLD.c.game == game)
        return [WorldRecord(**row._mapping) for row in self.connection.execute(query)]

    def world_snapshot(self, world_id: str) -> bytes | None:
        """Return a world's state between two sessions, None before the first."""
        kept = self.connection.execute(select(_WORLD.c.snapshot).where(_WORLD.c.id == world_id)).scalar_one()
        return None if kept is None else zstandard.decompress(bytes(kept))

    def keep_world(self, world_id: str, *, snapshot: bytes | None = None, **values: Any) -> None:
        """Change a world's columns, and its state if given. Any: as the column holds it."""
        if snapshot is not None:
            values["snapshot"] = zstandard.compress(snapshot)
        self._update(_WORLD, _WORLD.c.id == world_id, **values)

    def has_state(self, world_id: str) -> bool:
        """Return whether a world's state is kept, so that it can be woken."""
        where = (_WORLD.c.id == world_id) & _WORLD.c.snapshot.is_not(None)
        return self.connection.execute(select(_WORLD.c.id).where(where)).first() is not None

    def end_world(self, world_id: str) -> None:
        """Keep a world's record, but not its state: nobody can go there again."""
        self._update(_WORLD, _WORLD.c.id == world_id, snapshot=None, run_id=None)

    def drop_world(self, world_id: str) -> None:
        """Forget a world and its avatars."""
        self.connection.execute(delete(_AVATAR).where(_AVATAR.c.world_id == world_id))
        self.connection.execute(delete(_WORLD).where(_WORLD.c.id == world_id))

    def avatars(self, agent_id: str, game: str | None = None) -> list[AvatarRecord]:
        """Return an agent's bodies, in one game or in all, oldest world first."""
        query = select(_AVATAR).where(_AVATAR.c.agent_id == agent_id).order_by(_AVATAR.c.world_id, _AVATAR.c.id)
        if game is not None:
            query = query.where(_AVATAR.c.game == game)
        return [avatar_of(row) for row in self.connection.execute(query)]

    def put_avatar(
        self, world_id: str, agent_id: str, avatar: Avatar, *, left_at: int = 0, respawning: bool = False
    ) -> None:
        """Record how a body stands now.

        Raises:
            AvatarStateError: it can't have come to that from where it was.
        """
        where = (_AVATAR.c.world_id == world_id) & (_AVATAR.c.id == avatar.avatar_id)
        before = self.connection.execute(select(_AVATAR).where(where)).one_or_none()
        values = {"state": avatar.state.value, "left_at": left_at, "data": encode(avatar)}
        if before is None:
            self._insert(
                _AVATAR, world_id=world_id, id=avatar.avatar_id, agent_id=agent_id, game=avatar.game_id, **values
            )
        else:
            old = AvatarState(before.state)
            if before.agent_id != agent_id:
                raise AvatarStateError(f"The avatar {avatar.avatar_id!r} of {world_id!r} is somebody else's.")
            if old is not avatar.state and not can_become(old, avatar.state, respawning=respawning):
                raise AvatarStateError(
                    f"The avatar {avatar.avatar_id!r} of {world_id!r} can't become {avatar.state.value} "
                    f"while it is {old.value}."
                )
            self._update(_AVATAR, where, **values)
        if before is None or before.state != avatar.state.value:
            self.note(
                "avatar_changed",
                agent=agent_id,
                game=avatar.game_id,
                world=world_id,
                avatar=avatar.avatar_id,
                state=avatar.state.value,
            )

    # --- sessions and transfers -----------------------------------------------------------------

    def open_session(
        self, agent_id: str, game: str, world_id: str, avatar_id: str, run_id: str, terms: Terms
    ) -> SessionRecord:
        """Open an agent's stay in a world and put the agent there.

        Raises:
            AlreadyInWorldError: it has one open.
        """
        session_id = f"session-{self.next_number('session'):08d}"
        try:
            self._insert(
                _SESSION,
                id=session_id,
                agent_id=agent_id,
                game=game,
                world_id=world_id,
                avatar_id=avatar_id,
                run_id=run_id,
                opened=self.stamp,
                steps=0,
                terms=terms.to_json(),
                stats={},
            )
        except IntegrityError as error:
            raise AlreadyInWorldError(f"{agent_id!r} is in a world already.") from error
        where = (_AGENT.c.id == agent_id) & (_AGENT.c.place == "nexus") & (_AGENT.c.state != "removed")
        if self._update(_AGENT, where, place="world", session_id=session_id) != 1:
            raise AlreadyInWorldError(f"{agent_id!r} is not in the nexus.")
        return self.session(session_id)

    def close_session(self, session_id: str, *, reason: str, steps: int, stats: Mapping[str, Any]) -> None:
        """Close a stay and put the agent back into the nexus. Any: JSON-ready data.

        Raises:
            NotInWorldError: it was closed before.
        """
        found = self.session(session_id)
        where = (_SESSION.c.id == session_id) & _SESSION.c.closed.is_(None)
        if not self._update(_SESSION, where, closed=self.stamp, reason=reason, steps=steps, stats=dict(stats)):
            raise NotInWorldError(f"The session {session_id!r} is over already.")
        self.update_agent(found.agent_id, place="nexus", session_id=None)

    def session(self, session_id: str) -> SessionRecord:
        """Return a session.

        Raises:
            UnknownNameError: there is none of that id.
        """
        row = self.connection.execute(select(_SESSION).where(_SESSION.c.id == session_id)).one_or_none()
        if row is None:
            raise UnknownNameError("session", session_id, ())
        return session_of(row)

    def sessions(
        self, *, agent_id: str | None = None, world_id: str | None = None, only_open: bool = False, limit: int = 100
    ) -> list[SessionRecord]:
        """Return sessions, newest first: their ids count."""
        query = select(_SESSION).order_by(_SESSION.c.id.desc()).limit(limit)
        if agent_id is not None:
            query = query.where(_SESSION.c.agent_id == agent_id)
        if world_id is not None:
            query = query.where(_SESSION.c.world_id == world_id)
        if only_open:
            query = query.where(_SESSION.c.closed.is_(None))
        return [session_of(row) for row in self.connection.execute(query)]

    def visits(self, agent_id: str) -> dict[str, int]:
        """Return how often an agent was in each game: game -> sessions."""
        query = select(_SESSION.c.game, func.count()).where(_SESSION.c.agent_id == agent_id)
        return {game: int(count) for game, count in self.connection.execute(query.group_by(_SESSION.c.game))}

    def prepare(self, agent_id: str, kind: str, *, world_id: str | None = None, **data: Any) -> str:
        """Begin a transfer and return its id; an agent has one at a time. Any: JSON-ready data.

        Raises:
            AlreadyInWorldError: another is going on.
        """
        return self._prepare(f"transfer-{self.next_number('transfer'):08d}", agent_id, kind, world_id, data)

    def prepare_leave(self, session: SessionRecord) -> str:
        """Begin to take an agent out of a world and return the transfer's id.

        A session has one such id for good: a world that was asked to let things out before a crash, and
        remembers that, answers the same when it is asked again.

        Raises:
            AlreadyInWorldError: another transfer of the agent is going on.
            StorageError: it was completed.
        """
        transfer_id = f"{session.id}-leave"
        row = self.connection.execute(select(_TRANSFER.c.state).where(_TRANSFER.c.id == transfer_id)).one_or_none()
        if row is None:
            return self._prepare(transfer_id, session.agent_id, "leave", session.world_id, {"session": session.id})
        if row.state == "done":
            raise StorageError(f"The transfer {transfer_id!r} is done already.")
        self._update(_TRANSFER, _TRANSFER.c.id == transfer_id, state="prepared")
        return transfer_id

    def _prepare(self, transfer_id: str, agent_id: str, kind: str, world_id: str | None, data: dict[str, Any]) -> str:
        try:
            self._insert(
                _TRANSFER,
                id=transfer_id,
                agent_id=agent_id,
                kind=kind,
                state="prepared",
                created=self.stamp,
                world_id=world_id,
                data=data,
            )
        except IntegrityError as error:
            raise AlreadyInWorldError(f"{agent_id!r} is on its way already.") from error
        return transfer_id

    def send_to(self, transfer_id: str, world_id: str) -> None:
        """Note in a prepared transfer which world was made for it, so that it is dropped if nobody arrives."""
        self._update(_TRANSFER, _TRANSFER.c.id == transfer_id, world_id=world_id)

    def settle(self, transfer_id: str, state: str, **data: Any) -> None:
        """End a transfer: "done", "cancelled" or "unknown". Any: JSON-ready data that is added.

        Raises:
            StorageError: it was ended before.
        """
        row = self.connection.execute(select(_TRANSFER).where(_TRANSFER.c.id == transfer_id)).one()
        if row.state not in ("prepared", "unknown"):
            raise StorageError(f"The transfer {transfer_id!r} is {row.state} already.")
        self._update(_TRANSFER, _TRANSFER.c.id == transfer_id, state=state, data={**row.data, **data})

    def open_transfers(self, agent_id: str | None = None) -> list[Row[Any]]:
        """Return the rows of transfers that were prepared and not settled, oldest first; all, or one agent's."""
        # Literally as the index has it, and in no order of its own, so that the index is used.
        query = select(_TRANSFER).where(text("state = 'prepared'"))
        if agent_id is not None:
            query = query.where(_TRANSFER.c.agent_id == agent_id)
        return sorted(self.connection.execute(query), key=lambda row: str(row.id))

    def lived_in(self, world_id: str) -> bool:
        """Return whether anybody has ever been in a world."""
        where = _SESSION.c.world_id == world_id
        return self.connection.execute(select(_SESSION.c.id).where(where).limit(1)).first() is not None

    def transfers(self, *states: str) -> list[Row[Any]]:
        """Return the rows of transfers in these states, oldest first."""
        query = select(_TRANSFER).where(_TRANSFER.c.state.in_(states)).order_by(_TRANSFER.c.id)
        return list(self.connection.execute(query))


_WORLD_COLUMNS = [
    _WORLD.c[name] for name in ("id", "game", "owner", "seed", "options", "created", "failures", "run_id")
]
