"""The base class of games of several seats, in turns or rounds.

The author writes the rules (`GameRules`): who moves, which actions are legal, what they change, what each seat sees and
is paid. This module has the seats and their barrier, refusals, held-back results, default actions, leaving, messages,
snapshots and closing results.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Mapping
from dataclasses import replace

from wsap_core.authoring.packing import WRONG_DATA, pack, unpack
from wsap_core.authoring.rules import OUT, OVER, GameRules
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Observation, View
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context
from wsap_core.worlds.barrier import Barrier, Results
from wsap_core.worlds.legality import check_action
from wsap_core.worlds.mailbox import Mailbox


class RoundGame(GameRules, keeps={}):
    """A game of several seats; override the methods of `GameRules`.

    Its abilities are `seed`, `snapshot` and `multi-seat`, with `talks` also `messages`, and with a `render()` for
    spectators also `render`. A subclass' `__init__` sets what `begin` needs, then calls this one.
    """

    def __init__(self, context: Context | None = None) -> None:
        self._place((context or Context()).seed, -1, 0, {}, set())
        if self.talks:
            self.mailbox = Mailbox(self.seats, team_of=self.team_of, immediate=self.timing == "free")
        self._taken: dict[str, str] = {}
        self._turns = asyncio.Lock()  # with `free` timing
        self._barrier = Barrier(
            self.seats,
            self._resolve,
            self.default_action,
            observe=self.observation,
            expects=lambda: self._named,
            out=lambda seat: self.done(seat),
        )
        self.reset()

    # --- the world --------------------------------------------------------------------------------

    def unpacked(self, data: bytes) -> dict[str, JsonValue]:
        """Return the state in a snapshot; override it to read older versions."""
        return unpack(self._header, data, type(self).__name__, self.largest_snapshot)

    def forced(self) -> frozenset[str]:
        """Return, within `apply`, the seats that missed the deadline and take their default action."""
        return frozenset(seat for number, seat, _ in self._barrier.forced if number == self._barrier.round)

    def reset(self, seed: int | None = None) -> Observation:
        """Start an episode of the seed, or the next of the current one; return what the first seat sees."""
        now = (self.seed, self.episode + 1) if seed is None else (seed, 0)
        self._place(*now, 0, dict.fromkeys(self.seats, 0.0), set())
        self.begin()
        self._named = self._asked_now()
        self._barrier.restart()
        if self.talks:
            self.mailbox.clear()
        return self.observation(self.seats[0])

    def seat(self, agent_id: str) -> RoundSeat:
        """Return an agent's seat: the one of its name, or else the first free one; `UsageError` if all are taken."""
        place = agent_id if agent_id in self.seats else self._taken.get(agent_id)
        place = place or next((s for s in self.seats if s not in self._taken.values()), None)
        if place is None:
            raise UsageError(f"All {len(self.seats)} seats of this game are taken.")
        self._taken[agent_id] = place
        return RoundSeat(self, place)

    def leave(self, agent_id: str) -> None:
        """Let an agent leave; its seat plays its default action from now on."""
        seat = agent_id if agent_id in self.seats else self._taken.get(agent_id)
        if seat is not None:
            self._barrier.leave(seat, replaced=True)

    def expire(self) -> tuple[str, ...]:
        """Take the default actions of the seats that this round still waits for, and return these seats."""
        return () if self.timing == "free" else self._barrier.expire()

    def observe(self) -> Observation:
        """Raise `UsageError`: only seats observe."""
        raise UsageError(f"This game has several seats; observe through seat({self.seats[0]!r}) and so on.")

    def act(self, action: Action) -> ActionResult:
        """Raise `UsageError`: only seats act."""
        raise UsageError(f"This game has several seats; act through seat({self.seats[0]!r}) and so on.")

    def snapshot(self) -> bytes:
        """Return the whole state, without the moves of an incomplete round."""
        return self._before or self._packed(self.round)

    def _packed(self, number: int) -> bytes:
        state = {"seed": [self.seed, self.episode], "round": number, "paid": self._paid, "told": sorted(self._told)}
        return pack(self._header, {**state, "game": self.dump()})

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is not a valid one of this game, and nothing has changed."""
        before = self.snapshot()
        try:
            self._restore(self.unpacked(data))
        except (*WRONG_DATA, SnapshotError) as error:
            self._restore(unpack(self._header, before, "", self.largest_snapshot))
            if isinstance(error, SnapshotError):
                raise
            raise SnapshotError(f"The snapshot of {type(self).__name__} is damaged: {error}.") from error
        self._barrier.restart(round_number=self.round)

    def _restore(self, state: Mapping[str, JsonValue]) -> None:
        (seed, episode), number, told, given = (state[name] for name in ("seed", "round", "told", "paid"))
        paid = {seat: float(given.get(seat, 0.0)) for seat in self.seats}
        if not all(type(n) is int for n in (seed, episode, number)) or number < 0 or not set(told) <= set(self.seats):
            raise ValueError("the seed, the round or the seats told of the end are invalid")
        # The author's methods may ask for all of this, so none of them is called before.
        self._place(seed, episode, number, paid, set(told))
        self.load(state["game"])
        if not set(self.seats) <= set(given):  # the game itself may have said better why it does not fit
            raise ValueError("the pay of a seat is missing")
        named, returns = self._asked_now(), self.returns()
        if not set(named) <= set(self.seats) or not all(map(math.isfinite, (*paid.values(), *returns.values()))):
            raise ValueError("the seats to move or their pay are invalid")
        self._named = named
        for seat in self.seats:
            self.observation(seat)  # raises if the state is inconsistent

    def _place(self, seed: int, episode: int, number: int, paid: dict[str, float], told: set[str]) -> None:
        """Set all that the kit knows of an episode, and forget what it knew of another, before the game sets its own
        state; `told` are the seats with a result that is `done`."""
        self.seed, self.episode, self.round = seed, episode, number
        self._paid, self._told, self._named = paid, told, ()
        self._random = None
        self._before: bytes | None = None

    # --- for the seats ----------------------------------------------------------------------------

    async def turn(self, seat: str) -> None:
        """Wait until a seat can decide, or the game is over for it."""
        if self.timing != "free":
            await self._barrier.turn(seat)

    async def play(self, seat: str, action: Action) -> ActionResult:
        """Carry out a seat's action; return its result when the seat can decide again or the game is over for it."""
        if self.timing == "free":
            async with self._turns:
                return await self._play(seat, action)
        await self._barrier.settled()
        return await self._play(seat, action)

    async def _play(self, seat: str, action: Action) -> ActionResult:
        action, why = check_action(action, self._declared)
        asked = seat in self._named if self.timing == "free" else seat in self._barrier.expected
        tool = not why and self._declared[action.name].is_tool
        if tool and not asked:
            why = OUT if self._is_out(seat) else OVER if self.done(seat) else "It is not your turn."
        if asked and not why and not tool:
            why = self.refusal(seat, action)
        if why:
            return ActionResult(False, why, done=self.done(seat), observation=self.observation(seat))
        if tool:
            return ActionResult(*self.look_up(seat, action), observation=self.observation(seat))
        if self.done(seat) and seat not in self._told and any(seat == late for _, late, _ in self._barrier.forced):
            return replace(self._tell(seat), success=False)  # it missed the deadline at which the game ended
        if not asked and self._is_out(seat):
            return ActionResult(False, OUT, done=True, observation=self.observation(seat))
        if self.timing != "free":
            return await self._barrier.act(seat, action)
        if not asked:
            return ActionResult(False, OVER, done=True, observation=self.observation(seat))
        results = self._resolve({seat: action})
        if inspect.isawaitable(results):
            await results
        return self._tell(seat)

    def closing_result(self, seat: str) -> ActionResult | None:
        """Return the last result of a seat for which the game ended without its action; None for others."""
        return self._result(seat) if self.done(seat) and seat not in self._told else None

    def _resolve(self, moves: Mapping[str, Action]) -> Results | Awaitable[Results]:
        self.round, self._random = self.round + 1, None
        applied = self.apply(moves)
        if inspect.isawaitable(applied):
            self._before = self._packed(self.round - 1)
            return self._resolve_later(applied)
        return self._results()

    async def _resolve_later(self, applied: Awaitable[None]) -> Results:
        await applied
        self._before = None
        return self._results()

    def _results(self) -> Results:
        """End a round, and return the results of the seats that acted and are to get theirs now."""
        self._named = self._asked_now()
        if self.talks:
            self.mailbox.deliver()
        ready = {*self._named, *self.hears()} if self._named else set(self.seats)
        return {seat: self._tell(seat) for seat in self._barrier.held if seat in ready or self.done(seat)}

    def _tell(self, seat: str) -> ActionResult:
        result = self._result(seat)
        self._paid[seat] += result.reward
        if result.done:
            self._told.add(seat)
        return result

    def _result(self, seat: str) -> ActionResult:
        pay, done = self.returns()[seat] - self._paid[seat], self.done(seat)
        words, earned, cut = self.message(seat, pay), tuple(self.achieved(seat)), done and self.truncated(seat)
        return ActionResult(True, words, pay, earned, done, self.observation(seat), truncated=cut)

    @property
    def _header(self) -> bytes:
        return f"WSAP {type(self).__name__} 1\n".encode()


class RoundSeat:
    """A `RoundGame` as one agent sees it."""

    def __init__(self, game: RoundGame, name: str) -> None:
        self.game = game
        self.name = name

    @property
    def game_description(self) -> str:
        """See `GameRules.describe`."""
        return self.game.describe(self.name)

    @property
    def action_space(self) -> ActionSpace:
        """See `GameRules.actions_of`."""
        return self.game.actions_of(self.name)

    async def observe(self) -> Observation:
        """Return what the seat sees when it can decide, or the game is over for it."""
        await self.game.turn(self.name)
        return self.game.observation(self.name)

    async def act(self, action: Action) -> ActionResult:
        """See `RoundGame.play`."""
        return await self.game.play(self.name, action)

    def closing_result(self) -> ActionResult | None:
        """See `RoundGame.closing_result`."""
        return self.game.closing_result(self.name)

    def default_action(self) -> Action:
        """See `GameRules.default_action`."""
        return self.game.default_action(self.name)

    def render(self) -> View:
        """See `GameRules.picture`."""
        return self.game.picture(self.name)

    def reset(self) -> Observation:
        """Raise `UsageError`: only the world can be reset."""
        raise UsageError("One seat can't reset a shared game; reset the world.")
