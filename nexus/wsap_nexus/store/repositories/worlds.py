"""The repository of worlds and avatars."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import zstandard
from sqlalchemy import delete, func, or_, select, tuple_

from wsap_core.errors import UnknownNameError
from wsap_core.protocol import Avatar, AvatarState
from wsap_core.protocol.avatars import can_become
from wsap_core.protocol.wire import encode
from wsap_llm.secrets import redacted
from wsap_nexus.errors import AvatarStateError
from wsap_nexus.store.entities import AvatarRecord, WorldRecord, avatar_of
from wsap_nexus.store.events.sessions import AvatarChanged
from wsap_nexus.store.repositories.log import EventRepository, matching
from wsap_nexus.store.tables import METADATA

_T = METADATA.tables
_WORLD, _AVATAR, _SESSION = _T["world"], _T["avatar"], _T["session"]
_RUN, _RUN_EVENT = _T["run"], _T["event"]

_WORLD_COLUMNS = [
    _WORLD.c[name] for name in ("id", "game", "owner", "seed", "options", "created", "failures", "run_id")
]


class WorldRepository(EventRepository):
    """Reads and writes worlds and avatars."""

    def add_world(
        self, game: str, owner: str | None, seed: int, options: Mapping[str, Any], *, world_id: str = ""
    ) -> WorldRecord:
        """Add a world and return its record; by default it gets the game's next id."""
        world_id = world_id or f"{game}-{self.next_number(f'world {game}'):06d}"
        self._insert(
            _WORLD,
            id=world_id,
            game=game,
            owner=owner,
            seed=seed,
            options=redacted(options),
            created=self.stamp,
            failures=0,
        )
        return self.world(world_id)

    def world(self, world_id: str) -> WorldRecord:
        """Return a world; UnknownNameError if there is none of that id."""
        row = self.connection.execute(select(*_WORLD_COLUMNS).where(_WORLD.c.id == world_id)).one_or_none()
        if row is None:
            raise UnknownNameError("world", world_id, ())
        return WorldRecord(**row._mapping)

    def has_world(self, world_id: str) -> bool:
        """Return whether there is a world of that id."""
        return self._has(_WORLD.c.id == world_id)

    def worlds(self) -> list[WorldRecord]:
        """Return all worlds, by id."""
        query = select(*_WORLD_COLUMNS).order_by(_WORLD.c.id)
        return [WorldRecord(**row._mapping) for row in self.connection.execute(query)]

    def newest_worlds(self, *, before: tuple[str, str] | None = None, limit: int) -> list[WorldRecord]:
        """Return worlds, newest first, after the one of `before` = (created, id) if given."""
        query = select(*_WORLD_COLUMNS).order_by(_WORLD.c.created.desc(), _WORLD.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(tuple_(_WORLD.c.created, _WORLD.c.id) < before)
        return self._all(WorldRecord, query)

    def some_worlds(self, ids: Collection[str], *, limit: int) -> list[WorldRecord]:
        """Return the worlds with these ids, by id."""
        wanted = sorted(ids)[:limit]
        return self._all(WorldRecord, select(*_WORLD_COLUMNS).where(_WORLD.c.id.in_(wanted)).order_by(_WORLD.c.id))

    def count_worlds(self) -> int:
        """Return the number of worlds."""
        return int(self.connection.execute(select(func.count()).select_from(_WORLD)).scalar_one())

    def worlds_in_use(self) -> dict[str, int]:
        """Return game -> the number of its worlds that are in use or can be entered again."""
        entered = _WORLD.c.id.in_(select(_SESSION.c.world_id).where(_SESSION.c.closed.is_(None)))
        there = or_(_WORLD.c.snapshot.is_not(None), _WORLD.c.run_id.is_not(None), entered)
        query = select(_WORLD.c.game, func.count()).where(there).group_by(_WORLD.c.game)
        return {game: int(count) for game, count in self.connection.execute(query)}

    def living_worlds(self) -> list[WorldRecord]:
        """Return the worlds that live in the nexus, by id."""
        lives = _RUN.c.config["open"].as_boolean().is_(True)
        query = select(*_WORLD_COLUMNS).join(_RUN, _RUN.c.id == _WORLD.c.run_id).where(lives).order_by(_WORLD.c.id)
        return self._all(WorldRecord, query)

    def last_step(self, run_id: str, kind: str = "step") -> int:
        """Return the number of decisions, or of ticks, in a world's recording."""
        query = select(_RUN_EVENT.c.step).where(_RUN_EVENT.c.run_id == run_id, _RUN_EVENT.c.kind == kind)
        return int(self.connection.execute(query.order_by(_RUN_EVENT.c.seq.desc()).limit(1)).scalar() or 0)

    def world_snapshot(self, world_id: str) -> bytes | None:
        """Return a world's state between sessions; None before the first."""
        kept = self.connection.execute(select(_WORLD.c.snapshot).where(_WORLD.c.id == world_id)).scalar_one()
        return None if kept is None else zstandard.decompress(bytes(kept))

    def keep_world(self, world_id: str, *, snapshot: bytes | None = None, **values: Any) -> None:
        """Change a world's columns, and its state if given."""
        if snapshot is not None:
            values["snapshot"] = zstandard.compress(snapshot)
        self._update(_WORLD, _WORLD.c.id == world_id, **values)

    def count_failure(self, world_id: str) -> None:
        """Count a failure of a world's game."""
        self._update(_WORLD, _WORLD.c.id == world_id, failures=_WORLD.c.failures + 1)

    def has_state(self, world_id: str) -> bool:
        """Return whether a world has a stored state, so that it can be woken."""
        return self._has(_WORLD.c.id == world_id, _WORLD.c.snapshot.is_not(None))

    def end_world(self, world_id: str) -> None:
        """Delete a world's state but keep its record: it can't be entered again."""
        self._update(_WORLD, _WORLD.c.id == world_id, snapshot=None, run_id=None)

    def drop_world(self, world_id: str) -> None:
        """Delete a world and its avatars."""
        self.connection.execute(delete(_AVATAR).where(_AVATAR.c.world_id == world_id))
        self.connection.execute(delete(_WORLD).where(_WORLD.c.id == world_id))

    def forget_avatar(self, world_id: str, avatar_id: str) -> None:
        """Delete the record of a destroyed avatar, in a world that may reuse its id."""
        self.connection.execute(delete(_AVATAR).where(_AVATAR.c.world_id == world_id, _AVATAR.c.id == avatar_id))

    def lived_in(self, world_id: str) -> bool:
        """Return whether a world has ever had a session."""
        return self._has(_SESSION.c.world_id == world_id)

    def avatars(self, agent_id: str, game: str | None = None) -> list[AvatarRecord]:
        """Return an agent's avatars, in one game or in all, oldest world first."""
        query = select(_AVATAR).where(*matching(_AVATAR, agent_id=agent_id, game=game))
        return [avatar_of(row) for row in self.connection.execute(query.order_by(_AVATAR.c.world_id, _AVATAR.c.id))]

    def avatars_in(self, world_id: str, *, limit: int) -> list[AvatarRecord]:
        """Return avatars in a world, by id."""
        query = select(_AVATAR).where(_AVATAR.c.world_id == world_id).order_by(_AVATAR.c.id).limit(limit)
        return [avatar_of(row) for row in self.connection.execute(query)]

    def bodies(self, world_id: str, avatar_id: str) -> list[AvatarRecord]:
        """Return the avatar of that id in a world, as a list of at most one."""
        query = select(_AVATAR).where((_AVATAR.c.world_id == world_id) & (_AVATAR.c.id == avatar_id))
        return [avatar_of(row) for row in self.connection.execute(query)]

    def put_avatar(
        self, world_id: str, agent_id: str, avatar: Avatar, *, left_at: int = 0, respawning: bool = False
    ) -> None:
        """Store an avatar; AvatarStateError if another agent owns it or the change of its state is not allowed."""
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
                raise AvatarStateError(f"The avatar {avatar.avatar_id!r} of {world_id!r} belongs to another agent.")
            if old is not avatar.state and not can_become(old, avatar.state, respawning=respawning):
                raise AvatarStateError(
                    f"The avatar {avatar.avatar_id!r} of {world_id!r} can't become {avatar.state.value} "
                    f"while it is {old.value}."
                )
            self._update(_AVATAR, where, **values)
        if before is None or before.state != avatar.state.value:
            self.note(
                AvatarChanged(
                    agent_id=agent_id,
                    game=avatar.game_id,
                    world=world_id,
                    avatar=avatar.avatar_id,
                    state=avatar.state.value,
                )
            )
