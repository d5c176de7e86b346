"""Run control for a person or a program: pause, step, pace, stop."""

from __future__ import annotations

import asyncio
import time

from wsap_core.seams.clock import Clock, SystemClock


class Gate:
    """Holds decisions while it is closed; those that waited then pass one at a time, so that others are heard."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self._turn = asyncio.Lock()

    def close(self) -> None:
        """Let no decision through."""
        self._opened.clear()

    def open(self) -> None:
        """Let all through."""
        self._opened.set()

    async def passed(self) -> None:
        """Return once it is open."""
        if not self._opened.is_set():
            await self._opened.wait()
            async with self._turn:
                await asyncio.sleep(0)


class Controls:
    """Asked by every seat before each decision. Methods may be called from the run's own loop.

    Args:
        pace: decisions a second for each seat; None for as fast as it goes.
        pauses_when_forced: whether a run is paused in which one decision after the other is forced.
        gate: what decisions wait for; None for nothing.
    """

    YIELD_EVERY = 0.02
    """Seconds after which a run of fast synchronous steps lets others (a view, the keys) have a turn."""

    def __init__(
        self,
        *,
        pace: float | None = None,
        pauses_when_forced: bool = True,
        gate: Gate | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.pace = pace
        self.clock: Clock = clock or SystemClock()
        self.pauses_when_forced = pauses_when_forced
        self._gate = gate
        self.stopping = False
        """True once the run was asked to stop."""
        self._running = asyncio.Event()
        self._running.set()
        self.paused = False
        """Whether decisions wait."""
        self._held = False
        self._allowance = 0
        self._finishing = False
        self._last_yield = time.monotonic()
        self._stopped = asyncio.Event()

    def pause(self) -> None:
        """Let no further decision begin."""
        self.paused = True
        self._running.clear()

    def resume(self) -> None:
        """Go on."""
        self._allowance, self.paused = 0, False
        self._let_run()

    def step_once(self) -> None:
        """While paused, let one decision through."""
        self._allowance += 1
        self.paused = False
        self._let_run()

    def hold(self) -> None:
        """Let no further decision begin, paused or not, until `release`."""
        self._held = True
        if not self.stopping:
            self._running.clear()

    def release(self) -> None:
        """End a `hold`."""
        self._held = False
        self._let_run()

    def _let_run(self) -> None:
        if not self._held and not self.paused:
            self._running.set()

    def stop(self) -> None:
        """End the run before the next decision; it can be resumed."""
        self.stopping = True
        self._running.set()
        self._stopped.set()

    def finish(self) -> None:
        """End the run before the next new decision, but not during the replay of recorded ones."""
        self._finishing = True
        self._running.set()

    async def until_stopped(self) -> None:
        """Return once `stop` was called."""
        await self._stopped.wait()

    async def wait_until_running(self, last: float | None = None) -> bool:
        """Wait until a decision or tick may begin; return False if the run is to stop.

        The pace is a beat: it waits for what is left of its time since the `last` one began, by the clock of these
        controls; and all of it before the first.
        """
        if self._finishing:
            self.stop()
        if self.stopping:
            return False
        if not self._running.is_set():
            await self._running.wait()
            if self._finishing:
                self.stop()
                return False
        if self._allowance:
            self._allowance -= 1
            if not self._allowance:
                self.pause()
        if self.pace:
            passed = 0.0 if last is None else self.clock.now() - last
            if passed < 1 / self.pace:
                await self.clock.sleep(1 / self.pace - passed)
        if self._gate is not None:
            # After the pause, or all that passed would decide together at its end.
            await self._gate.passed()
            if self._finishing:
                self.stop()
        return await self.yield_to_loop()

    async def yield_to_loop(self) -> bool:
        """Yield to the event loop if it is time; return False if the run is to stop."""
        if time.monotonic() - self._last_yield > self.YIELD_EVERY:
            await asyncio.sleep(0)
            self._last_yield = time.monotonic()
        return not self.stopping
