"""A world of one seat, stepped by plain function calls: for loops of researchers, without a record.

    world = Driven("crafter")
    seen = world.reset(seed=7)
    result = world.step(Action("move_left")).result

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
from wsap_core.worlds import Outcome, World
from wsap_core.worlds.seat import Seat

T = TypeVar("T")

SEAT = "seat-1"


class Driven:
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
        given = dict(options or {})
        spec = game if isinstance(game, AdapterSpec) else load_adapter_spec(game, host or PluginHost.discovered())
        spec = spec.with_options(given)
        if spec.seats[0] > 1:
            raise UsageError(
                f"{spec.display_title} needs {spec.seats[0]} players, so it can't be stepped by one alone."
            )
        if spec.asks_models or "lives" in spec.abilities:
            raise UsageError(f"{spec.display_title} goes on by itself, so it can't be stepped from outside.")
        self._given, self._spec = given, spec
        self._seat: Seat | None = None
        self._world = self._made(seed)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._closing = ExitStack()
        weakref.finalize(self, self._closing.close)  # few loops close their environments

    @property
    def spec(self) -> AdapterSpec:
        """The game."""
        return self._world.spec

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

    def snapshot(self) -> bytes:
        """Return the whole state; `SnapshotError` if the game has no snapshots."""
        return self._world.snapshot()

    def restore(self, data: bytes) -> None:
        """Restore a snapshot; `SnapshotError` if it is damaged or of another game."""
        self._opened()
        self._world.restore(data)

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
        self._seat = None
        close = getattr(self._world.adapter, "close", None)
        if callable(close):
            close()

    def _opened(self) -> Seat:
        if self._seat is None:
            self._seat = self._world.open_seat(SEAT)
        return self._seat

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
            self._closing.callback(self._loop.close)
        return self._loop.run_until_complete(begin())
