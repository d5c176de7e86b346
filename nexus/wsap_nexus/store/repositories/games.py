"""The repository of games: their availability, and the specs of remote ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Table, delete, insert, or_, select, update

from wsap_nexus.store.entities import GameRecord
from wsap_nexus.store.repositories.log import EventRepository
from wsap_nexus.store.tables import METADATA

_GAME = METADATA.tables["game"]
_NAMED = {
    "world": "game",
    "avatar": "game",
    "session": "game",
    "achievement": "game",
    "evidence": "game",
    "game": "name",
}
# Table -> its column with the name of a game.


class GameRepository(EventRepository):
    """Reads and writes games."""

    def games(self) -> list[GameRecord]:
        """Return the games that are stored, by name."""
        return self._all(GameRecord, select(_GAME).order_by(_GAME.c.name))

    def closed_games(self) -> list[GameRecord]:
        """Return the games that were closed, by a person or because they failed."""
        return self._all(GameRecord, select(_GAME).where(_GAME.c.status != "available").order_by(_GAME.c.name))

    def keep_game(self, name: str, data: Mapping[str, Any], **values: Any) -> None:
        """Update or insert a game's row; `data` is merged into its stored data. Any: JSON, and values of columns."""
        before = self.connection.execute(select(_GAME.c.data).where(_GAME.c.name == name)).scalar()
        changed = {**values, "data": {**(before or {}), **data}}
        # Not `_put`: the spec of a remote game may be longer than other values, and was judged when it came.
        if not self.connection.execute(update(_GAME).where(_GAME.c.name == name).values(**changed)).rowcount:
            self.connection.execute(insert(_GAME).values(name=name, **{"failures": 0, **changed}))

    def rename_game(self, old: str, new: str) -> bool:
        """Rename a game, or the members of a family, in all rows but those of runs, events and goals.

        What there is under the new name already stays as it is. Return whether there was anything to rename.
        """
        found = False
        for name, column in _NAMED.items():
            table = METADATA.tables[name]
            of_game = table.c[column]
            named = select(of_game).where(or_(of_game == old, of_game.startswith(f"{old}:", autoescape=True)))
            for before in self.connection.execute(named.distinct()).scalars().all():
                self._rename(table, column, before, new + before.removeprefix(old))
                found = True
        return found

    def _rename(self, table: Table, column: str, old: str, new: str) -> None:
        keys = [key for key in table.primary_key.columns if key.name != column]
        if len(keys) < len(table.primary_key.columns):
            other = table.alias()
            twin = select(other.c[column]).where(other.c[column] == new, *(other.c[key.name] == key for key in keys))
            self.connection.execute(delete(table).where(table.c[column] == old, twin.exists()))
        self.connection.execute(update(table).where(table.c[column] == old).values({column: new}))
