"""How games stand: which may be entered, why others may not, and how often each has failed of late."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sqlalchemy import insert, select, update

from wsap_core.errors import UsageError
from wsap_core.untrusted import one_line
from wsap_nexus.store.book import Book, Ledger
from wsap_nexus.store.events import GameAvailable, GameFailed, GameInMaintenance, GameOffline
from wsap_nexus.store.tables import METADATA

_GAME, _WORLD = METADATA.tables["game"], METADATA.tables["world"]

Status = Literal["available", "maintenance", "offline"]
_STATUS_EVENTS: Mapping[Status, type[GameAvailable | GameInMaintenance | GameOffline]] = {
    "available": GameAvailable,
    "maintenance": GameInMaintenance,
    "offline": GameOffline,
}
_LONGEST_REASON = 500
_TIMES = "failed_at"


@dataclass(frozen=True)
class Standing:
    """How a game stands."""

    status: Status = "available"
    reason: str = ""
    """Why, where it is not available."""
    failed_at: tuple[float, ...] = ()
    """When it failed of late, in seconds since 1970."""


class Standings:
    """How games stand, kept in the database.

    Args:
        ledger: the nexus' books.
        limit: failures within the window after which a game is taken offline.
        window: seconds.
        on_close: told of each game that may not be entered from now on.
    """

    def __init__(
        self, ledger: Ledger, limit: int, window: float, *, on_close: Callable[[str], None] = lambda game: None
    ) -> None:
        self._ledger = ledger
        self._limit = limit
        self._window = window
        self._on_close = on_close
        self._known: dict[str, Standing] | None = None

    def of(self, game: str) -> Standing:
        """Return how a game stands."""
        return self._all().get(game, Standing())

    def put(self, game: str, status: str, reason: str = "") -> Standing:
        """Say how a game stands from now on; its failures are forgotten where it becomes available.

        Raises:
            UsageError: there is no such status.
        """
        known = get_args(Status)
        if status not in known:
            raise UsageError(f"A game is {', '.join(known[:-1])} or {known[-1]}, not {status!r}.")
        before = self.of(game)
        failed_at = () if status == "available" else before.failed_at
        standing = Standing(status, one_line(reason)[:_LONGEST_REASON], failed_at)  # type: ignore[arg-type]  # looked up
        with self._ledger.change() as book:
            self._keep(book, game, standing)
            book.note(_STATUS_EVENTS[standing.status](game=game, reason=standing.reason, before=before.status))
        if status != "available":
            self._on_close(game)
        return standing

    def count(self, game: str, world_id: str, error: BaseException) -> bool:
        """Write down that a world failed; return whether its game has now done so too often, so that it is offline."""
        reason = one_line(error)[:_LONGEST_REASON]
        before = self.of(game)
        with self._ledger.change() as book:
            recent = tuple(t for t in before.failed_at if book.now - t < self._window)
            failed_at = (*recent, book.now)[-1000:]
            too_often = before.status == "available" and len(failed_at) >= self._limit
            book.connection.execute(
                update(_WORLD).where(_WORLD.c.id == world_id).values(failures=_WORLD.c.failures + 1)
            )
            book.note(GameFailed(game=game, world=world_id, error=reason, recent=len(failed_at)))
            standing = Standing(before.status, before.reason, failed_at)
            if too_often:
                why = f"It failed {len(failed_at)} times within {_span(self._window)}, the last time so: {reason}"
                standing = Standing("offline", why[:_LONGEST_REASON], failed_at)
                book.note(GameOffline(game=game, reason=standing.reason, before=before.status))
            self._keep(book, game, standing)
        if too_often:
            self._on_close(game)
        return too_often

    def _all(self) -> dict[str, Standing]:
        if self._known is None:
            with self._ledger.look() as book:
                self._known = {row.name: _standing(row.status, row.reason, row.data) for row in _rows(book)}
        return self._known

    def _keep(self, book: Book, game: str, standing: Standing) -> None:
        self._all()[game] = standing
        data = dict(book.connection.execute(select(_GAME.c.data).where(_GAME.c.name == game)).scalar() or {})
        values = {
            "status": standing.status,
            "reason": standing.reason,
            "failures": len(standing.failed_at),
            # What others keep of the game stays.
            "data": {**data, _TIMES: list(standing.failed_at)},
        }
        if not book.connection.execute(update(_GAME).where(_GAME.c.name == game).values(**values)).rowcount:
            book.connection.execute(insert(_GAME).values(name=game, **values))


def _rows(book: Book) -> list[Any]:
    # Any: rows of the table.
    return list(book.connection.execute(select(_GAME)))


def _standing(status: str, reason: str, data: Mapping[str, Any]) -> Standing:
    # Any: JSON. What somebody wrote into the table by hand is not better than nothing.
    known: Any = status if status in get_args(Status) else "offline"
    return Standing(known, reason, tuple(float(t) for t in data.get(_TIMES, ())))


def _span(seconds: float) -> str:
    return f"{seconds / 60:g} minutes" if seconds >= 120 else f"{seconds:g} s"
