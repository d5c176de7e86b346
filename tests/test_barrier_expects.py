"""A barrier whose world says which seats each round waits for: any of them, and others' results held back meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from barrier_kit import SEATS, Script, rounds_of_some
from hypothesis import given
from hypothesis import strategies as st

from wsap_core import Action, ActionResult, Barrier
from wsap_core.errors import WorldError


async def play(barrier: Barrier, seat: str, slowness: int, log: list[tuple[str, int, str]]) -> None:
    """Act whenever it is this seat's turn until the game is over, having others go first as often as told."""
    while True:
        number = await barrier.turn(seat)
        if barrier.over:
            return
        for _ in range(slowness):
            await asyncio.sleep(0)
        result = await barrier.act(seat, Action(f"{seat}{number}"), round_seen=number)
        log.append((seat, number, result.message))
        if result.done:
            return


@given(
    named=rounds_of_some,
    slowness=st.lists(st.integers(0, 3), min_size=4, max_size=4),
    holds_back=st.booleans(),
    turns=st.integers(0, 5),
)
def test_each_round_is_resolved_with_just_the_seats_it_names(
    named: list[list[str]], slowness: list[int], holds_back: bool, turns: int
) -> None:
    script = Script(named, holds_back=holds_back, turns=turns)
    log: list[tuple[str, int, str]] = []

    async def run() -> None:
        barrier = script.barrier()
        await asyncio.gather(*(play(barrier, s, n, log) for s, n in zip(SEATS, slowness, strict=True)))

    asyncio.run(asyncio.wait_for(run(), 300))
    assert script.resolved == [{s: f"{s}{number}" for s in seats} for number, seats in enumerate(named)]
    assert [list(r) for r in script.resolved] == named  # in the order of the seats

    # Who acted in a round hears of it when named next, or at the end; at once where nothing is held back.
    def heard_after(seat: str, number: int) -> int:
        if not holds_back:
            return number + 1
        later = [n for n in range(number + 1, len(named)) if seat in named[n]]
        return later[0] if later else len(named)

    assert sorted(log) == sorted((s, n, f"after {heard_after(s, n)}") for n, seats in enumerate(named) for s in seats)


@given(
    named=rounds_of_some,
    events=st.lists(st.tuples(st.sampled_from(["act", "act", "expire", "leave", "replace"]), st.sampled_from(SEATS))),
)
def test_whatever_comes_nobody_named_is_passed_over_and_nobody_waits_after_the_end(
    named: list[list[str]], events: list[tuple[str, str]]
) -> None:
    """Acts, deadlines and departures in any order, against a plain account of who is there."""
    script = Script(named)

    async def run() -> None:
        barrier = script.barrier()
        acting: dict[str, asyncio.Task[ActionResult]] = {}
        gone: set[str] = set()  # for good
        replaced: set[str] = set()
        for what, seat in events:
            if len(gone | replaced) == len(SEATS) - 1 and what in ("leave", "replace"):
                continue
            if what == "act" and (seat not in acting or acting[seat].done()):
                expected, over = seat in barrier.expected, barrier.over
                acting[seat] = asyncio.create_task(barrier.act(seat, Action("x")))
                await asyncio.sleep(0)
                if not expected or over:
                    assert not (await acting[seat]).success
            elif what == "expire":
                missing = barrier.expected
                assert barrier.expire() == missing
            elif what == "leave" and seat not in replaced:
                barrier.leave(seat)
                gone.add(seat)
            elif what == "replace" and seat not in gone:
                barrier.leave(seat, replaced=True)
                replaced.add(seat)
            assert not set(barrier.expected) & (gone | replaced)
            assert barrier.round == len(script.resolved)
        for _ in range(len(named) + 1):  # whoever is still missing is forced, until the end
            barrier.expire()
        assert barrier.over
        assert barrier.expected == ()
        for task in acting.values():
            await asyncio.wait_for(task, 300)
        for seat in SEATS:
            await asyncio.wait_for(barrier.turn(seat), 300)
            assert not (await barrier.act(seat, Action("x"))).success

    asyncio.run(run())
    assert all(set(r) <= set(n) for r, n in zip(script.resolved, named, strict=False))


def test_a_round_whose_seats_all_left_for_good_is_resolved_without_them() -> None:
    script = Script([["a", "b"], ["c"]])

    async def run() -> int:
        barrier = script.barrier()
        barrier.leave("a")
        assert barrier.expected == ("b",)
        barrier.leave("b")
        assert barrier.expected == ("c",)
        return await barrier.turn("c")

    assert asyncio.run(run()) == 1
    assert script.resolved == [{}]


def test_one_who_was_replaced_plays_the_default_whenever_it_is_named() -> None:
    script = Script([["a"], ["b"], ["a"], ["a", "b"]])

    async def run() -> None:
        barrier = script.barrier()
        barrier.leave("a", replaced=True)
        first = asyncio.create_task(barrier.act("b", Action("mine")))
        assert (await first).message == "after 3"
        await barrier.act("b", Action("last"))

    asyncio.run(run())
    assert script.resolved == [{"a": "default"}, {"b": "mine"}, {"a": "default"}, {"a": "default", "b": "last"}]


def test_a_result_that_even_the_last_round_holds_back_says_that_the_game_is_over() -> None:
    script = Script([["a"], ["b"]])

    def resolve(actions: Mapping[str, Action]) -> Mapping[str, ActionResult]:
        script.at += 1
        return {}

    async def run() -> tuple[ActionResult, ActionResult]:
        barrier = Barrier(SEATS, resolve, lambda s: Action("x"), observe=script.observe, expects=script.expects)
        return await asyncio.gather(barrier.act("a", Action("x")), barrier.act("b", Action("x")))

    for result in asyncio.run(asyncio.wait_for(run(), 300)):
        assert result.done
        assert "over" in result.message


def test_the_world_is_asked_again_after_a_restart_and_not_before_it_is_ready() -> None:
    script = Script([["b"], ["c"]])
    barrier = script.barrier()
    assert script.asked == 0
    assert barrier.expected == ("b",)
    script.at = 1
    assert barrier.expected == ("b",)
    barrier.restart()
    assert barrier.expected == ("c",)


@pytest.mark.parametrize(("named", "words"), [(["a", "x"], "'x'"), (["", "a"], "''")])
def test_a_seat_that_there_is_not_is_named_in_the_error(named: list[str], words: str) -> None:
    with pytest.raises(WorldError, match=words):
        _ = Script([named]).barrier().expected


def test_a_seat_that_waits_for_its_result_can_not_be_waited_for() -> None:
    script = Script([["a"], ["a"]])

    def resolve(actions: Mapping[str, Action]) -> Mapping[str, ActionResult]:
        script.at += 1
        return {}

    barrier = Barrier(SEATS, resolve, lambda s: Action("x"), observe=script.observe, expects=script.expects)
    with pytest.raises(WorldError, match=r"'a'.*result"):
        asyncio.run(asyncio.wait_for(barrier.act("a", Action("x")), 300))
