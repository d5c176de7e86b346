"""A world that lives, in a worker of its own."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from typing_extensions import override

from wsap_core import protocol
from wsap_core.errors import StorageError, WorldError
from wsap_core.seams.game import ChoiceKey
from wsap_core.seams.model_errors import BackendError
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import Outcome
from wsap_nexus.worlds.operations import LetGo, Opened, Resolve
from wsap_nexus.worlds.port import LivingPort
from wsap_nexus.worlds.remote.remote_world import RemoteSeat, RemoteWorld
from wsap_nexus.worlds.seats import Told
from wsap_nexus.worlds.workers.living_line import LivingLine, OnLoss, Quiet
from wsap_nexus.worlds.workers.pool import WorkerPool

# Any, in this module: JSON.


class LivingWorld(RemoteWorld, LivingPort):
    """A world that lives, in a worker of its own. See `LivingLine` for the arguments."""

    not_the_games = (BackendError, StorageError, WorldError)
    """The last two are said already, and a model that the world asks is not the game."""
    _line: LivingLine  # type: ignore[assignment]  # a world that lives is not rebuilt, but goes on from its log

    def __init__(
        self,
        spec: AdapterSpec,
        seed: int,
        options: Mapping[str, Any],
        *,
        factory: str,
        pool: WorkerPool,
        services: Services,
        on_loss: OnLoss,
        quiet: Quiet | None = None,
    ) -> None:
        self.spec, self.can_snapshot = spec, "snapshot" in spec.abilities
        self.seats: dict[str, RemoteSeat] = {}
        self._seen: dict[str, tuple[bytes, protocol.Observation]] = {}
        self._line = LivingLine(
            spec, seed, options, factory=factory, pool=pool, services=services, on_loss=on_loss, quiet=quiet
        )

    @property
    @override
    def last_state(self) -> bytes | None:
        return None

    @property
    @override
    def failures(self) -> int:
        return 0

    @property
    @override
    def rebuilt(self) -> int:
        return 0

    @override
    def give_up(self) -> bool:
        return False

    @override
    def opened(self, seat: str, opened: Opened) -> LivingSeat:
        made = self.seats[seat] = LivingSeat(self, seat, opened)
        return made

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Let only the calling task ask the world, once all that others asked has reached it."""
        return self._line.alone()


class LivingSeat(RemoteSeat):
    """A seat in a `LivingWorld`; a `TellingSeat`."""

    tells = True

    @override
    async def step(self, action: protocol.Action, key: ChoiceKey | None = None, told: Told | None = None) -> Outcome:
        world = cast(LivingWorld, self.world)
        return self.resolved(await world.call(Resolve(self.agent_id, action), told))

    async def let_go(self, told: Told) -> None:
        """Remove the agent by force, unless its episode is over by then; `told` is called if it was removed."""
        removed = await self.world.call(LetGo(self.agent_id))
        if removed is not None:
            self.left = removed
            told()
