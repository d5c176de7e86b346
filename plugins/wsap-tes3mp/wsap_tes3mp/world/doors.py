"""Where the bodies of a world's agents come and go: in its engine, or through its bridge."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from wsap_core.errors import UsageError
from wsap_tes3mp.bridge.port import BridgePort
from wsap_tes3mp.protocol.bridge import JoinRequest
from wsap_tes3mp.protocol.errors import BridgeUnavailableError, NotOfferedError
from wsap_tes3mp.world.player import Player, Surroundings
from wsap_tes3mp.world.source import Embedded, Live, SteppedEngine, at_once


class Doorkeeper:
    """Gives players their bodies, and takes them away."""

    def __init__(self, around: Surroundings, embedded: Embedded | None, live: Live | None) -> None:
        self._around, self._embedded, self._live = around, embedded, live
        self._agent = around.options.agent
        self._due: list[Callable[[], Coroutine[Any, Any, object]]] = []

    def later(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Do something before the next thing that can wait."""
        self._due.append(work)

    def do(self, work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Do something at once in the embedded world; in a live one before the next thing that can wait."""
        if self._embedded is not None:
            at_once(work())
        else:
            self.later(work)

    async def settle(self) -> None:
        """Open a live bridge, and do what is due."""
        if self._live is not None:
            self._around.bridge = await self._live.open()
        while self._due:
            await self._due[0]()
            self._due.pop(0)

    async def wake(self, player: Player) -> None:
        """Give a player its body in the world, and let it perceive."""
        wanted = self._agent or player.agent_id
        request = JoinRequest(agent_id=wanted, name=self._agent or player.body.name or None)
        try:
            player.bridge_id = (await self._doors.join(request)).agent_id
        except (NotOfferedError, BridgeUnavailableError):  # no bodies are made there, or of connected players alone
            player.bridge_id = await self._there_is(player)
        await self._look(player)

    async def _there_is(self, player: Player) -> str:
        """Return who a player is for a bridge that makes no bodies."""
        if self._agent:
            return self._agent
        try:
            ids = [one.agent_id for one in await self._around.port.agents()]
        except NotOfferedError:
            return (await self._around.port.perception(None)).agent_id
        if player.agent_id in ids:
            return player.agent_id
        if len(ids) == 1:
            return ids[0]
        shown = ", ".join(ids[:10]) or "none"
        raise UsageError(f"Say which agent to play with --option agent=ID; on the bridge there are: {shown}.")

    async def leave(self, player: Player, mode: str) -> None:
        """Let a player's body sleep, vanish or be gone, where bodies can."""
        with contextlib.suppress(NotOfferedError):  # then the body stays as it is
            await self._doors.leave(player.bridge_id, mode)

    async def revive(self, player: Player) -> None:
        """Bring a player's body back to life, and let it perceive."""
        await self._doors.respawn(player.bridge_id)
        await self._look(player)

    @property
    def _doors(self) -> BridgePort | SteppedEngine:
        return self._around.port if self._embedded is None else self._embedded.engine

    async def _look(self, player: Player) -> None:
        if self._embedded is None:
            await player.look()
        else:
            player.take(await self._embedded.perception(player.bridge_id))
