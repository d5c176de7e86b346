"""The games that agents can enter, and their availability."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from wsap_core.errors import PluginError, StorageError, UsageError, WsapError
from wsap_core.factories import load
from wsap_core.host import PluginHost
from wsap_core.loading import names_object
from wsap_core.protocol.wire import Codec
from wsap_core.references import load_adapter_spec
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.hub.games.remote_games import RemoteGames
from wsap_nexus.store.errors import is_passing
from wsap_nexus.store.events.nexus import GameAvailable, GameFailed, GameInMaintenance, GameOffline
from wsap_nexus.store.nexus_store import NexusStore, Transaction
from wsap_nexus.worlds.game_info import GameInfo

Status = Literal["available", "maintenance", "offline"]
_STATUS_EVENTS: Mapping[Status, type[GameAvailable | GameInMaintenance | GameOffline]] = {
    "available": GameAvailable,
    "maintenance": GameInMaintenance,
    "offline": GameOffline,
}
_LONGEST_REASON = 500
WINDOW = 600.0
"""Seconds for which a failure of a game counts."""
_TIMES = "failed_at"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Availability:
    """Whether a game may be entered, and why not."""

    status: Status = "available"
    reason: str = ""
    """Why it is not available."""
    failed_at: tuple[float, ...] = ()
    """Times of recent failures, in seconds since 1970."""


class CircuitBreaker:
    """Takes a game offline after `limit` failures within `WINDOW` seconds; its state is stored in the database.

    `on_close` is called with each game that can no longer be entered.
    """

    def __init__(
        self, nexus_store: NexusStore, limit: int, *, on_close: Callable[[str], None] = lambda game: None
    ) -> None:
        self._nexus_store = nexus_store
        self._limit = limit
        self._on_close = on_close
        self._known: dict[str, Availability] | None = None
        self._repeated: set[str] = set()
        """Worlds whose failure is being repeated."""

    def of(self, game: str) -> Availability:
        """Return whether a game may be entered."""
        return self._all().get(game, Availability())

    def put(self, game: str, status: str, reason: str = "") -> None:
        """Set a game's status, for which `available` forgets its failures; UsageError if there is no such status."""
        known = get_args(Status)
        if status not in known:
            raise UsageError(f"A game's status is {', '.join(known[:-1])} or {known[-1]}, not {status!r}.")
        before = self.of(game)
        failed_at = () if status == "available" else before.failed_at
        standing = Availability(status, single_line(reason)[:_LONGEST_REASON], failed_at)  # type: ignore[arg-type]  # looked up
        with self._nexus_store.change() as tx:
            self._keep(tx, game, standing)
            tx.note(_STATUS_EVENTS[standing.status](game=game, reason=standing.reason, before=before.status))
        if status != "available":
            self._on_close(game)

    @contextmanager
    def repeating(self, world_id: str) -> Iterator[None]:
        """Count no failure of a world within the block, in which it is played again after one."""
        self._repeated.add(world_id)
        try:
            yield
        finally:
            self._repeated.discard(world_id)

    def count(self, game: str, world_id: str, error: BaseException) -> bool:
        """Count a failure of a world; return whether it took the game offline.

        During a fault of the machine under the database no failure is counted.
        """
        if world_id in self._repeated:
            return False
        try:
            return self._count(game, world_id, single_line(error)[:_LONGEST_REASON])
        except StorageError as fault:
            if not is_passing(fault):
                raise
            _LOG.warning("A failure of %r is not counted: %s", game, fault)
            return False

    def _count(self, game: str, world_id: str, reason: str) -> bool:
        before = self.of(game)
        with self._nexus_store.change() as tx:
            recent = tuple(t for t in before.failed_at if tx.now - t < WINDOW)
            failed_at = (*recent, tx.now)[-1000:]
            too_often = before.status == "available" and len(failed_at) >= self._limit
            tx.count_failure(world_id)
            tx.note(GameFailed(game=game, world=world_id, error=reason, recent=len(failed_at)))
            standing = Availability(before.status, before.reason, failed_at)
            if too_often:
                why = f"It failed {len(failed_at)} times within {WINDOW / 60:g} minutes; the last error was: {reason}"
                standing = Availability("offline", why[:_LONGEST_REASON], failed_at)
                tx.note(GameOffline(game=game, reason=standing.reason, before=before.status))
            self._keep(tx, game, standing)
        if too_often:
            self._on_close(game)
        return too_often

    def _all(self) -> dict[str, Availability]:
        if self._known is None:
            with self._nexus_store.look() as tx:
                self._known = {game.name: _standing(game.status, game.reason, game.data) for game in tx.games()}
        return self._known

    def _keep(self, tx: Transaction, game: str, standing: Availability) -> None:
        self._all()[game] = standing
        times = {_TIMES: list(standing.failed_at)}
        failures = len(standing.failed_at)
        tx.keep_game(game, times, status=standing.status, reason=standing.reason, failures=failures)


def _standing(status: str, reason: str, data: Mapping[str, Any]) -> Availability:
    # Any: JSON. A status edited by hand into the table may be invalid: treat it as offline.
    known: Any = status if status in get_args(Status) else "offline"
    return Availability(known, reason, tuple(float(t) for t in data.get(_TIMES, ())))


@dataclass(eq=False)
class Catalog:
    """The games of a nexus.

    Args:
        wanted: the games that agents may enter; None for all installed ones but families, whose members are named.
        kept: the games of worlds that live in the nexus, whether `wanted` or not.
    """

    host: PluginHost
    wanted: tuple[str, ...] | None
    remote_games: RemoteGames
    breaker: CircuitBreaker
    kept: Sequence[str] = ()
    known: dict[str, AdapterSpec] = field(default_factory=dict, init=False)
    """Loaded games of this process, by name and by reference."""

    def spec(self, game: str, options: Mapping[str, Any] | None = None) -> AdapterSpec:
        """Return a game's spec with these options.

        Raises:
            UnknownNameError: there is no such game.
            UsageError: the options are invalid.
            PluginError: the game can't be loaded.
        """
        if game in self.remote_games.specs():
            return self.remote_games.specs()[game].with_options(options or {})
        for reference in self.wanted or ():
            # A game in a file is also known by its own name once it has been loaded.
            if reference not in self.known and names_object(reference):
                spec = load_adapter_spec(reference, self.host)
                self.known[reference] = self.known[spec.name] = spec
        if game not in self.known:
            self.known[game] = load_adapter_spec(game, self.host)
        return self.known[game].with_options(options or {})

    def infos(self, active: Mapping[str, int], busy: Callable[[AdapterSpec], bool]) -> list[GameInfo]:
        """Return information about every loadable game; `active` counts agents, `busy` says that no world is free."""
        found = []
        for spec in self._specs():
            info = GameInfo.of(spec)
            standing = self.breaker.of(info.id)
            status = "busy" if standing.status == "available" and busy(spec) else standing.status
            found.append(replace(info, active_agents=active.get(info.id, 0), status=status, reason=standing.reason))
        return found

    def names(self) -> list[str]:
        """Return the names of all loadable games."""
        return [spec.name for spec in self._specs()]

    def _specs(self) -> Iterator[AdapterSpec]:
        names = tuple(dict.fromkeys((*(self.wanted or self._installed()), *self.kept)))
        for name in (*names, *(n for n in self.remote_games.specs() if n not in names)):
            try:
                yield self.spec(name)
            except WsapError:
                continue

    def _installed(self) -> list[str]:
        # A family without a NAME would load the libraries of its default member, or ask that one's server.
        games = self.host.games
        return [name for name in games.names() if not games.get(name).family]


def codec_of(spec: AdapterSpec) -> Codec:
    """Return the codec of a game's recorded messages; WorldFailedError if its types can't be loaded."""
    try:
        return Codec([load(reference) for reference in spec.wire_types])
    except PluginError as error:
        raise WorldFailedError(f"The game {spec.name!r} can't be loaded: {error}") from error
