"""The interface of worlds that live, in this process and in workers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol, runtime_checkable

from wsap_core.protocol import Tick
from wsap_core.protocol.values import JsonValue
from wsap_nexus.worlds.port import WorldPort


class LivingPort(WorldPort, Protocol):
    """A world that lives. `WorldInterruptedError` if its process ended, and it goes on from its log."""

    async def advance(self, begun: Callable[[], None]) -> Tick:
        """Carry out and return the next tick; `begun` is called at its start, after all that the world was told."""
        ...

    async def rest(self) -> None:
        """Return once all results that came of the last tick have arrived."""
        ...

    async def settle(self) -> None:
        """Wait for the work that the world still has when play ends."""
        ...

    async def influence(self, body: Mapping[str, JsonValue]) -> str:
        """Apply an influence before the next tick, and return one sentence about it; UsageError if it is refused."""
        ...

    async def close_seat(self, agent_id: str) -> None:
        """Forget the seat of an agent that has left, so that snapshots do not include it."""
        ...

    async def vacated(self) -> bytes:
        """Let all agents leave their seats, and return the state."""
        ...


@runtime_checkable
class TakesTurns(Protocol):
    """A world in another process, in which seats can act while it is asked something."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """Let only the calling task ask the world, once all that others asked has reached it."""
        ...


def alone_in(port: WorldPort) -> AbstractAsyncContextManager[None]:
    """Let only the calling task ask a world; in this process nothing can come between two questions anyway."""
    return port.alone() if isinstance(port, TakesTurns) else nullcontext()
