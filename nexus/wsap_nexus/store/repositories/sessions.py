"""The repository of sessions and transfers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.exc import IntegrityError

from wsap_core.errors import StorageError, UnknownNameError
from wsap_nexus.errors import AlreadyInWorldError, NotInWorldError
from wsap_nexus.store.entities import EntryRequest, SessionRecord, TransferRecord, session_of
from wsap_nexus.store.repositories.agents import AgentRepository
from wsap_nexus.store.repositories.log import matching
from wsap_nexus.store.tables import METADATA

_T = METADATA.tables
_AGENT, _SESSION, _TRANSFER = _T["agent"], _T["session"], _T["transfer"]


class SessionRepository(AgentRepository):
    """Reads and writes sessions and transfers."""

    def open_session(
        self, agent_id: str, game: str, world_id: str, avatar_id: str, run_id: str, terms: EntryRequest
    ) -> SessionRecord:
        """Open a session and move the agent into the world; AlreadyInWorldError if it has an open session."""
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
            raise AlreadyInWorldError(f"{agent_id!r} is already in a world.") from error
        where = (_AGENT.c.id == agent_id) & (_AGENT.c.place == "nexus") & (_AGENT.c.state != "removed")
        if self._update(_AGENT, where, place="world", session_id=session_id) != 1:
            raise AlreadyInWorldError(f"{agent_id!r} is not in the nexus.")
        return self.session(session_id)

    def close_session(self, session_id: str, *, reason: str, steps: int, stats: Mapping[str, Any]) -> None:
        """Close a session and move the agent back into the nexus; NotInWorldError if it is closed already."""
        found = self.session(session_id)
        where = (_SESSION.c.id == session_id) & _SESSION.c.closed.is_(None)
        if not self._update(_SESSION, where, closed=self.stamp, reason=reason, steps=steps, stats=dict(stats)):
            raise NotInWorldError(f"The session {session_id!r} is already closed.")
        self.update_agent(found.agent_id, place="nexus", session_id=None)

    def recount_session(self, session_id: str, *, steps: int, stats: Mapping[str, Any]) -> None:
        """Replace the statistics of a closed session."""
        self._update(_SESSION, _SESSION.c.id == session_id, steps=steps, stats=dict(stats))

    def session(self, session_id: str) -> SessionRecord:
        """Return a session; UnknownNameError if there is none of that id."""
        row = self.connection.execute(select(_SESSION).where(_SESSION.c.id == session_id)).one_or_none()
        if row is None:
            raise UnknownNameError("session", session_id, ())
        return session_of(row)

    def sessions(
        self,
        *,
        agent_id: str | None = None,
        world_id: str | None = None,
        only_open: bool = False,
        before: str | None = None,
        limit: int = 100,
    ) -> list[SessionRecord]:
        """Return sessions, newest first, with ids below `before` if given."""
        query = select(_SESSION).where(*matching(_SESSION, agent_id=agent_id, world_id=world_id))
        query = query.order_by(_SESSION.c.id.desc()).limit(limit)
        if only_open:
            query = query.where(_SESSION.c.closed.is_(None))
        if before:
            query = query.where(_SESSION.c.id < before)
        return [session_of(row) for row in self.connection.execute(query)]

    def count_sessions(self) -> int:
        """Return the number of sessions, open and closed."""
        return int(self.connection.execute(select(func.count()).select_from(_SESSION)).scalar_one())

    def open_sessions(self, *, game: str | None = None) -> list[SessionRecord]:
        """Return the open sessions, of all games or one."""
        query = select(_SESSION).where(_SESSION.c.closed.is_(None), *matching(_SESSION, game=game))
        return [session_of(row) for row in self.connection.execute(query.order_by(_SESSION.c.id))]

    def run_sessions(self) -> list[SessionRecord]:
        """Return the open sessions of runs outside the nexus, whose world is the run itself."""
        query = select(_SESSION).where(_SESSION.c.closed.is_(None), _SESSION.c.world_id == _SESSION.c.run_id)
        return [session_of(row) for row in self.connection.execute(query.order_by(_SESSION.c.id))]

    def is_played(self, world_id: str) -> bool:
        """Return whether a world has an open session."""
        return self._has(_SESSION.c.world_id == world_id, _SESSION.c.closed.is_(None))

    def players(self, run_ids: Collection[str]) -> dict[str, list[tuple[str, str, str]]]:
        """Return run -> the agents that had a session in it, by id, each as (id, name, world)."""
        query = (
            select(_SESSION.c.run_id, _AGENT.c.id, _AGENT.c.name, _SESSION.c.world_id)
            .join(_AGENT, _AGENT.c.id == _SESSION.c.agent_id)
            .where(_SESSION.c.run_id.in_(sorted(run_ids)))
            .order_by(_AGENT.c.id)
        )
        found: dict[str, list[tuple[str, str, str]]] = {}
        for run_id, agent_id, name, world_id in self.connection.execute(query):
            found.setdefault(run_id, []).append((agent_id, name, world_id))
        return found

    def visits(self, agent_id: str) -> dict[str, int]:
        """Return the number of an agent's sessions by game."""
        query = select(_SESSION.c.game, func.count()).where(_SESSION.c.agent_id == agent_id)
        return {game: int(count) for game, count in self.connection.execute(query.group_by(_SESSION.c.game))}

    # --- transfers ----------------------------------------------------------------------------

    def prepare(self, agent_id: str, kind: str, *, world_id: str | None = None, **data: Any) -> str:
        """Prepare a transfer and return its id; AlreadyInWorldError if the agent has another prepared one."""
        return self._prepare(f"transfer-{self.next_number('transfer'):08d}", agent_id, kind, world_id, data)

    def prepare_leave(self, session: SessionRecord) -> str:
        """Prepare the transfer out of a world and return its id.

        The id is derived from the session, so that a world that exported the items before a crash gives the same answer
        when asked again.

        Raises:
            AlreadyInWorldError: the agent has another prepared transfer.
            StorageError: the transfer is done.
        """
        transfer_id = f"{session.id}-leave"
        row = self.connection.execute(select(_TRANSFER.c.state).where(_TRANSFER.c.id == transfer_id)).one_or_none()
        if row is None:
            return self._prepare(transfer_id, session.agent_id, "leave", session.world_id, {"session": session.id})
        if row.state == "done":
            raise StorageError(f"The transfer {transfer_id!r} is already done.")
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
            raise AlreadyInWorldError(f"{agent_id!r} is already in transfer.") from error
        return transfer_id

    def send_to(self, transfer_id: str, world_id: str) -> None:
        """Store the world created for a transfer, which is deleted if the transfer is cancelled."""
        self._update(_TRANSFER, _TRANSFER.c.id == transfer_id, world_id=world_id)

    def settle(self, transfer_id: str, state: str, **data: Any) -> None:
        """Set a transfer "done", "cancelled" or "unknown", and add to its data; StorageError if it was settled."""
        row = self.connection.execute(select(_TRANSFER).where(_TRANSFER.c.id == transfer_id)).one()
        if row.state not in ("prepared", "unknown"):
            raise StorageError(f"The transfer {transfer_id!r} is already {row.state}.")
        self._update(_TRANSFER, _TRANSFER.c.id == transfer_id, state=state, data={**row.data, **data})

    def open_transfers(self, agent_id: str | None = None) -> list[TransferRecord]:
        """Return the prepared transfers, of all agents or one, oldest first."""
        # The index is used only with its literal condition and without ORDER BY.
        query = select(_TRANSFER).where(text("state = 'prepared'"), *matching(_TRANSFER, agent_id=agent_id))
        return sorted(self._all(TransferRecord, query), key=lambda transfer: transfer.id)

    def transfer(self, transfer_id: str) -> TransferRecord | None:
        """Return a transfer; None if there is none of that id, or its record was pruned."""
        found = self._all(TransferRecord, select(_TRANSFER).where(_TRANSFER.c.id == transfer_id))
        return found[0] if found else None

    def transfer_state(self, transfer_id: str) -> str | None:
        """Return the state of a transfer; None if its record was pruned."""
        query = select(_TRANSFER.c.state).where(_TRANSFER.c.id == transfer_id)
        return self.connection.execute(query).scalar_one_or_none()

    def transfers(self, *states: str, agent_id: str | None = None, kind: str | None = None) -> list[TransferRecord]:
        """Return the transfers in these states, oldest first; of one agent and of one kind, if given."""
        query = select(_TRANSFER).where(_TRANSFER.c.state.in_(states))
        query = query.where(*matching(_TRANSFER, agent_id=agent_id, kind=kind))
        return self._all(TransferRecord, query.order_by(_TRANSFER.c.id))

    def say_why_unknown(self, transfer_id: str, why: str) -> None:
        """Store why an unknown transfer can't be settled, unless it was settled meanwhile."""
        transfer = self.transfer(transfer_id)
        if transfer is not None and transfer.state == "unknown":
            self._update(_TRANSFER, _TRANSFER.c.id == transfer_id, data={**transfer.data, "why": why})
