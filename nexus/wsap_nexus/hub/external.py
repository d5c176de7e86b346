"""An agent that somebody outside decides for: what it sees waits to be fetched, and its actions come in."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from wsap_core.errors import UsageError
from wsap_core.models import Action, ActionResult, ActionSpace, Goal, Observation

KEPT = 256
"""Answers to actions that are kept, to be given again to whoever asks with the same key."""


class ActionPendingError(UsageError):
    """Another action of the agent has not been resolved yet."""

    code = "ACTION_PENDING"
    http_status = 409
    retryable = True


class ExternalAgent:
    """Stands in a seat for an agent elsewhere. All methods are called from the nexus' own loop."""

    def __init__(self) -> None:
        self.description = ""
        """The game, its goals and mechanics."""
        self.action_space = ActionSpace()
        self._seen: asyncio.Future[Observation] | None = None
        self._wanted: asyncio.Future[Action] | None = None
        self._answers: OrderedDict[str, tuple[Action, asyncio.Future[ActionResult]]] = OrderedDict()
        self._open: asyncio.Future[ActionResult] | None = None
        self._count = 0

    # --- the seat's side --------------------------------------------------------------------------

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Keep what the game is, for whoever asks."""
        self.description, self.action_space = game_desc, action_space

    async def decide(self, observation: Observation) -> Action:
        """Show what is seen, and wait for the action."""
        loop = asyncio.get_running_loop()
        if self._seen is None or self._seen.done():
            self._seen = loop.create_future()
        self._seen.set_result(observation)
        self._wanted = loop.create_future()
        try:
            return await self._wanted
        finally:
            self._wanted = None

    def reflect(self, result: ActionResult) -> None:
        """Give the answer to whoever sent the action."""
        self._seen = None
        opened, self._open = self._open, None
        if opened is not None and not opened.done():
            opened.set_result(result)

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        """Return no plan: that is made elsewhere."""
        return []

    async def aclose(self) -> None:
        """Let nobody wait any longer."""
        for waiting in (self._seen, self._open, *(future for _, future in self._answers.values())):
            if waiting is not None and not waiting.done():
                waiting.cancel()

    # --- the outside --------------------------------------------------------------------------------

    async def observation(self) -> Observation:
        """Return what the agent sees at its next decision; waits for it."""
        if self._seen is None:
            self._seen = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._seen)

    def act(self, action: Action, key: str | None = None) -> asyncio.Future[ActionResult]:
        """Hand in an action and return where its result will be; with a key that was used, the first one's.

        Raises:
            UsageError: the key was used for another action.
            ActionPendingError: an action is being resolved, or the agent has nothing to decide yet.
        """
        if key is not None and key in self._answers:
            before, future = self._answers[key]
            if before != action:
                raise UsageError(f"The idempotency key {key[:80]!r} was used for another action.")
            return future
        if self._wanted is None or self._wanted.done():
            raise ActionPendingError("The agent's last action is being resolved; ask for its observation first.")
        self._count += 1
        self._open = asyncio.get_running_loop().create_future()
        self._answers[key or f"#{self._count}"] = (action, self._open)
        while len(self._answers) > KEPT:
            self._answers.popitem(last=False)
        self._wanted.set_result(action)
        return self._open
