"""Where worlds run: in this process, or in workers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from wsap_core.errors import MissingServiceError, PluginError
from wsap_core.loading import portable_reference
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.store.entities import WorldRecord
from wsap_nexus.worlds.port import LocalWorld, WorldPort
from wsap_nexus.worlds.workers.pool import WorkerPool, WorkerTimeouts
from wsap_nexus.worlds.workers.world import WorkerWorld

FailureListener = Callable[[str, str, WorldFailedError], None]
"""Told the game, the world and what happened, each time a world brought its worker down."""


class HasWorkers(Protocol):
    """What says how worlds are run in workers."""

    @property
    def workers(self) -> int:
        """Most worker processes; 0 for worlds in the nexus' own process."""
        ...

    @property
    def timeouts(self) -> WorkerTimeouts:
        """How long is waited for them."""
        ...

    @property
    def logs(self) -> Path | None:
        """The folder for what games print; None keeps nothing of it."""
        ...


class Placement:
    """Makes worlds where they are to run.

    Args:
        settings: how many workers, and how.
        context: what a world in this process is handed.
        on_failure: told of each failure that a world recovered from, too.
    """

    def __init__(self, settings: HasWorkers, context: Callable[[], Context], on_failure: FailureListener) -> None:
        self.pool = WorkerPool(settings.workers, settings.timeouts, logs=settings.logs) if settings.workers else None
        """The workers, if there are any."""
        self._context = context
        self._on_failure = on_failure
        self._at_home: set[str] = set()

    def make(self, spec: AdapterSpec, record: WorldRecord) -> WorldPort:
        """Return a world that nothing was asked of yet.

        Raises:
            WorldFailedError: the game can't be loaded or made.
            WsapError: its options are wrong.
        """
        factory = portable_reference(spec.factory)
        if self.pool is None or factory is None or spec.name in self._at_home:
            try:
                return LocalWorld(spec, record.seed, record.options, self._context())
            except PluginError as error:
                raise WorldFailedError(str(error)) from error

        def failed(error: WorldFailedError) -> None:
            self._on_failure(spec.name, record.id, error)

        return WorkerWorld(spec, record.seed, record.options, factory=factory, pool=self.pool, on_failure=failed)

    def must_stay_home(self, game: str, error: BaseException) -> bool:
        """Return whether a game failed because it needs what only the nexus' own process has; it is put there then."""
        if not isinstance(error.__cause__, MissingServiceError) or self.pool is None or game in self._at_home:
            return False
        self._at_home.add(game)
        return True

    async def close(self) -> None:
        """End all workers."""
        if self.pool is not None:
            await self.pool.close()


def saved_on_the_way(face: WorldPort) -> bytes | None:
    """Return the newest state that was saved of a world while it was played; None where the log is all there is."""
    return getattr(face, "last_state", None)  # worlds that are saved so have it
