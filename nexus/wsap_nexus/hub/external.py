"""An agent that somebody outside decides for: what it sees waits to be fetched, and its actions come in."""

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
    """The agent is no longer where it was asked; it is somewhere else now, or will be soon."""

    code = "INTERRUPTED"
    http_status = 503
    retryable = True


class ExternalAgent:
    """Stands in a seat for an agent elsewhere. All methods are called from the nexus' own loop.

    Args:
        deadline: seconds for a decision; then the world's default action is taken. None for as long as it takes.
    """

    def __init__(self, deadline: float | None = None) -> None:
        self.description = ""
        """The game, its goals and mechanics."""
        self.action_space = ActionSpace()
        """All actions there are."""
        self.decisions = 0
        """How many decisions it has made in this seat, those of others before a restart left out."""
        self._deadline = deadline
        self._seen: asyncio.Future[Observation] | None = None
        self._wanted: asyncio.Future[Action] | None = None
        self._early: Action | None = None
        """Came in after the last result and before the next decision, which it will be."""
        self._resolving = False
        self._open: asyncio.Future[ActionResult] | None = None
        self._closed = False

    # --- the seat's side --------------------------------------------------------------------------

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Keep what the game is, for whoever asks."""
        self.description, self.action_space = game_desc, action_space

    async def decide(self, observation: Observation) -> Action:
        """Show what is seen, and wait for the action; TimeoutError if it did not come by the deadline."""
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
        """Give the answer to whoever sent the action."""
        if self._seen is not None and self._seen.done():
            # Whoever waits already, while recorded steps are gone through again, goes on waiting for the next decision.
            self._seen = None
        self.decisions += 1
        self._resolving = False
        if self._early is None:
            opened, self._open = self._open, None
            if opened is not None and not opened.done():
                opened.set_result(result)

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        """Return no plan: that is made elsewhere."""
        return []

    async def aclose(self) -> None:
        """Let nobody wait any longer."""
        self._closed = True
        for waiting in (self._seen, self._open):
            if waiting is not None and not waiting.done():
                waiting.set_exception(SeatLeftError("The agent has left this seat; ask where it is now."))
                waiting.exception()  # nobody may be waiting

    # --- the outside --------------------------------------------------------------------------------

    @property
    def closed(self) -> bool:
        """Whether nothing is decided here any more."""
        return self._closed

    async def observation(self) -> Observation:
        """Return what the agent sees at its next decision; waits for it.

        Raises:
            SeatLeftError: there is no other decision here.
        """
        if self._closed:
            raise SeatLeftError("The agent has left this seat; ask where it is now.")
        if self._seen is None:
            self._seen = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._seen)

    async def act(self, action: Action) -> ActionResult:
        """Hand in an action and return its result.

        Whoever has the result of the last action may act again at once: until the agent decides, the action waits.

        Raises:
            ActionPendingError: an action is being resolved.
            SeatLeftError: the agent is no longer there, or play was stopped before the action was resolved.
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
    """The seats of agents that are decided for outside, by agent; the newest of each."""

    def __init__(self) -> None:
        super().__init__()
        self._changed: dict[str, asyncio.Event] = {}

    def __setitem__(self, agent_id: str, seat: ExternalAgent) -> None:
        """Put an agent into another seat."""
        super().__setitem__(agent_id, seat)
        changed = self._changed.pop(agent_id, None)
        if changed is not None:
            changed.set()

    async def seat(self, agent_id: str) -> ExternalAgent:
        """Return the seat that an agent is in, waiting while it is on its way."""
        while (seat := self.get(agent_id)) is None or seat.closed:
            await self._changed.setdefault(agent_id, asyncio.Event()).wait()
        return seat

    async def observation(self, agent_id: str) -> tuple[ExternalAgent, Observation]:
        """Return what an agent sees at its next decision, wherever that is; waits for it."""
        while True:
            seat = await self.seat(agent_id)
            try:
                return seat, await seat.observation()
            except SeatLeftError:
                continue
