"""Creates worlds in this process or in workers."""

from __future__ import annotations

from collections.abc import Callable

from wsap_core.errors import MissingServiceError, PluginError
from wsap_core.loading import portable_reference
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.store.entities import WorldRecord
from wsap_nexus.worlds.living_world import LivingWorld
from wsap_nexus.worlds.port import LivingPort, LocalWorld, WorldPort
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.workers.living_line import OnLoss, Quiet
from wsap_nexus.worlds.workers.pool import WorkerPool

FailureListener = Callable[[str, str, WorldFailedError], object]
"""Called with the game, the world and the error each time a world crashes its worker."""


class Placement:
    """Creates worlds in workers or, with a `context()`, in this process; without a `pool`, all in this process.

    Worlds that live are created in this process unless `living`.
    """

    def __init__(
        self,
        pool: WorkerPool | None,
        context: Callable[[], Context],
        on_failure: FailureListener,
        *,
        living: bool = False,
    ) -> None:
        self.pool = pool
        self._living = living
        self._context = context
        self._on_failure = on_failure
        self._local: set[str] = set()

    def make(self, spec: AdapterSpec, record: WorldRecord) -> WorldPort:
        """Return a new, unstarted world.

        Raises:
            WorldFailedError: the game can't be loaded or created.
            WsapError: its options are invalid.
        """
        spec = spec.with_options(record.options)
        factory = portable_reference(spec.factory)
        if self.pool is None or factory is None or spec.stays_home or spec.name in self._local:
            try:
                return LocalWorld(spec, record.seed, record.options, self._context())
            except PluginError as error:
                raise WorldFailedError(str(error)) from error

        def failed(error: WorldFailedError) -> None:
            self._on_failure(spec.name, record.id, error)

        return RemoteWorld(spec, record.seed, record.options, factory=factory, pool=self.pool, on_failure=failed)

    def make_living(
        self,
        spec: AdapterSpec,
        record: WorldRecord,
        context: Context,
        on_loss: OnLoss,
        quiet: Quiet | None = None,
        *,
        offline: bool = False,
    ) -> LivingPort:
        """Return a new, unstarted world that lives, whose models and log are those of the context.

        Args:
            on_loss, quiet: see `LivingLine`.
            offline: its models are not called, as in a replay.

        Raises:
            WorldFailedError: the game can't be loaded or created.
            WsapError: its options are invalid.
        """
        spec = spec.with_options(record.options)
        factory = portable_reference(spec.factory)
        at_home = not self._living or "irreversible" in spec.abilities or spec.name in self._local
        if self.pool is None or factory is None or at_home:
            try:
                return LocalWorld(spec, record.seed, record.options, context, offline=offline)
            except PluginError as error:
                raise WorldFailedError(str(error)) from error
        return LivingWorld(
            spec, record.seed, record.options, factory=factory, pool=self.pool, services=context.services,
            on_loss=on_loss, quiet=quiet,
        )  # fmt: skip

    def must_stay_home(self, game: str, error: BaseException) -> bool:
        """Return whether a game failed because workers lack a service; its later worlds are created in this process."""
        if not isinstance(error.__cause__, MissingServiceError) or self.pool is None or game in self._local:
            return False
        self._local.add(game)
        return True

    async def close(self) -> None:
        """Stop all workers."""
        if self.pool is not None:
            await self.pool.close()


def saved_on_the_way(port: WorldPort) -> bytes | None:
    """Return the newest state saved during play; None for a world in this process."""
    return getattr(port, "last_state", None)
