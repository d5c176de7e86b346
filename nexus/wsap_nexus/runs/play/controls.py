"""Run control for a person or a program: pause, step, pace, stop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from wsap_core.seams.clock import Clock, SystemClock


class Gate:
    """Holds decisions while it is closed; the waiting ones then pass one at a time, so that other tasks run between."""

    def __init__(self) -> None:
        self._opened = asyncio.Event()
        self._opened.set()
        self._turn = asyncio.Lock()

    def close(self) -> None:
        """Hold all decisions."""
        self._opened.clear()

    def open(self) -> None:
        """Let decisions pass."""
        self._opened.set()

    async def passed(self) -> None:
        """Return once the gate is open and it is the caller's turn."""
        if not self._opened.is_set():
            await self._opened.wait()
            async with self._turn:
                await asyncio.sleep(0)


class Controls:
    """Pauses, paces and stops seats, which consult it before each decision. Call its methods in the run's event loop.

    Args:
        pace: maximum decisions per second of each seat; None for no limit.
        pauses_when_forced: whether a series of forced decisions pauses the run.
        gate: holds decisions while it is closed.
    """

    YIELD_EVERY = 0.02
    """Seconds after which a run of fast synchronous steps yields to the event loop (a view, the keys)."""

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
        """Whether the run was asked to stop."""
        self._running = asyncio.Event()
        self._running.set()
        self.paused = False
        """Whether decisions wait."""
        self._held = False
        self._allowance = 0
        self._finishing = self._repeated = False
        self._last_yield = time.monotonic()
        self._stopped = asyncio.Event()
        self.before: Callable[[], None] | None = None
        """Called before each new decision or tick; may stop the run."""

    def pause(self) -> None:
        """Hold decisions until `resume` or `step_once`."""
        self.paused = True
        self._running.clear()

    def resume(self) -> None:
        """End a `pause`."""
        self._allowance, self.paused = 0, False
        self._let_run()

    def step_once(self) -> None:
        """While paused, let one decision through."""
        self._allowance += 1
        self.paused = False
        self._let_run()

    def hold(self) -> None:
        """Hold decisions until `release`, whether paused or not."""
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
        """End the run before the next new decision, or at once, unless recorded ones are being replayed."""
        self._finishing = True
        self._running.set()
        if self._repeated:
            self.stop()

    def repeated(self) -> None:
        """Note that everything recorded is replayed: `finish` is the same as `stop` from now on, or by now."""
        self._repeated = True
        if self._finishing:
            self.stop()

    async def until_stopped(self) -> None:
        """Return once `stop` was called."""
        await self._stopped.wait()

    async def wait_until_running(self, last: float | None = None) -> bool:
        """Wait until a decision or tick may start; return False if the run is to stop.

        The pace counts from the start of the `last` one, by this object's clock; the first waits a whole interval.
        """
        self.repeated()
        if self.before is not None and not self.stopping:
            self.before()
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
            # After a pause, or all that passed the gate during it would decide at once.
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


def only_recorded() -> Controls:
    """Return the controls of a seat whose agent has left: it ends after its recorded decisions."""
    controls = Controls()
    controls.finish()
    return controls
