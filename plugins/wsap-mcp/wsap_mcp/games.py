"""The games that MCP clients have open, by handle."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from mcp import MCPError
from mcp.types import INVALID_PARAMS

from wsap_core.errors import UsageError
from wsap_nexus.doors.outside import OutsideRun, OutsideRuns

MOST = 32
"""Maximum number of open games."""

IDLE = 1800.0
"""Seconds without a call after which a game is stopped; it can be resumed."""


@dataclass
class OpenGame:
    """A game that a client has open."""

    handle: str
    run: OutsideRun
    used: float
    """When it was called last, in monotonic seconds."""
    calls: int = field(default=0)
    """Calls in progress."""


class OpenGames:
    """The open games. A handle is the only way to one: whoever knows it may play it.

    Args:
        runs: starts and resumes games.
        most: maximum number of open games.
        idle: seconds after which an unused game is stopped.
    """

    def __init__(
        self,
        runs: OutsideRuns,
        *,
        most: int = MOST,
        idle: float = IDLE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.runs = runs
        self._most, self._idle, self._clock = most, idle, clock
        self._open: dict[str, OpenGame] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def add(self, begin: Callable[[], OutsideRun]) -> OpenGame:
        """Open a game and return it; UsageError if too many are open. What `begin` raises is passed on."""
        await self.close_idle()
        if len(self._open) >= self._most:
            raise UsageError(f"{self._most} games are open, which is the maximum; stop one with stop_game.")
        handle = secrets.token_urlsafe(9)
        opened = self._open[handle] = OpenGame(handle, begin(), self._clock())
        return opened

    def get(self, handle: object) -> OpenGame:
        """Return an open game; MCPError (-32602) if the handle is unknown."""
        found = self._open.get(handle) if isinstance(handle, str) else None
        if found is None:
            raise MCPError(
                INVALID_PARAMS,
                f"There is no open game {str(handle)[:40]!r}. It may have been stopped because nobody called it for "
                "long: continue it with resume_game and the id of its run, or start another with start_game.",
            )
        found.used = self._clock()
        return found

    async def close(self, handle: str) -> None:
        """Stop a game and forget its handle."""
        opened = self._open.pop(handle, None)
        if opened is not None:
            await opened.run.stop()

    async def close_idle(self) -> None:
        """Stop the games that no client has called for long."""
        since = self._clock() - self._idle
        for opened in list(self._open.values()):
            if opened.used < since and not opened.calls:
                await self.close(opened.handle)

    async def close_all(self) -> None:
        """Stop all games."""
        await asyncio.gather(*(self.close(handle) for handle in list(self._open)))
