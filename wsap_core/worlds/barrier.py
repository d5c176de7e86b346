"""Collects the actions of the seats that move in a round: one in turn, several at once, or some of them."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from wsap_core.errors import WorldError
from wsap_core.protocol import Action, ActionResult, Observation
from wsap_core.worlds.waiting import Waiting

T = TypeVar("T")
Results = Mapping[str, ActionResult]
Resolve = Callable[[Mapping[str, Action]], Results | Awaitable[Results]]
"""Carries out the actions of a round (in the order of the seats) and returns the results by seat. A seat without a
result keeps waiting for that of a later round. May be `async` and slow."""

Expects = Callable[[], Sequence[str]]
"""Returns the seats that the next round waits for; none when the game is over."""


class Barrier:
    """Resolves a round once all seats that the world expects have acted.

    Actions are resolved in the order of `seats`, whatever the order of their arrival. At a deadline, `expire` takes the
    `default_action` of the missing seats; a late action is refused, with the seat's state from `observe`.

    `expects` names the seats of each round. It is called on the first use after the creation or a `restart`, and after
    each resolution. The round is resolved once all of these have acted or left, without any action if all have left for
    good. All other seats wait in `turn`. A seat whose result is held back can't act, so it must get that result before
    it is named. When no seat is named, the game is over: `turn` returns at once, and results still held back are
    replaced by one that says so. A seat that is `out` does not wait in `turn`, although the others play on.

    During an asynchronous `resolve`, actions and `turn` wait for its end, leaving takes effect after it, and a deadline
    forces nobody. If it fails, all who wait and all later calls get its error.

    Raises:
        WorldError: there are no seats. Later, at the end of a round: `expects` named an unknown seat, or one whose
            result is held back.
    """

    def __init__(
        self,
        seats: Sequence[str],
        resolve: Resolve,
        default_action: Callable[[str], Action],
        *,
        observe: Callable[[str], Observation],
        expects: Expects,
        out: Callable[[str], bool] = lambda seat: False,
    ) -> None:
        if not seats:
            raise WorldError("A world needs at least one seat to wait for.")
        self._order = tuple(seats)
        self._active = list(seats)
        self._absent: set[str] = set()
        self._resolve = resolve
        self._default_action = default_action
        self._observe = observe
        self._expects = expects
        self._out = out
        self._named: tuple[str, ...] | None = None  # by `expects` for this round; None before the call
        self._submitted: dict[str, Action] = {}
        self._results: dict[str, asyncio.Future[ActionResult]] = {}
        self._shown: dict[str, int] = {}  # seat -> the last round it saw, by `turn` or a result
        self._open = asyncio.Event()
        self._resolving: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._leaving: dict[str, bool] = {}  # seats that left during a resolution -> whether they are replaced
        self._waiting = Waiting()
        self.round = 0
        """The number of resolved rounds."""
        self.forced: list[tuple[int, str, Action]] = []
        """(round, seat, action) for each default action since the last `restart`."""

    @property
    def expected(self) -> tuple[str, ...]:
        """The seats that have yet to act in this round."""
        return tuple(s for s in self._asked() if s in self._active and s not in self._submitted)

    @property
    def held(self) -> tuple[str, ...]:
        """The seats that have acted and wait for the result."""
        return tuple(s for s in self._order if s in self._results and not self._results[s].done())

    @property
    def over(self) -> bool:
        """Whether the game is over."""
        return not self._asked()

    async def settled(self) -> None:
        """Wait until no round is being resolved; raises what a failed resolution raised."""
        while self._resolving is not None:
            self._open.clear()
            await self._wait(self._open.wait())
        if self._failure is not None:
            raise self._failure

    async def turn(self, seat: str) -> int:
        """Wait until the seat can decide, has left or is out, or the game is over, and return the round."""
        await self.settled()
        while self._waits(seat):
            self._open.clear()
            await self._wait(self._open.wait())
            await self.settled()
        self._shown[seat] = self.round
        return self.round

    def _waits(self, seat: str) -> bool:
        there = seat in self._active and seat not in self._absent
        return there and seat not in self.expected and not self.over and not self._out(seat)

    async def act(self, seat: str, action: Action, *, round_seen: int | None = None) -> ActionResult:
        """Submit a seat's legal action and return its result once the round is resolved. An action for an earlier round
        is refused; `round_seen` is its round, by default the last one that the seat saw by `turn` or a result."""
        if round_seen is None and seat not in self._submitted:
            round_seen = self._shown.get(seat)
        await self.settled()
        if seat not in self._active or seat in self._absent:
            return ActionResult(False, "You have left this world.", done=True, observation=self._observe(seat))
        if self.over:
            return self._game_over(seat)
        round_seen = self._shown.get(seat) if round_seen is None else round_seen
        self._shown[seat] = self.round
        if round_seen is not None and round_seen != self.round:
            message = "Too late: the round went on without you, with the default action in your place."
            return ActionResult(False, message, observation=self._observe(seat))
        if seat not in self.expected:
            message = "You have acted already." if seat in self._submitted else "It is not your turn."
            return ActionResult(False, message, observation=self._observe(seat))
        self._results[seat] = future = asyncio.get_running_loop().create_future()
        self._submitted[seat] = action
        self._resolve_if_complete()
        return await self._wait(future)

    def expire(self) -> tuple[str, ...]:
        """Take the default actions of the seats that this round still waits for, and return these seats."""
        missing = self.expected
        for seat in missing:
            action = self._default_action(seat)
            self._submitted[seat] = action
            self.forced.append((self.round, seat, action))
        self._resolve_if_complete()
        return missing

    def leave(self, seat: str, *, replaced: bool = False) -> None:
        """Stop waiting for a seat for good; a `replaced` one plays its default action from now on."""
        if seat not in self._active or seat in self._absent:
            return
        if self._resolving is not None:
            self._leaving.setdefault(seat, replaced)
            return
        if replaced:
            self._absent.add(seat)
        else:
            self._active.remove(seat)
            self._submitted.pop(seat, None)
        future = self._results.pop(seat, None)
        if future is not None and not future.done():
            observation = self._observe(seat)
            future.set_result(ActionResult(False, "You have left this world.", done=True, observation=observation))
        self._open.set()
        self._resolve_if_complete()

    def restart(self, *, round_number: int = 0) -> None:
        """Discard the unresolved round and bring back all seats; for resets and restored snapshots."""
        if self._resolving is not None:
            self._resolving.cancel()
        self._settle()
        self._failure = None
        for future in self._results.values():
            future.cancel()
        self._results.clear()
        self._submitted.clear()
        self._shown.clear()
        self._active = list(self._order)
        self._absent.clear()
        self._named = None
        self.round = round_number
        self.forced.clear()
        self._open.set()

    def _resolve_if_complete(self) -> None:
        """Resolve all complete rounds; absent seats act at once, as long as any seat is present."""
        while self._resolving is None and self._failure is None and len(self._absent) < len(self._active):
            for seat in self.expected:
                if seat in self._absent:
                    self._submitted[seat] = self._default_action(seat)
            before = self.round
            self._resolve_round()
            if self.round == before:
                return

    def _asked(self) -> tuple[str, ...]:
        """Return the seats named for this round, in order, without those that had left before."""
        if self._named is None:
            named = tuple(self._expects())
            unknown = [s for s in named if s not in self._order]
            if unknown:
                raise WorldError(f"The world waits for {unknown[0]!r}, which is not one of its seats.")
            held = [s for s in self.held if s in named]
            if held:
                raise WorldError(f"The world waits for {held[0]!r} without having given it its last result.")
            self._named = tuple(s for s in self._order if s in named and s in self._active)
        return self._named

    def _game_over(self, seat: str) -> ActionResult:
        return ActionResult(False, "The game is over.", done=True, observation=self._observe(seat))

    def _resolve_round(self) -> None:
        if not self._active or self.over or self.expected:
            return
        actions = {s: self._submitted[s] for s in self._order if s in self._submitted}
        results = self._resolve(actions)
        if inspect.isawaitable(results):
            self._resolving = asyncio.create_task(self._resolve_later(results))
            self._waiting.for_world(True)
        else:
            self._give(results)

    async def _resolve_later(self, resolving: Awaitable[Results]) -> None:
        """Await the results of a round and hand them out, then let seats leave that wanted to meanwhile."""
        me = asyncio.current_task()
        try:
            results = await resolving
        except BaseException as error:
            if self._resolving is me:
                self._fail(error if isinstance(error, Exception) else WorldError("The round was never resolved."))
            if not isinstance(error, Exception):
                raise
            return
        try:
            if self._resolving is me:  # else it was restarted meanwhile
                leaving = self._settle()
                self._give(results)
                for seat, replaced in leaving.items():
                    self.leave(seat, replaced=replaced)
                self._resolve_if_complete()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Make all current and later calls raise the error of a resolution."""
        self._settle()
        self._failure = error
        for future in self._results.values():
            if not future.done():
                future.set_exception(error)
        self._open.set()

    def _give(self, results: Results) -> None:
        """Hand out the results and start the next round."""
        waiting, self._results = self._results, {}
        self._submitted = {}
        self.round += 1
        for seat, future in waiting.items():
            if seat not in results:
                self._results[seat] = future
            elif not future.done():
                self._shown[seat] = self.round
                future.set_result(results[seat])
        self._named = None
        if not self._asked():
            held, self._results = self._results, {}
            for seat, future in held.items():
                if not future.done():
                    future.set_result(self._game_over(seat))
        self._open.set()

    def _settle(self) -> dict[str, bool]:
        """End a resolution, and return the seats that wanted to leave meanwhile."""
        leaving, self._leaving, self._resolving = self._leaving, {}, None
        self._waiting.for_world(False)
        return leaving

    async def _wait(self, event: Awaitable[T]) -> T:
        """Await something; cancel a resolution that nobody waits for any more."""
        try:
            with self._waiting():
                return await event
        except asyncio.CancelledError:
            if self._resolving is not None and not self._waiting:
                self._resolving.cancel()
            raise
