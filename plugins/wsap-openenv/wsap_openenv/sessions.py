"""The sessions of clients: each plays one episode after the other, and each episode is a recorded run."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionResult, Observation
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import SEED_LIMIT
from wsap_core.specs import AdapterSpec
from wsap_nexus.doors.outside import OutsideRun, OutsideRuns

# Any, in this module: JSON, and options of games.

MOST = 32
"""Maximum number of sessions."""
IDLE = 3600.0
"""Seconds without a message after which a session is closed."""


class FullError(UsageError):
    """There are as many sessions as are allowed."""

    code = "CAPACITY_REACHED"
    http_status = 503


@dataclass(frozen=True)
class Terms:
    """What a server serves."""

    game: str
    seat: str | None = None
    """The seat of clients; None for the first."""
    opponents: Mapping[str, str] | str | None = None
    """The agent of the other seats, or seat -> agent; None for the game's default agent."""
    options: Mapping[str, Any] = field(default_factory=dict)
    structured: bool = False
    """Whether observations have the whole state as JSON."""


@dataclass(frozen=True)
class Told:
    """What a client is told of an episode at one moment."""

    observation: Observation
    result: ActionResult | None
    """The result of its action; None after a reset."""
    reward: float | None
    done: bool


class Session:
    """A client's session; created by `Sessions.open`."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self.used = sessions.now()
        """When it was used last, in seconds of the clock."""
        self.busy = False
        """Whether a message is being answered."""
        self.expired = asyncio.Event()
        """Set when it is to be closed because nobody uses it."""
        self.run: OutsideRun | None = None
        """The run of the episode; None before the first reset."""
        self.episode_id: str | None = None
        self.seed: int | None = None
        self.steps = 0
        """Step messages in the episode, also of refused actions."""
        self._done: Told | None = None

    async def reset(self, seed: int | None = None, episode_id: str | None = None) -> Told:
        """Start an episode, of a seed drawn by chance if none is given, and return what is seen first.

        Raises:
            WsapError: the game can't be played.
        """
        await self._stop()
        chosen = self._sessions.chance(SEED_LIMIT + 1) if seed is None else seed
        self.seed, self.steps = chosen, 0
        run = self.run = self._sessions.begin(chosen)
        self.episode_id = episode_id or run.run_id
        return self._told(await run.observation(), None)

    async def step(self, action: Action) -> Told:
        """Take an action; return what came of it, and what is seen at the next decision.

        Raises:
            UsageError: no episode was started.
            WsapError: the game failed.
        """
        if self.run is None:
            raise UsageError("No episode was started; send a reset first.")
        self.steps += 1
        if self._done is not None:
            told = "The episode is over; a reset starts the next one."
            late = self._done.result is not None and self._done.result.truncated
            over = ActionResult(False, told, done=True, truncated=late)
            return Told(self._done.observation, over, 0.0, True)
        result = await self.run.turn(action)
        return self._told(result.observation, result)

    def _told(self, seen: Observation, result: ActionResult | None) -> Told:
        done = self.run is None or self.run.over or (result is not None and result.done)
        told = Told(seen, result, None if result is None else float(result.reward), done)
        self._done = told if done else None
        return told

    async def close(self, *, keep: bool = True) -> None:
        """Stop the episode, and make room for another session; the record of the last episode may be forgotten."""
        run = self.run
        await self._stop()
        if run is not None and not keep:
            self._sessions.delete(run)
        self._sessions.forget(self)

    async def _stop(self) -> None:
        run, self.run, self._done = self.run, None, None
        if run is not None:
            await run.stop()


class Sessions:
    """The open sessions of a server; use it within one event loop.

    Args:
        runs: starts games.
        most: maximum number of sessions.
        idle: seconds after which an unused one expires.
        chance: draws seeds.
    """

    def __init__(
        self,
        runs: OutsideRuns,
        terms: Terms,
        *,
        most: int = MOST,
        idle: float = IDLE,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[int], int] = random.randrange,
    ) -> None:
        self._runs, self.terms = runs, terms
        self.most, self._idle, self.now, self.chance = most, idle, clock, chance
        self._open: set[Session] = set()
        self.spec: AdapterSpec = load_adapter_spec(terms.game, runs.host).with_options(dict(terms.options))
        """The game."""
        self.seat = terms.seat or self.spec.names_of_seats(self.spec.seats[1])[0]
        """The seat of clients."""

    def __len__(self) -> int:
        return len(self._open)

    def open(self) -> Session:
        """Open a session; FullError if there are too many."""
        if len(self._open) >= self.most:
            raise FullError(
                f"{self.most} sessions are open, which is the maximum; close one, or serve more with --sessions."
            )
        session = Session(self)
        self._open.add(session)
        return session

    def forget(self, session: Session) -> None:
        """Make room for another session."""
        self._open.discard(session)

    def begin(self, seed: int) -> OutsideRun:
        """Start a run of the game."""
        terms = self.terms
        return self._runs.play(terms.game, seat=terms.seat, opponents=terms.opponents, seed=seed, options=terms.options)

    def delete(self, run: OutsideRun) -> None:
        """Delete the record of a run that has been stopped."""
        self._runs.store.repository.delete_run(run.run_id)

    def expire_idle(self) -> None:
        """Let the sessions expire that nobody has used for long."""
        since = self.now() - self._idle
        for session in self._open:
            if session.used < since and not session.busy:
                session.expired.set()

    async def close_all(self) -> None:
        """Close all sessions."""
        await asyncio.gather(*(session.close() for session in list(self._open)))
