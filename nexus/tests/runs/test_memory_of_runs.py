"""A process that plays for days holds what is being played, and nothing of what is over."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest
from hosts import host_with_ours

from wsap_nexus.runs import gc_tuning
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.run import Run


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_a_run_that_is_over_is_freed_without_the_collector(no_collector: None) -> None:
    async def play() -> weakref.ref[Run]:
        plan = RunPlan("echo", (SeatPlan("seat-1", "random"),), 7, 3)
        host = host_with_ours()
        run = Run(plan, host.games.get("echo"), {"seat-1": host.agents.get("random")})
        await run.play()
        return weakref.ref(run)

    async def main() -> Run | None:
        over = await play()
        await asyncio.sleep(0)  # the loop lets go of its tasks
        return over()

    assert asyncio.run(main()) is None


def test_garbage_is_collected_from_time_to_time_and_never_takes_more_than_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Clock:
        def __init__(self) -> None:
            self.slept: list[float] = []

        def now(self) -> float:
            return 0.0

        async def sleep(self, seconds: float) -> None:
            self.slept.append(seconds)
            if len(self.slept) == 3:
                raise asyncio.CancelledError

    seconds = iter([0.0, 0.1, 100.0, 102.0, 300.0, 300.2])
    monkeypatch.setattr(gc_tuning.time, "perf_counter", lambda: next(seconds))
    circle: list[object] = [frozenset()]
    circle.append(circle)
    gone = weakref.ref(Held(circle))
    del circle
    assert gone() is not None
    clock = Clock()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(gc_tuning.collect_regularly(clock))
    assert clock.slept == [gc_tuning.EVERY, pytest.approx(200.0), gc_tuning.EVERY]
    assert gone() is None


class Held:
    def __init__(self, circle: list[object]) -> None:
        circle.append(self)
        self.circle = circle
