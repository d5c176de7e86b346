"""Externally controlled agents: a client fetches their observations and submits their actions."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence

from wsap_core.errors import UsageError, WsapError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation
from wsap_core.seams.agent import GetDefault
from wsap_nexus.runs.play.asking import TurnTime

SILENCES = 2
"""Deadlines in a row that a client misses without any request, after which it counts as silent."""
MISSED = 10
"""Deadlines in a row that a client misses, whatever it requests, after which it counts as silent, too."""


class ActionPendingError(UsageError):
    """Another action of the agent is being resolved."""

    code = "ACTION_PENDING"
    http_status = 409
    retryable = True


class TurnOverError(UsageError):
    """The action was for a turn that is over."""

    code = "TURN_OVER"
    http_status = 409


class SeatLeftError(WsapError):
    """The agent has left the seat that was asked; it is, or soon will be, in another one."""

    code = "INTERRUPTED"
    http_status = 503
    retryable = True


class ExternalAgent:
    """Occupies a seat for a client's agent. Call all methods from the nexus' event loop.

    Args:
        deadline: seconds for a turn, that is, until a decision brings the game on; after that the world takes its
            default action. None for no limit.
        let_go: called when the client is silent, or late in a world without a default action; ends this seat's play
            and returns True, or returns False if that is not possible.
    """

    def __init__(self, deadline: float | None = None, let_go: Callable[[], bool] = lambda: False) -> None:
        self.description = ""
        """The game, its goals and mechanics."""
        self.action_space = ActionSpace()
        """The game's actions."""
        self.decisions = 0
        """Decisions made in this seat; those before a restart are not counted."""
        self.turn = ""
        """Names the newest decision point; no other one, of any seat, has this name."""
        self._time = TurnTime(deadline)
        self._let_go = let_go
        self._default: GetDefault | None = None
        self._heard = False
        """Whether the client has made a request since the last missed deadline."""
        self._silent = 0
        """Deadlines missed in a row without a request."""
        self._missed = 0
        """Deadlines missed in a row."""
        self._acting_since: float | None = None
        self._late_at: float | None = None
        """The monotonic time at which the decision that is waited for is late; None without a deadline."""
        self._seen: asyncio.Future[Observation] | None = None
        self._wanted: asyncio.Future[Action] | None = None
        self._over: asyncio.Future[None] | None = None
        """Done once the newest decision point is over."""
        self._early: Action | None = None
        """An action submitted before its decision point."""
        self._resolving = False
        self._open: asyncio.Future[ActionResult] | None = None
        self._closed = False

    # --- the seat's side --------------------------------------------------------------------------

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        """Store the game's description and actions."""
        self.description, self.action_space = game_desc, action_space

    def take_default_from(self, get_default: GetDefault) -> None:
        """Store the function that returns the seat's default action."""
        self._default = get_default

    async def decide(self, observation: Observation) -> Action:
        """Publish the observation and wait for the action; TimeoutError after the deadline of the turn.

        A client that is silent for `SILENCES` deadlines, or misses `MISSED` in a row, is let go instead, and so is a
        late one if the world has no default action.
        """
        loop = asyncio.get_running_loop()
        self.turn, self._over = secrets.token_hex(8), loop.create_future()
        if self._seen is None or self._seen.done():
            self._seen = loop.create_future()
        self._seen.set_result(observation)
        self._wanted = loop.create_future()
        if self._early is not None:
            self._wanted.set_result(self._early)
            self._early = None
        began, left = time.monotonic(), self._time.left
        self._late_at = None if left is None else began + left
        try:
            async with asyncio.timeout(left):
                action = await self._wanted
            if left == 0:
                raise TimeoutError
            return action
        except TimeoutError:
            self._silent = 0 if self._heard else self._silent + 1
            self._heard = False
            self._missed += 1
            silent = self._silent >= SILENCES or self._missed >= MISSED
            default = None if self._default is None else await self._default()
            if (default is None or silent) and self._let_go():
                await loop.create_future()  # until this seat's play is cancelled
            raise
        finally:
            self._time.took(time.monotonic() - began)
            self._wanted = None
            self._resolving = True
            self._begin_acting()

    def _begin_acting(self) -> None:
        # The observation that was decided upon is not a decision point any more.
        if self._seen is not None and self._seen.done():
            self._seen = None
        self._end_turn()
        if self._acting_since is None:
            self._acting_since = time.monotonic()

    def turn_over(self, *, late: bool) -> None:
        """Give the next turn its whole time; a client that acted in time is not silent."""
        self._time.over()
        if not late:
            self._silent = self._missed = 0

    def reflect(self, result: ActionResult) -> None:
        """Deliver the result to the client that sent the action."""
        if self._seen is not None and self._seen.done():
            # If not done, a client already waits while recorded steps are replayed: it gets the next decision.
            self._seen = None
        self.decisions += 1
        self._resolving = False
        self._acting_since = None
        if self._early is None:
            opened, self._open = self._open, None
            if opened is not None and not opened.done():
                opened.set_result(result)

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        """Return no plan: the client makes its own."""
        return []

    def _end_turn(self) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(None)

    async def aclose(self) -> None:
        """Release all waiters with `SeatLeftError`."""
        self._closed = True
        self._end_turn()
        for waiting in (self._seen, self._open):
            if waiting is not None and not waiting.done():
                waiting.set_exception(SeatLeftError("The agent has left this seat; ask where it is now."))
                waiting.exception()  # nobody may be waiting

    @property
    def deadline(self) -> float | None:
        """The seconds for a turn; None for no limit."""
        return self._time.deadline

    # --- the outside --------------------------------------------------------------------------------

    @property
    def seconds_left(self) -> float | None:
        """The seconds left for the decision that is waited for; None without a deadline, or while none is."""
        if self._late_at is None or self._wanted is None:
            return None
        return max(0.0, self._late_at - time.monotonic())

    @property
    def closed(self) -> bool:
        """Whether the agent has left this seat."""
        return self._closed

    @property
    def acting(self) -> float | None:
        """Seconds for which an action has been in progress; None if none is."""
        return None if self._acting_since is None else time.monotonic() - self._acting_since

    async def observation(self, after: str = "") -> Observation:
        """Wait for the agent's next decision point and return its observation; SeatLeftError if it has left this seat.

        While an action is being resolved there is no decision point. The turn `after` does not count as the next one.
        """
        if after == self.turn and self._over is not None:
            await asyncio.shield(self._over)
        if self._closed:
            raise SeatLeftError("The agent has left this seat; ask where it is now.")
        self._heard = True
        if self._seen is None:
            self._seen = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._seen)

    async def act(self, action: Action, turn: str = "") -> ActionResult:
        """Submit an action and return its result; submitted before the decision point, it waits for that.

        Args:
            turn: the turn that it is for; if empty, whichever is next.

        Raises:
            TurnOverError: `turn` is over.
            ActionPendingError: an action is being resolved.
            SeatLeftError: the agent has left this seat, or play stopped before the action was resolved.
        """
        if self._closed:
            raise SeatLeftError("The agent has left this seat; ask where it is now.")
        self._heard = True
        wanted = None if self._wanted is None or self._wanted.done() else self._wanted
        if turn and (wanted is None or turn != self.turn):
            raise TurnOverError("That turn is over, and nothing was done; choose again in the next one.")
        if self._resolving or self._open is not None:
            raise ActionPendingError(
                "The agent's last action is being resolved; wait for its next observation, which comes afterwards."
            )
        opened = self._open = asyncio.get_running_loop().create_future()
        if wanted is None:
            self._early = action
        else:
            wanted.set_result(action)
            self._begin_acting()
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

    async def observation(self, agent_id: str, after: str = "") -> tuple[ExternalAgent, Observation]:
        """Wait for an agent's next observation after a turn, wherever it is, and return it with its seat."""
        while True:
            seat = await self.seat(agent_id)
            try:
                return seat, await seat.observation(after)
            except SeatLeftError:
                continue
