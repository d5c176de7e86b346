"""Worlds stepped by plain function calls: for loops of researchers, without a record.

    world = Driven("crafter")
    seen = world.reset(seed=7)
    result = world.step(Action("move_left")).result

    table = DrivenTable("matrix")
    table.reset(seed=7)
    told = table.step({seat: Action("cooperate") for seat in table.ready})

A world is stepped in an event loop of its own, which costs some 10 µs a call. Where a loop is running already, as in a
notebook, that is in a thread.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.protocol import Action, ActionSpace, Observation, View
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context
from wsap_core.seams.options import Options, check_used
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import GAME_OVER, Outcome, World
from wsap_core.worlds.seat import Seat
from wsap_core.worlds.waiting import TOLD_OF_WAITING

T = TypeVar("T")

SEAT = "seat-1"

_CALM = 8
"""Turns of the event loop without news after which each seat is known to wait: a seat that is woken needs some."""


def spec_of(game: str | AdapterSpec, options: Mapping[str, Any] | None, host: PluginHost | None = None) -> AdapterSpec:
    """Return the spec of a game with options; UsageError if it can't be stepped from outside."""
    spec = game if isinstance(game, AdapterSpec) else load_adapter_spec(game, host or PluginHost.discovered())
    spec = spec.with_options(dict(options or {}))
    if spec.asks_models or "lives" in spec.abilities:
        raise UsageError(f"{spec.display_title} goes on by itself, so it can't be stepped from outside.")
    return spec


class _Stepped:
    """A world in an event loop of its own."""

    _world: World

    def __init__(self, spec: AdapterSpec, options: Mapping[str, Any] | None) -> None:
        self._given, self._spec = dict(options or {}), spec
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._closing = ExitStack()
        weakref.finalize(self, self._closing.close)  # few loops close their environments

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        return self._world.spec

    def snapshot(self) -> bytes:
        """Return the whole state; `SnapshotError` if the game has no snapshots."""
        return self._world.snapshot()

    def close(self) -> None:
        """Close the game, and the loop or thread in which it was stepped."""
        self._let_go()
        self._closing.close()

    def _made(self, seed: int) -> World:
        own = Options(self._given)
        world = World.create(self._spec, Context.create(seed, config=own))
        check_used(f"The game {self._spec.name!r}", own)
        return world

    def _let_go(self) -> None:
        close = getattr(self._world.adapter, "close", None)
        if callable(close):
            close()

    # --- in a loop of its own -------------------------------------------------------------------

    def _call(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if asyncio._get_running_loop() is None:
            return self._carry_out(begin)
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="wsap-driven")
            self._closing.callback(self._thread.shutdown)
        return self._thread.submit(self._carry_out, begin).result()

    def _carry_out(self, begin: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._closing.callback(_ended, self._loop)
        return self._loop.run_until_complete(begin())


def _ended(loop: asyncio.AbstractEventLoop) -> None:
    """Close a loop; what still waits in it is cancelled."""
    waiting = asyncio.all_tasks(loop)
    for task in waiting:
        task.cancel()
    if waiting:
        loop.run_until_complete(asyncio.gather(*waiting, return_exceptions=True))
    loop.close()


class Driven(_Stepped):
    """A world of one seat.

    Args:
        game: a registered game, `./file.py:Name`, or its spec.
        options: options of the game.
        seed: the seed of the world until `reset` gets one.
        host: resolves the game's name; None for all installed plugins.

    Raises:
        UsageError: the game needs several seats or language models, or goes on by itself.
        WsapError: the game can't be created, or an option is invalid.
    """

    def __init__(
        self,
        game: str | AdapterSpec,
        options: Mapping[str, Any] | None = None,
        *,
        seed: int = 0,
        host: PluginHost | None = None,
    ) -> None:
        spec = spec_of(game, options, host)
        if spec.seats[0] > 1:
            raise UsageError(
                f"{spec.display_title} needs {spec.seats[0]} players, so it can't be stepped by one alone."
            )
        super().__init__(spec, options)
        self._seat: Seat | None = None
        self._world = self._made(seed)

    @property
    def action_space(self) -> ActionSpace:
        """All actions of the game."""
        return self._opened().action_space

    @property
    def description(self) -> str:
        """The game, its goals and mechanics."""
        return self._opened().game_description

    @property
    def done(self) -> bool:
        """Whether the episode is over."""
        return self._seat is not None and (self._seat.done or self._seat.left is not None)

    def reset(self, seed: int | None = None) -> Observation:
        """Start an episode and return what is seen: the first of a new world of a seed, or without one the next of this
        world, where bodies may have aged."""
        if seed is not None:
            self._let_go()
            self._world = self._made(seed)
        self._call(lambda: self._world.reset(seed))
        return self.observe()

    def observe(self) -> Observation:
        """Return what is seen now."""
        return self._call(self._opened().observe)

    def step(self, action: Action) -> Outcome:
        """Carry out an action and return its outcome; `WorldError` if the game fails."""
        return self._call(lambda: self._opened().step(action))

    def look(self) -> View | None:
        """Return a view of what is seen; None if the game has none."""
        return self._call(self._opened().look)

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is damaged or of another game."""
        self._opened()
        self._world.restore(data)

    def _let_go(self) -> None:
        self._seat = None
        super()._let_go()

    def _opened(self) -> Seat:
        if self._seat is None:
            self._seat = self._world.open_seat(SEAT)
        return self._seat


class DrivenTable(_Stepped):
    """A world of several seats. A seat is asked when it can decide, and is told its results when the game tells them:
    at once, when the others have acted, or at the end.

    Args:
        game: a registered game, `./file.py:Name`, or its spec.
        options: options of the game.
        seats: the number of seats; None for the fewest.
        seed: the seed of the world until `reset` gets one.
        host: resolves the game's name; None for all installed plugins.

    Raises:
        UsageError: the game has no such number of seats, needs language models, or goes on by itself.
        WsapError: the game can't be created, or an option is invalid.
    """

    def __init__(
        self,
        game: str | AdapterSpec,
        options: Mapping[str, Any] | None = None,
        *,
        seats: int | None = None,
        seed: int = 0,
        host: PluginHost | None = None,
    ) -> None:
        spec = spec_of(game, options, host)
        low, high = spec.seats
        count = max(1, low) if seats is None else seats
        if not max(1, low) <= count <= high:
            raise UsageError(f"{spec.display_title} has {low} to {high} seats, not {count}.")
        super().__init__(spec, options)
        self.seats: tuple[str, ...] = spec.names_of_seats(count)
        """The names of the seats."""
        self.ready: dict[str, Observation] = {}
        """What each seat that can decide now sees, in the order of the seats."""
        self.seen: dict[str, Observation] = {}
        """What each seat saw last."""
        self._told: dict[str, Outcome] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._waits: dict[str, bool] = {}
        self._world = self._made(seed)
        self._open = {name: self._world.open_seat(name) for name in self.seats}

    @property
    def done(self) -> frozenset[str]:
        """The seats for which the episode is over."""
        return frozenset(name for name, seat in self._open.items() if seat.done or seat.left is not None)

    def action_space(self, seat: str) -> ActionSpace:
        """Return all actions of a seat."""
        return self._open[seat].action_space

    def description(self, seat: str) -> str:
        """Return the game, its goals and mechanics, for a seat."""
        return self._open[seat].game_description

    def default_action(self, seat: str) -> Action | None:
        """Return the action of a seat whose player is late or gone; None if the game declares none."""
        return self._open[seat].default_action()

    def reset(self, seed: int | None = None) -> None:
        """Start an episode: of a new world of a seed, or without one the next of this world."""
        self._call(self._cancelled)
        if seed is not None:
            self._let_go()
            self._world = self._made(seed)
            self._open = {name: self._world.open_seat(name) for name in self.seats}
        self._told, self.ready, self.seen = {}, {}, {}
        self._call(lambda: self._begun(seed))

    def step(self, actions: Mapping[str, Action]) -> dict[str, Outcome]:
        """Let seats of `ready` act, and return the outcomes that seats were told meanwhile: none for a seat that waits
        for others. A seat whose action was refused is still ready.

        Raises:
            UsageError: a seat is not ready.
            WorldError: the game fails.
        """
        if strange := [seat for seat in actions if seat not in self.ready]:
            raise UsageError(f"{strange[0]} is not to decide now; these are: {', '.join(self.ready) or 'nobody'}.")
        self._told = {}
        self._call(lambda: self._stepped(actions))
        return self._told

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is damaged or of another game."""
        self._call(self._cancelled)
        try:
            self._world.restore(data)
        finally:
            self.ready = {}
            self._call(lambda: self._begun(None, reset=False))

    # --- in the loop ------------------------------------------------------------------------------------

    async def _begun(self, seed: int | None, *, reset: bool = True) -> None:
        if reset:
            await self._world.reset(seed)
        for name in self.seats:
            self._start(name, self._observed(name))
        await self._settled()

    async def _stepped(self, actions: Mapping[str, Action]) -> None:
        for name, action in actions.items():
            del self.ready[name]
            self._start(name, self._acted(name, action))
        await self._settled()

    async def _cancelled(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)
        self._tasks.clear()

    def _start(self, name: str, life: Coroutine[Any, Any, None]) -> None:
        self._waits[name] = False

        def tell(waits: bool) -> None:
            self._waits[name] = waits

        token = TOLD_OF_WAITING.set(tell)
        task: Any = asyncio.get_running_loop().create_task(life)
        task._log_destroy_pending = False  # few loops close their environments, and seats always wait in them
        self._tasks[name] = task
        TOLD_OF_WAITING.reset(token)

    async def _observed(self, name: str) -> None:
        seat = self._open[name]
        seen = self.seen[name] = await seat.observe()
        if seat.ended:
            self._tell(name, await seat.step(GAME_OVER))
        elif not seat.done:
            self.ready[name] = seen

    async def _acted(self, name: str, action: Action) -> None:
        outcome = await self._open[name].step(action)
        self._tell(name, outcome)
        if name not in self.done:
            await self._observed(name)

    def _tell(self, name: str, outcome: Outcome) -> None:
        self._told[name] = outcome
        self.seen[name] = outcome.result.observation

    async def _settled(self) -> None:
        """Wait until each seat can decide, waits for others, or is done."""
        calm = 0
        while calm < _CALM:
            await asyncio.sleep(0)
            going = {name: task for name, task in self._tasks.items() if not task.done()}
            calm = calm + 1 if all(self._waits[name] for name in going) else 0
            if not calm and self._spec.blocking:
                await asyncio.wait(going.values(), timeout=0.001, return_when=asyncio.FIRST_COMPLETED)
        for name in [name for name, task in self._tasks.items() if task.done()]:
            self._tasks.pop(name).result()  # raises what the game raised
        self.ready = {name: self.ready[name] for name in self.seats if name in self.ready}
