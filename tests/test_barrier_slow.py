"""Rounds that take time to resolve: whatever comes meanwhile waits its turn, as if the round had taken none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import pytest
from barrier_kit import SEATS, Script, rounds_of_some
from hypothesis import given
from hypothesis import strategies as st

from wsap_core import Action, ActionResult, Barrier, Observation
from wsap_core.errors import WorldError
from wsap_core.worlds.waiting import TOLD_OF_WAITING

Event = tuple[str, str]


@given(
    named=rounds_of_some,
    turns=st.integers(1, 9),
    holds_back=st.booleans(),
    events=st.lists(
        st.tuples(st.sampled_from(["act", "act", "act", "expire", "leave", "replace", "time"]), st.sampled_from(SEATS)),
        max_size=30,
    ),
)
def test_whatever_comes_while_a_round_is_resolved_waits_its_turn(
    named: list[list[str]], turns: int, holds_back: bool, events: list[Event]
) -> None:
    """Against a plain account: who is gone, what everybody chose, and that each choice counts once or is refused."""
    script = Script(named, holds_back=holds_back, turns=turns)
    chosen: dict[str, list[str]] = {seat: [] for seat in SEATS}
    refused: list[str] = []

    async def run() -> None:
        barrier = script.barrier()
        acting: dict[str, asyncio.Task[ActionResult]] = {}
        gone: set[str] = set()

        async def act(seat: str, name: str) -> ActionResult:
            result = await barrier.act(seat, Action(name))
            if not result.success and not result.done:
                refused.append(name)
            return result

        for what, seat in events:
            if what == "act" and (seat not in acting or acting[seat].done()):
                name = f"{seat}{len(chosen[seat])}"
                chosen[seat].append(name)
                acting[seat] = asyncio.create_task(act(seat, name))
            elif what == "expire":
                missing = () if script.busy else barrier.expected
                assert barrier.expire() == missing
            elif what in ("leave", "replace") and len(gone | {seat}) < len(SEATS):
                barrier.leave(seat, replaced=what == "replace")
                gone.add(seat)
                if not script.busy:
                    assert seat not in barrier.expected
            await asyncio.sleep(0)
        while not barrier.over:
            await barrier.settled()
            barrier.expire()
        await asyncio.wait_for(asyncio.gather(*acting.values()), 300)
        for seat in SEATS:
            await asyncio.wait_for(barrier.turn(seat), 300)
        assert not barrier.held

    asyncio.run(run())
    assert all(set(r) <= set(n) for r, n in zip(script.resolved, named, strict=False))
    for seat in SEATS:
        counted = [r[seat] for r in script.resolved if r.get(seat, "default") != "default"]
        assert counted == [name for name in chosen[seat] if name in counted]  # each once, in the order of choice
        assert not set(counted) & set(refused)


Scene = Callable[[Barrier, asyncio.Event], Awaitable[None]]


def staged(scene: Scene, resolve: Callable[[asyncio.Event], Awaitable[Mapping[str, ActionResult]]]) -> None:
    """Play a scene in which rounds of `a` and `b` are resolved only once the event is set."""

    async def run() -> None:
        let = asyncio.Event()
        barrier = Barrier(
            "ab",
            lambda actions: resolve(let),
            lambda seat: Action("default"),
            observe=lambda seat: Observation(),
            expects=lambda: "ab",
        )
        await asyncio.wait_for(scene(barrier, let), 300)

    asyncio.run(run())


async def when_let(let: asyncio.Event) -> Mapping[str, ActionResult]:
    await let.wait()
    return {seat: ActionResult(True, "done") for seat in "ab"}


def test_a_deadline_that_passes_while_a_round_is_resolved_forces_nobody() -> None:
    async def scene(barrier: Barrier, let: asyncio.Event) -> None:
        both = asyncio.gather(*(barrier.act(seat, Action("x")) for seat in "ab"))
        await asyncio.sleep(0)
        assert barrier.expire() == ()
        turn = asyncio.create_task(barrier.turn("a"))
        let.set()
        assert [result.message for result in await both] == ["done", "done"]
        assert await turn == 1
        assert barrier.forced == []

    staged(scene, when_let)


def test_seats_wait_for_the_world_and_not_for_each_other_while_it_resolves_their_round() -> None:
    told: list[bool] = []

    async def scene(barrier: Barrier, let: asyncio.Event) -> None:
        TOLD_OF_WAITING.set(told.append)
        first = asyncio.create_task(barrier.act("a", Action("x")))
        await asyncio.sleep(0)
        assert told == [True]
        TOLD_OF_WAITING.set(None)
        second = asyncio.create_task(barrier.act("b", Action("x")))
        await asyncio.sleep(0)
        assert told == [True, False]
        let.set()
        await asyncio.gather(first, second)
        assert told[-1] is False

    staged(scene, when_let)


def test_a_resolution_that_fails_is_told_to_all_who_wait_and_to_all_who_come_later() -> None:
    async def fails(let: asyncio.Event) -> Mapping[str, ActionResult]:
        await let.wait()
        raise WorldError("The model is gone.")

    async def scene(barrier: Barrier, let: asyncio.Event) -> None:
        both = [asyncio.create_task(barrier.act(seat, Action("x"))) for seat in "ab"]
        await asyncio.sleep(0)
        late = asyncio.create_task(barrier.turn("a"))
        await asyncio.sleep(0)
        let.set()
        for waiting in (*both, late):
            with pytest.raises(WorldError, match="The model is gone"):
                await waiting
        with pytest.raises(WorldError, match="The model is gone"):
            await barrier.act("a", Action("x"))
        barrier.restart()
        assert await barrier.turn("a") == 0

    staged(scene, fails)


def test_a_resolution_that_nobody_waits_for_any_more_is_given_up() -> None:
    ended: list[str] = []

    async def told(let: asyncio.Event) -> Mapping[str, ActionResult]:
        try:
            await let.wait()
        finally:
            ended.append("given up")
        return {}

    async def scene(barrier: Barrier, let: asyncio.Event) -> None:
        both = [asyncio.create_task(barrier.act(seat, Action("x"))) for seat in "ab"]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for task in both:
            assert ended == []
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0)
        assert ended == ["given up"]
        with pytest.raises(WorldError, match="never resolved"):
            await barrier.turn("a")

    staged(scene, told)
