"""How many calls a tick takes, and how long, by a clock on which nothing but models takes time."""

from __future__ import annotations

import asyncio

import pytest
from sandbox_kit import Model, advanced, mill, on_virtual_clock, ring

from wsap_core.seams.model import Reply, Request
from wsap_sandbox.model import dump
from wsap_sandbox.tick import Settings
from wsap_sandbox.tick.engine import Engine, Story
from wsap_sandbox.tick.facts import Facts

WIDE = Settings(concurrency=1000)
OVERLAPPED = Settings(concurrency=1000, overlap=True)


def seconds(people: int, places: int, settings: Settings, ticks: int, latency: float = 1.0) -> float:
    model = Model(latency=lambda _key: latency)
    return on_virtual_clock(advanced(ring(people, places, cells=1), model, ticks, settings))[1]


@pytest.mark.parametrize(("people", "places"), [(4, 3), (50, 20), (1, 1), (0, 2), (7, 2)])
def test_a_tick_takes_two_calls_for_each_character_and_two_for_each_place_once_memory_is_full(
    people: int, places: int
) -> None:
    model = Model()
    done, _ = on_virtual_clock(advanced(ring(people, places, cells=2), model, 4, WIDE))
    for record in done.records:
        full = record.tick > 2
        asked = [key for key in model.requests if key.startswith(f"{record.tick}/")]
        assert len(asked) == record.calls == (2 if full else 1) * people + 2 * places
        assert record.reasked == 0


def test_a_seated_character_saves_the_call_for_its_intention_alone() -> None:
    world = ring(4, 3, cells=1)
    done, _ = on_virtual_clock(advanced(world, Model(), 2, WIDE, {"c1": "I sing.", "c2": "I dance."}))
    assert [record.calls for record in done.records] == [4 - 2 + 6, 4 - 2 + 4 + 6]
    assert done.model.facts["2/scene/p1/0"].actors[0].intention == "I sing."  # type: ignore[union-attr]
    assert [change.decided_by for change in done.records[0].characters] == ["model", "seat", "seat", "model"]


@pytest.mark.parametrize(("people", "places"), [(4, 3), (50, 20)])
@pytest.mark.slow
def test_a_tick_is_three_latencies_deep_and_two_with_its_story_overlapped(people: int, places: int) -> None:
    assert seconds(people, places, WIDE, 1) == 3
    assert seconds(people, places, WIDE, 4) == 12
    # The story of the last tick alone is waited for.
    assert seconds(people, places, OVERLAPPED, 4) == 2 * 4 + 1


def test_ticks_do_not_overlap_but_for_their_stories() -> None:
    model = Model(latency=lambda key: 1.0)
    on_virtual_clock(advanced(ring(3, 2, cells=1), model, 4, OVERLAPPED))
    for key, (began, ended) in model.spans.items():
        tick, phase, *_ = key.split("/")
        first, last = 2 * (int(tick) - 1), 2 * int(tick)
        assert (began, ended) == (last, last + 1) if phase == "story" else first <= began < ended <= last


def test_a_slow_story_holds_up_the_next_tick_no_longer_than_until_it_is_told() -> None:
    model = Model(latency=lambda key: 7.0 if "1/story/p0" in key else 1.0)
    done, took = on_virtual_clock(advanced(ring(3, 2), model, 3, OVERLAPPED))
    assert [(story.tick, story.place) for story in done.stories] == [(t, p) for t in (1, 2, 3) for p in ("p0", "p1")]
    assert took == 2 + 7 + 2 + 1


@pytest.mark.parametrize("overlap", [True, False])
def test_a_tick_that_is_stopped_takes_nothing_with_it_and_leaves_nothing(overlap: bool) -> None:
    async def stopped() -> None:
        model = Model(latency=lambda key: 7.0 if "/story/" in key else 1.0)
        told: list[Story] = []
        engine = Engine(model, told.append, Settings(overlap=overlap))
        first, _ = await engine.advance(ring(2, 1))
        second = asyncio.create_task(engine.advance(first))
        await asyncio.sleep(4)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert model.at_once == (1 if overlap else 0)
        await engine.settle()
        await asyncio.sleep(20)
        assert [story.tick for story in told] == [1]

    on_virtual_clock(stopped())


def test_stories_that_were_cut_off_are_told_again_with_the_same_calls() -> None:
    async def cut_off() -> None:
        model, again, told = Model(latency=lambda _key: 1.0), Model(), list[Story]()
        engine = Engine(model, told.append, OVERLAPPED)
        world, record = await engine.advance(mill())
        for telling in asyncio.all_tasks() - {asyncio.current_task()}:
            telling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await engine.settle()
        assert told == []
        await Engine(again, told.append, OVERLAPPED).retell(world, record)
        assert [story.place for story in told] == ["mill", "yard", "road"]
        asked = {key: request for key, request in model.requests.items() if "/story/" in key}
        assert again.requests == asked

    on_virtual_clock(cut_off())


def test_no_place_waits_for_the_stragglers_of_another() -> None:
    slow = {"1/intent/c0/0", "1/scene/p0/0"}
    model = Model(latency=lambda key: 10.0 if key in slow else 1.0)
    on_virtual_clock(advanced(ring(4, 2), model, 1, WIDE))
    assert model.spans["1/scene/p1/0"] == (1.0, 2.0)
    assert model.spans["1/story/p1/0"] == (2.0, 3.0)
    assert model.spans["1/scene/p0/0"] == (10.0, 20.0)
    assert model.spans["1/story/p0/0"] == (20.0, 21.0)


def test_an_empty_place_waits_for_nobody() -> None:
    model = Model(latency=lambda _key: 1.0)
    on_virtual_clock(advanced(ring(1, 3), model, 1, WIDE))
    assert model.spans["1/scene/p2/0"] == (0.0, 1.0)
    assert model.spans["1/scene/p0/0"] == (1.0, 2.0)


def test_a_summary_waits_for_nothing() -> None:
    model = Model(latency=lambda key: 5.0 if "/intent/" in key else 1.0)
    on_virtual_clock(advanced(ring(2, 1, cells=1), model, 2, WIDE))
    assert model.spans["2/memory/c0/0"] == (7.0, 8.0)


@pytest.mark.parametrize("most", [1, 3, 16])
def test_there_are_never_more_calls_at_once_than_the_limit(most: int) -> None:
    model = Model(latency=lambda _key: 1.0)
    done, took = on_virtual_clock(advanced(ring(10, 4, cells=1), model, 2, Settings(concurrency=most)))
    assert model.most_at_once == most
    assert took >= sum(record.calls for record in done.records) / most


def test_what_comes_of_a_tick_does_not_depend_on_concurrency_or_on_the_order_of_replies() -> None:
    outcomes = []
    for most, spread in [(1, 0), (2, 5), (100, 7), (100, 13)]:
        model = Model(latency=lambda key, spread=spread: (sum(map(ord, key)) * 31 % 17) * spread / 10)  # type: ignore[misc]
        done, _ = on_virtual_clock(advanced(mill(), model, 5, Settings(concurrency=most, overlap=most == 2)))
        prompts = {key: request.messages for key, request in model.requests.items()}
        outcomes.append((dump(done.world), [dump(record) for record in done.records], done.stories, prompts))
    assert all(outcome == outcomes[0] for outcome in outcomes)


def test_an_error_of_a_model_stops_the_tick_and_leaves_nothing_behind() -> None:
    def answer(key: str, facts: object) -> object:
        raise ConnectionError("gone")

    model = Model(answer, latency=lambda key: 1.0 if "c0" in key else 9.0)
    with pytest.raises(ConnectionError, match="gone"):
        on_virtual_clock(advanced(ring(3, 3, cells=1), model, 1, WIDE))
    assert model.spans.keys() == {"1/intent/c0/0"} | {key for key in model.spans if "scene" in key}


@pytest.mark.parametrize("phase", ["intent", "scene", "story", "memory"])
@pytest.mark.parametrize("overlap", [True, False])
def test_a_call_that_fails_ends_the_tick_at_once_though_nobody_else_answers(phase: str, overlap: bool) -> None:
    async def failed() -> None:
        model = Model()
        ticks, late = [], asyncio.Event()

        async def ask(key: str, facts: Facts, request: Request) -> Reply:
            tick, of, subject, _ = key.split("/")
            if tick == "2" and of == phase:
                if subject in ("c0", "p0"):
                    raise ValueError(key)
                await late.wait()
            return await model(key, facts, request)

        engine = Engine(ask, lambda story: None, Settings(overlap=overlap))
        world = ring(4, 2, cells=1)

        async def go_on() -> None:
            nonlocal world
            for _ in range(3):
                world, record = await engine.advance(world)
                ticks.append(record.tick)

        with pytest.raises(ValueError, match=f"2/{phase}"):
            await asyncio.wait_for(go_on(), 60)  # by the clock that runs only when everything waits
        assert ticks == ([1, 2] if phase == "story" and overlap else [1])
        assert asyncio.all_tasks() == {asyncio.current_task()}

    on_virtual_clock(failed())
