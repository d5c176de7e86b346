"""What agents and worlds ask of a bridge: the same whether it is in this process or behind HTTP."""

from __future__ import annotations

from typing import Protocol

from wsap_tes3mp.engines.engine import Carrying, Joinable, Respawning
from wsap_tes3mp.protocol.bridge import AgentInfo, BridgeStatus
from wsap_tes3mp.protocol.commands import CommandAccepted, CommandInput, Outcome
from wsap_tes3mp.protocol.perception import PerceptionOutput


class BridgePort(Joinable, Respawning, Carrying, Protocol):
    """A bridge. `Bridge` is one in this process, `BridgeClient` one behind HTTP.

    Every method raises `BridgeError` for what the bridge refuses. What is marked 1.1.0, bodies and items a
    bridge with the seed's endpoints alone does not have: it then raises `NotOfferedError`.
    """

    async def perception(self, agent_id: str | None = None) -> PerceptionOutput:
        """Return the latest snapshot; an agent must be named where there are several."""

    async def command(self, command: CommandInput, *, key: str | None = None) -> CommandAccepted:
        """Submit a command; 1.1.0: with a key that was used before, the first answer is repeated.

        Raises:
            UnknownOutcomeError: no answer came, so that nobody knows whether it was taken.
        """

    async def status(self) -> BridgeStatus:
        """Return how bridge and engine are."""

    async def outcome(self, command_id: str, *, wait: float = 0.0) -> Outcome:
        """Return what became of a command, waiting up to so many seconds for the end of it (1.1.0)."""

    async def agents(self) -> list[AgentInfo]:
        """Return the agents that there are bodies for (1.1.0)."""
