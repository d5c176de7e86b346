"""How a world with several seats waits for those that move now: one in turn, several at once, or some of them."""

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
"""Carries out the actions of a round, by seat in the world's order, and gives each seat its result.

A seat that it leaves out goes on waiting: a later round gives its result. It may be asynchronous, and take its time.
"""

Expects = Callable[[], Sequence[str]]
"""Gives the seats that the next round waits for; none when the game is over."""


class Barrier:
    """Lets each seat act when it is asked, and resolves a round once all that are asked have acted.

    The order in which actions arrive never matters: they are resolved in the order of `seats`. Whoever keeps the time
    calls `expire` at a deadline; seats that have not acted then get their `default_action`, and an action that comes
    too late is refused as a result, with the seat's present state from `observe`.

    The world names by `expects` the seats of each round: all, the one whose turn it is, one speaker by day and some by
    night. It is asked when the barrier is first used after its making or a `restart`, and after each resolution. The
    round is resolved once all of these have acted or left; without any action if all have left for good. Who is not
    named waits in `turn`. A seat whose result is held back can't act, so whatever names it gives it its result first.
    When nobody is named the game is over: `turn` returns at once, and a result that the last resolution still holds
    back is replaced by one that says so, so that nobody waits for ever.

    While an asynchronous `resolve` is under way, whoever acts or asks for its turn waits until it is over, and
    whoever leaves has left after it. A deadline that passes meanwhile forces nobody: all have acted. If it fails,
    all who wait and whoever comes later are told so by its error.

    Raises:
        WorldError: there are no seats. Later, from whatever ends a round: `expects` named somebody
            who has no seat, or whose result is held back.
    """

    def __init__(
        self,
        seats: Sequence[str],
        resolve: Resolve,
        default_action: Callable[[str], Action],
        *,
        observe: Callable[[str], Observation],
        expects: Expects,
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
        self._named: tuple[str, ...] | None = None  # by `expects`, for this round; None before it was asked
        self._submitted: dict[str, Action] = {}
        self._results: dict[str, asyncio.Future[ActionResult]] = {}
        self._shown: dict[str, int] = {}  # the round that a seat saw last, by its turn or its result
        self._open = asyncio.Event()
        self._resolving: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._leaving: dict[str, bool] = {}  # who asked to leave during a resolution, and whether it is replaced
        self._waiting = Waiting()
        self.round = 0
        """How many rounds have been resolved."""
        self.forced: list[tuple[int, str, Action]] = []
        """(round, seat, action) for each default action that was taken since the last `restart`."""

    @property
    def expected(self) -> tuple[str, ...]:
        """The seats that have yet to act before the round is resolved."""
        return tuple(s for s in self._asked() if s in self._active and s not in self._submitted)

    @property
    def held(self) -> tuple[str, ...]:
        """The seats that have acted and still wait for the result."""
        return tuple(s for s in self._order if s in self._results and not self._results[s].done())

    @property
    def over(self) -> bool:
        """Whether the world waits for nobody any more."""
        return not self._asked()

    async def settled(self) -> None:
        """Return once no round is being resolved.

        Raises:
            Exception: whatever the resolution raised.
        """
        while self._resolving is not None:
            self._open.clear()
            await self._wait(self._open.wait())
        if self._failure is not None:
            raise self._failure

    async def turn(self, seat: str) -> int:
        """Wait until the seat can decide, has left or the game is over, and return the round it decides in."""
        await self.settled()
        while seat in self._active and seat not in self._absent and seat not in self.expected and not self.over:
            self._open.clear()
            await self._wait(self._open.wait())
            await self.settled()
        self._shown[seat] = self.round
        return self.round

    async def act(self, seat: str, action: Action, *, round_seen: int | None = None) -> ActionResult:
        """Submit a seat's legal action and return its result once the round is resolved.

        An action decided in a round that has been resolved without it is refused; that round is `round_seen`, or
        else the one of which the seat was last told, by `turn` or by a result.
        """
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
        """End the time for this round: missing seats get their default action. Return who was forced."""
        missing = self.expected
        for seat in missing:
            action = self._default_action(seat)
            self._submitted[seat] = action
            self.forced.append((self.round, seat, action))
        self._resolve_if_complete()
        return missing

    def leave(self, seat: str, *, replaced: bool = False) -> None:
        """Stop waiting for a seat, for good; one that is `replaced` goes on playing its default action."""
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
        """Forget an unresolved round, and who has left; for resets and restored snapshots."""
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
        """Resolve as many rounds as can be: the absent act at once, as long as somebody is present."""
        while self._resolving is None and self._failure is None and len(self._absent) < len(self._active):
            for seat in self.expected:
                if seat in self._absent:
                    self._submitted[seat] = self._default_action(seat)
            before = self.round
            self._resolve_round()
            if self.round == before:
                return

    def _asked(self) -> tuple[str, ...]:
        """Return whom the world named for this round, in order, less those who had left when it was asked."""
        if self._named is None:
            named = tuple(self._expects())
            unknown = [s for s in named if s not in self._order]
            if unknown:
                raise WorldError(f"The world waits for {unknown[0]!r}, which is none of its seats.")
            held = [s for s in self.held if s in named]
            if held:
                raise WorldError(f"The world waits for {held[0]!r} and has not given it its last result.")
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
        """Wait for the results of a round, give them, and let those go on who have waited with what they wanted."""
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
            if self._resolving is me:  # or it was restarted meanwhile
                leaving = self._settle()
                self._give(results)
                for seat, replaced in leaving.items():
                    self.leave(seat, replaced=replaced)
                self._resolve_if_complete()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Tell everybody, now or when they come, that a round can't be resolved."""
        self._settle()
        self._failure = error
        for future in self._results.values():
            if not future.done():
                future.set_exception(error)
        self._open.set()

    def _give(self, results: Results) -> None:
        """End the round: give the results, and go on to the next."""
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
        """Be done with a resolution, and return who wanted to leave meanwhile."""
        leaving, self._leaving, self._resolving = self._leaving, {}, None
        self._waiting.for_world(False)
        return leaving

    async def _wait(self, event: Awaitable[T]) -> T:
        """Wait for something; a resolution that nobody waits for any more is given up."""
        try:
            with self._waiting():
                return await event
        except asyncio.CancelledError:
            if self._resolving is not None and not self._waiting:
                self._resolving.cancel()
            raise
