"""The base of a game of several seats, in turns or rounds: the author writes the rules, the kit does the rest.

The author says who moves now, which actions are legal, what the moves change, what each seat sees and what it
has been paid. The kit has the seats and their barrier, refusals, results that are held back until a seat is asked
again, default actions, leaving, messages, snapshots, and the last pay of each seat.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Awaitable, Mapping
from dataclasses import replace

from wsap_core.authoring.packing import WRONG_DATA, pack, unpack
from wsap_core.authoring.rules import OVER, GameRules
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.protocol import Action, ActionResult, ActionSpace, Observation, View
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.context import Context
from wsap_core.worlds.barrier import Barrier, Results
from wsap_core.worlds.legality import check_action
from wsap_core.worlds.mailbox import Mailbox


class RoundGame(GameRules):
    """A game of several seats; override `begin` to `load` always, the methods after them as needed.

    It has the abilities `seed`, `snapshot` and `multi-seat`, with `talks` also `messages`, and with a `render()`
    for spectators also `render`. An author's `__init__` sets what `begin` needs, then calls this one.
    """

    def __init__(self, context: Context | None = None) -> None:
        self.round, self.seed, self.episode = 0, (context or Context()).seed, -1
        if self.talks:
            self.mailbox = Mailbox(self.seats, team_of=self.team_of, immediate=self.timing == "free")
        self._taken: dict[str, str] = {}
        self._turns = asyncio.Lock()  # with `free` timing
        self._before: bytes | None = None
        self._barrier = Barrier(
            self.seats, self._resolve, self.default_action, observe=self.observation, expects=lambda: self._named
        )
        self.reset()

    # --- the world --------------------------------------------------------------------------------

    def unpacked(self, data: bytes) -> dict[str, JsonValue]:
        """Return what a snapshot holds; override it to read those of older versions."""
        return unpack(self._header, data, type(self).__name__, self.largest_snapshot)

    def forced(self) -> frozenset[str]:
        """Return, inside `apply`, the seats that missed a deadline and move by default."""
        return frozenset(seat for number, seat, _ in self._barrier.forced if number == self._barrier.round)

    def reset(self, seed: int | None = None) -> Observation:
        """Begin an episode, of the seed or the next of the world's own; return what the first seat sees."""
        self.seed, self.episode = (self.seed, self.episode + 1) if seed is None else (seed, 0)
        self.round = 0
        self._paid = dict.fromkeys(self.seats, 0.0)
        self._told: set[str] = set()  # seats that a result has told the end
        self._random = self._before = None
        self.begin()
        self._named = tuple(self.to_move())
        self._barrier.restart()
        if self.talks:
            self.mailbox.clear()
        return self.observation(self.seats[0])

    def seat(self, agent_id: str) -> RoundSeat:
        """Return the game as one agent sees it; an agent that is not named like a seat takes the first free one.

        Raises:
            UsageError: all seats are taken by others.
        """
        place = agent_id if agent_id in self.seats else self._taken.get(agent_id)
        place = place or next((s for s in self.seats if s not in self._taken.values()), None)
        if place is None:
            raise UsageError(f"All {len(self.seats)} seats of this game are taken.")
        self._taken[agent_id] = place
        return RoundSeat(self, place)

    def leave(self, agent_id: str) -> None:
        """Let an agent leave: its seat plays its default action from now on."""
        seat = agent_id if agent_id in self.seats else self._taken.get(agent_id)
        if seat is not None:
            self._barrier.leave(seat, replaced=True)

    def expire(self) -> tuple[str, ...]:
        """End the time for this round: who has not moved does its default action. Return these seats."""
        return () if self.timing == "free" else self._barrier.expire()

    def observe(self) -> Observation:
        """Raise `UsageError`: there are several seats; ask one of them."""
        raise UsageError(f"This game has several seats; observe through seat({self.seats[0]!r}) and so on.")

    def act(self, action: Action) -> ActionResult:
        """Raise `UsageError`: there are several seats; ask one of them."""
        raise UsageError(f"This game has several seats; act through seat({self.seats[0]!r}) and so on.")

    def snapshot(self) -> bytes:
        """Return the whole state; moves of a round that is not complete are made again."""
        return self._before or self._packed(self.round)

    def _packed(self, number: int) -> bytes:
        state = {"seed": [self.seed, self.episode], "round": number, "paid": self._paid, "told": sorted(self._told)}
        return pack(self._header, {**state, "game": self.dump()})

    def restore(self, data: bytes) -> None:
        """Restore a snapshot.

        Raises:
            SnapshotError: it is none of this game; nothing has changed.
        """
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
        (seed, episode), number, told = state["seed"], state["round"], state["told"]
        self.load(state["game"])  # first, since the game knows best whether the snapshot is one of another game
        paid = {seat: float(state["paid"][seat]) for seat in self.seats}
        if not all(type(n) is int for n in (seed, episode, number)) or number < 0 or not set(told) <= set(self.seats):
            raise ValueError("the seed, the round or who was told the end can't be so")
        named, returns = tuple(self.to_move()), self.returns()
        if not set(named) <= set(self.seats) or not all(map(math.isfinite, (*paid.values(), *returns.values()))):
            raise ValueError("who moves or what was paid can't be so")
        self.seed, self.episode, self.round, self._paid, self._named = seed, episode, number, paid, named
        self._told, self._before = set(told), None
        for seat in self.seats:
            self.observation(seat)  # raises where the state does not hold together

    # --- for the seats ----------------------------------------------------------------------------

    async def turn(self, seat: str) -> None:
        """Wait until a seat can decide or the game is over for it."""
        if self.timing != "free":
            await self._barrier.turn(seat)

    async def play(self, seat: str, action: Action) -> ActionResult:
        """Take a seat's action; return its result when the seat is asked again or the game is over for it."""
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
            why = OVER if self.done(seat) else "It is not your turn."
        if asked and not why and not tool:
            why = self.refusal(seat, action)
        if why:
            return ActionResult(False, why, done=self.done(seat), observation=self.observation(seat))
        if tool:
            success, message = self.look_up(seat, action)
            return ActionResult(success, message, observation=self.observation(seat))
        if self.done(seat) and seat not in self._told and any(seat == late for _, late, _ in self._barrier.forced):
            return replace(self._tell(seat), success=False)  # it missed the deadline at which the game ended
        if self.timing != "free":
            return await self._barrier.act(seat, action)
        if not asked:
            return ActionResult(False, OVER, done=True, observation=self.observation(seat))
        results = self._resolve({seat: action})
        if inspect.isawaitable(results):
            await results
        return self._tell(seat)

    def closing_result(self, seat: str) -> ActionResult | None:
        """Return the last result of a seat for which the game ended without an action of its own; None for others."""
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
        """Conclude a round, and give the results of those who acted through the barrier and are to hear of it now."""
        self._named = tuple(self.to_move())
        if self.talks:
            self.mailbox.deliver()
        ready = {*self._named, *self.hears()} if self._named else set(self.seats)
        return {seat: self._tell(seat) for seat in self._barrier.held if seat in ready}

    def _tell(self, seat: str) -> ActionResult:
        result = self._result(seat)
        self._paid[seat] += result.reward
        if result.done:
            self._told.add(seat)
        return result

    def _result(self, seat: str) -> ActionResult:
        pay = self.returns()[seat] - self._paid[seat]
        words, earned = self.message(seat, pay), tuple(self.achieved(seat))
        return ActionResult(True, words, pay, earned, self.done(seat), self.observation(seat))

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
        """The rules, and who this is."""
        return self.game.describe(self.name)

    @property
    def action_space(self) -> ActionSpace:
        """All actions of the game."""
        return self.game.actions_of(self.name)

    async def observe(self) -> Observation:
        """Return what the seat sees at its next decision, or when the game is over for it."""
        await self.game.turn(self.name)
        return self.game.observation(self.name)

    async def act(self, action: Action) -> ActionResult:
        """Move, and return the result when the seat is asked again or the game is over for it."""
        return await self.game.play(self.name, action)

    def closing_result(self) -> ActionResult | None:
        """Return the last pay of a seat for which the game ended without an action of its own."""
        return self.game.closing_result(self.name)

    def default_action(self) -> Action:
        """Return what is done if the agent is late."""
        return self.game.default_action(self.name)

    def render(self) -> View:
        """Return what the seat sees, drawn."""
        return self.game.picture(self.name)

    def reset(self) -> Observation:
        """Raise `UsageError`: one agent can't reset a game of several."""
        raise UsageError("One seat can't reset a shared game; reset the world.")
