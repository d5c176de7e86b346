"""A world that lives, in a worker of its own."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, cast

from typing_extensions import override

from wsap_core import protocol
from wsap_core.errors import StorageError, UsageError, WorldError, WsapError
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.game import ChoiceKey
from wsap_core.seams.model_errors import BackendError
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import Outcome
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.worlds.remote_world import RemoteSeat, RemoteWorld
from wsap_nexus.worlds.seats import Told
from wsap_nexus.worlds.workers.living_line import LivingLine, OnLoss, Quiet
from wsap_nexus.worlds.workers.pool import WorkerPool

# Any, in this module: JSON.


class LivingWorld(RemoteWorld):
    """A world that lives, in a worker of its own; a `LivingPort`. See `LivingLine` for the arguments."""

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
        self.spec = spec
        self._line = LivingLine(
            spec, seed, options, factory=factory, pool=pool, services=services, on_loss=on_loss, quiet=quiet
        )
        self.can_snapshot = "snapshot" in spec.abilities
        self._seats: dict[str, RemoteSeat] = {}

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
    async def open_seat(self, agent_id: str) -> LivingSeat:
        told = await self.ask("open_seat", seat=agent_id)
        seat = self._seats[agent_id] = LivingSeat(self, agent_id, told)
        return seat

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Let only the calling task ask the world, once all that others asked has reached it."""
        return self._line.alone()

    async def advance(self, begun: Callable[[], None]) -> protocol.Tick:
        """Carry out and return the next tick."""
        tick: protocol.Tick = self.read(protocol.Tick, await self._line.ask_long("advance", begun), "tick")
        return tick

    async def rest(self) -> None:
        """Return once all results that came of the last tick have arrived."""
        await self.ask("rest")

    async def settle(self) -> None:
        """Wait for the work that the world still has when play ends."""
        await self._line.ask_long("settle")

    async def influence(self, body: Mapping[str, JsonValue]) -> str:
        """Apply an influence before the next tick."""
        if "influence" not in self.spec.abilities:
            raise UsageError(f"The game {self.spec.name!r} accepts no influence from outside.")
        return str((await self.ask("influence", body=body))["said"])

    async def close_seat(self, agent_id: str) -> None:
        """Forget the seat of an agent that has left."""
        await self.ask("close_seat", seat=agent_id)
        self._seats.pop(agent_id, None)

    async def vacated(self) -> bytes:
        """Let all agents leave their seats, and return the state."""
        state = base64.b64decode(str((await self.ask("vacated"))["state"]))
        self._seats.clear()
        return state

    @override
    async def ask_turn(
        self, op: str, *, told: Told | None = None, **values: Any
    ) -> tuple[Mapping[str, Any], bytes | None]:
        try:
            return await self._line.ask_seat(op, waits=True, told=told, **values)
        except (BackendError, StorageError, WorldError):
            raise  # the last two are said already, and a model that the world asks is not the game
        except WsapError as error:
            raise WorldFailedError(f"The game {self.spec.name!r} failed: {error}") from error


class LivingSeat(RemoteSeat):
    """A seat in a `LivingWorld`; a `TellingSeat`."""

    tells = True

    @override
    async def step(self, action: protocol.Action, key: ChoiceKey | None = None, told: Told | None = None) -> Outcome:
        world = cast(LivingWorld, self.world)
        return self.outcome(*await world.ask_turn("resolve", told=told, seat=self.agent_id, action=action))

    async def let_go(self, told: Told) -> None:
        """Remove the agent by force, unless its episode is over by then; `told` is called if it was removed."""
        said = await self.world.ask("let_go", seat=self.agent_id)
        removed: protocol.JackOutResult | None = self.world.maybe(protocol.JackOutResult, said, "jack_out")
        if removed is not None:
            self.left = removed
            told()
