"""Externally controlled agents: a client fetches their observations and submits their actions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from wsap_core.errors import UsageError, WsapError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation


class ActionPendingError(UsageError):
    """Another action of the agent is being resolved."""

    code = "ACTION_PENDING"
    http_status = 409
    retryable = True


class SeatLeftError(WsapError):
    """The agent has left the seat that was asked; it is, or soon will be, in another one."""

    code = "INTERRUPTED"
    http_status = 503
    retryable = True


class ExternalAgent:
    """Occupies a seat for a client's agent. Call all methods from the nexus' event loop.

    Args:
        deadline: seconds for a decision, after which the world takes its default action; None for no limit.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self.description = ""
        """The game, its goals and mechanics."""
        self.action_space = ActionSpace()
        """The game's actions."""
        self.decisions = 0
        """Decisions made in this seat; those before a restart are not counted."""
        self._deadline = deadline
        self._seen: asyncio.Future[Observation] | None = None
        self._wanted: asyncio.Future[Action] | None = None
        self._early: Action | None = None
        """An action submitted before its decision point."""
        self._resolving = False
        self._open: asyncio.Future[ActionResult] | None = None
        self._closed = False

    # --- the seat's side --------------------------------------------------------------------------

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Store the game's description and actions."""
        self.description, self.action_space = game_desc, action_space

    async def decide(self, observation: Observation) -> Action:
        """Publish the observation and wait for the action; TimeoutError after the deadline."""
        loop = asyncio.get_running_loop()
        if self._seen is None or self._seen.done():
            self._seen = loop.create_future()
        self._seen.set_result(observation)
        self._wanted = loop.create_future()
        if self._early is not None:
            self._wanted.set_result(self._early)
            self._early = None
        try:
            async with asyncio.timeout(self._deadline):
                return await self._wanted
        finally:
            self._wanted = None
            self._resolving = True

    def reflect(self, result: ActionResult) -> None:
        """Deliver the result to the client that sent the action."""
        if self._seen is not None and self._seen.done():
            # If not done, a client already waits while recorded steps are replayed: it gets the next decision.
            self._seen = None
        self.decisions += 1
        self._resolving = False
        if self._early is None:
            opened, self._open = self._open, None
            if opened is not None and not opened.done():
                opened.set_result(result)

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        """Return no plan: the client makes its own."""
        return []

    async def aclose(self) -> None:
        """Release all waiters with `SeatLeftError`."""
        self._closed = True
        for waiting in (self._seen, self._open):
            if waiting is not None and not waiting.done():
                waiting.set_exception(SeatLeftError("The agent has left this seat; ask where it is now."))
                waiting.exception()  # nobody may be waiting

    # --- the outside --------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether the agent has left this seat."""
        return self._closed

    async def observation(self) -> Observation:
        """Wait for the agent's next observation and return it; SeatLeftError if it has left this seat."""
        if self._closed:
            raise SeatLeftError("The agent has left this seat; ask where it is now.")
        if self._seen is None:
            self._seen = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._seen)

    async def act(self, action: Action) -> ActionResult:
        """Submit an action and return its result; submitted before the decision point, it waits for that.

        Raises:
            ActionPendingError: an action is being resolved.
            SeatLeftError: the agent has left this seat, or play stopped before the action was resolved.
        """
        if self._closed:
            raise SeatLeftError("The agent has left this seat; ask where it is now.")
        if self._resolving or self._open is not None:
            raise ActionPendingError("The agent's last action is being resolved; ask for its observation first.")
        opened = self._open = asyncio.get_running_loop().create_future()
        if self._wanted is None:
            self._early = action
        else:
            self._wanted.set_result(action)
        return await asyncio.shield(opened)


class Outside(dict[str, ExternalAgent]):
    """The newest seats of externally controlled agents, by agent."""

    def __init__(self) -> None:
        super().__init__()
        self._changed: dict[str, asyncio.Event] = {}

    def __setitem__(self, agent_id: str, seat: ExternalAgent) -> None:
        """Set an agent's newest seat."""
        super().__setitem__(agent_id, seat)
        changed = self._changed.pop(agent_id, None)
        if changed is not None:
            changed.set()

    async def seat(self, agent_id: str) -> ExternalAgent:
        """Return an agent's seat, waiting while it is in transit."""
        while (seat := self.get(agent_id)) is None or seat.closed:
            await self._changed.setdefault(agent_id, asyncio.Event()).wait()
        return seat

    async def observation(self, agent_id: str) -> tuple[ExternalAgent, Observation]:
        """Wait for an agent's next observation, wherever it is, and return it with its seat."""
        while True:
            seat = await self.seat(agent_id)
            try:
                return seat, await seat.observation()
            except SeatLeftError:
                continue
