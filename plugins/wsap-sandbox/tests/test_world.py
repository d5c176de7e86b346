"""A sandbox as a game: ticks, seats, influences, snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import pytest

from wsap_core.errors import ConfigError, SnapshotError, UsageError
from wsap_core.protocol import Action, PlaceGraphBlock, Tick, TimelineBlock
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import Context
from wsap_core.worlds import World
from wsap_sandbox.seat import CharacterObservation
from wsap_sandbox.world import Sandbox


def made(seed: int = 3, **options: Any) -> World:
    spec = load_adapter_spec("sandbox").with_options(options)
    return World.create(spec, Context.create(seed, config=options))


def sandbox(world: World) -> Sandbox:
    return cast(Sandbox, world.adapter)


async def ticks(world: World, count: int) -> list[Tick]:
    return [await world.advance() for _ in range(count)]


@pytest.mark.parametrize("language", ["en", "ru"])
def test_a_world_goes_on_by_itself_and_the_same_seed_gives_the_same_ticks(language: str) -> None:
    one = asyncio.run(ticks(made(language=language), 4))
    assert [tick.number for tick in one] == [1, 2, 3, 4]
    assert one == asyncio.run(ticks(made(language=language), 4))
    assert one[0].summary


def test_the_order_and_number_of_calls_at_a_time_change_nothing() -> None:
    assert asyncio.run(ticks(made(concurrency=1), 4)) == asyncio.run(ticks(made(concurrency=50), 4))


def test_a_restored_world_goes_on_the_same() -> None:
    async def play() -> None:
        world, other = made(), made(seed=9)
        await ticks(world, 3)
        other.restore(world.snapshot())
        assert await ticks(world, 3) == await ticks(other, 3)

    asyncio.run(play())


def test_a_damaged_snapshot_is_refused_and_changes_nothing() -> None:
    world = made()
    before = world.snapshot()
    for data in (b"", b"{}", sandbox(world).snapshot()[:-3]):
        with pytest.raises(SnapshotError):
            sandbox(world).restore(data)
    assert world.snapshot() == before


def test_a_seat_means_something_and_the_others_run_themselves() -> None:
    async def play() -> tuple[bool, Mapping[str, Any]]:
        world = made()
        seat = world.open_seat("anna")
        assert "You are Anna." in seat.game_description
        seen = await seat.observe()
        assert isinstance(seen, CharacterObservation)
        ticking = asyncio.create_task(world.advance())
        result = await seat.act(Action("intend", {"text": "I sing a song about the mill."}))
        return result.success, (await ticking).body

    success, body = asyncio.run(play())
    changes = {change["id"]: change for change in cast(Any, body["characters"])}
    assert changes["anna"]["decided_by"] == "seat"
    assert changes["anna"]["intention"] == "I sing a song about the mill."
    assert {change["decided_by"] for one, change in changes.items() if one != "anna"} == {"model"}
    assert success in (True, False)


def test_a_tick_waits_for_its_seat_and_a_cancelled_one_has_changed_nothing() -> None:
    async def play() -> None:
        world = made()
        world.open_seat("anna")
        before = world.snapshot()
        ticking = asyncio.create_task(world.advance())
        for _ in range(200):
            await asyncio.sleep(0)
        assert not ticking.done()
        ticking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ticking
        assert world.snapshot() == before

    asyncio.run(play())


def test_a_second_act_in_a_tick_is_refused() -> None:
    async def play() -> None:
        world = made()
        seat = world.open_seat("anna")
        first = asyncio.create_task(seat.act(Action("wait")))
        await asyncio.sleep(0)
        assert "already" in (await seat.act(Action("wait"))).message
        await world.advance()
        await first

    asyncio.run(play())


def test_who_leaves_lets_the_tick_go_on_without_them() -> None:
    async def play() -> None:
        world = made()
        world.open_seat("anna")
        ticking = asyncio.create_task(world.advance())
        await asyncio.sleep(0)
        world.seats["anna"].leave()
        tick = await ticking
        assert {change["decided_by"] for change in cast(Any, tick.body["characters"])} == {"model"}

    asyncio.run(play())


@pytest.mark.slow
def test_who_leaves_while_a_tick_ends_has_either_lived_through_it_or_had_no_part_in_it() -> None:
    async def play(turns: int) -> tuple[str, str, bool]:
        """Leave after so many turns; return who decided, what the seat was told, and whether the tick was over."""
        world = made()
        seat = world.open_seat("anna")
        acting = asyncio.create_task(seat.act(Action("intend", {"text": "I sing a song about the mill."})))
        ticking = asyncio.create_task(world.advance())
        for _ in range(turns):
            await asyncio.sleep(0)
        ended = ticking.done()
        seat.leave()
        told, tick = (await acting).message, await ticking
        (change,) = (one for one in cast(Any, tick.body["characters"]) if one["id"] == "anna")
        return change["decided_by"], told, ended

    async def all_turns() -> None:
        turns, ended = 0, False
        while not ended:
            turns += 1
            by, told, ended = await play(turns)
            # A tick that has not been returned yet goes on without who left.
            assert (by, told == "You have left this world.") == (("seat", False) if ended else ("model", True)), turns
        assert turns > 5

    asyncio.run(all_turns())


def test_a_tick_that_is_cancelled_while_it_is_restarted_ends() -> None:
    async def play() -> None:
        world = made()
        seats = [world.open_seat(name) for name in ("anna", "Luna")]
        ticking = asyncio.create_task(world.advance())
        await asyncio.sleep(0)
        for seat in seats:
            seat.leave()
        ticking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ticking
        assert (await world.advance()).number == 1

    asyncio.run(play())


def test_somebody_unknown_arrives_as_a_newcomer_who_is_noticed_and_saved() -> None:
    async def play() -> None:
        world = made()
        sandbox(world).seat("Luna <the> Fox")
        newcomer = sandbox(world).state.characters[-1]
        assert (newcomer.id, newcomer.name) == ("luna-the-fox", "Luna ‹the› Fox")
        assert "travelling clothes" in newcomer.appearance
        sandbox(world).leave("Luna <the> Fox")
        tick = await world.advance()
        assert any("Luna" in event["text"] for event in cast(Any, tick.body["events"]))
        other = made()
        sandbox(other).restore(sandbox(world).snapshot())
        assert sandbox(other).state.characters[-1].id == newcomer.id

    asyncio.run(play())


def test_things_of_one_name_are_counted() -> None:
    world = made()
    for _ in range(3):
        sandbox(world).influence({"kind": "object", "character": "anna", "name": "a coin"})
    assert sandbox(world).seat("anna").observe().inventory["a coin"] == 3


@pytest.mark.parametrize("name", ["ANNA", "anna ", "Аnna", "a-n-n-a", "Luкe"])
def test_a_newcomer_whose_name_looks_like_anothers_is_refused(name: str) -> None:
    world = made()
    before = world.snapshot()
    with pytest.raises(UsageError, match=r"looks like that of '(anna|luke)'"):
        sandbox(world).seat(name)
    assert world.snapshot() == before


def test_two_agents_can_not_sit_in_one_character() -> None:
    world = made()
    sandbox(world).seat("anna")
    with pytest.raises(UsageError, match="already"):
        sandbox(world).seat("Anna")


def test_an_influence_is_taken_up_by_the_next_tick_or_refused_in_a_sentence() -> None:
    async def play() -> None:
        world = made()
        assert world.influence({"kind": "whisper", "character": "anna", "text": "Go to the mill."})
        with pytest.raises(UsageError, match="nobody"):
            world.influence({"kind": "whisper", "character": "nobody", "text": "x"})
        tick = await world.advance()
        heard = [event for event in cast(Any, tick.body["events"]) if event["kind"] == "influence"]
        assert [event["witnesses"] for event in heard] == [["anna"]]

    asyncio.run(play())


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"template": "nowhere"}, "nowhere"),
        ({"language": "xx"}, "xx"),
        ({"cells": 0}, "1 to 10"),
        ({"cells": "many"}, "1 to 10"),
        ({"overlap": "perhaps"}, "yes or no"),
        ({"text": 3}, "40 to 2000"),
        ({"world": {"version": 99}}, "version"),
        ({"world": "village"}, "world"),
    ],
)
def test_a_wrong_option_is_one_sentence(options: dict[str, Any], word: str) -> None:
    with pytest.raises((ConfigError, UsageError), match=word):
        made(**options)


def test_the_same_world_given_as_data_goes_on_byte_for_byte() -> None:
    from wsap_sandbox.model import dump

    async def play() -> None:
        world = made()
        await ticks(world, 3)
        other = made(seed=77, world=dump(sandbox(world).state))
        assert await ticks(world, 2) == await ticks(other, 2)

    asyncio.run(play())


def test_spectators_see_what_everybody_can_see_and_no_whisper() -> None:
    async def play() -> Sandbox:
        world = made()
        sandbox(world).influence({"kind": "whisper", "character": "anna", "text": "Zanzibar."})
        await ticks(world, 1)
        return sandbox(world)

    played = asyncio.run(play())
    assert any("Zanzibar" in event.text for event in played.record.events)  # type: ignore[union-attr]
    graph, timeline = played.render().blocks
    assert isinstance(graph, PlaceGraphBlock)
    assert sorted(name for people in graph.occupants.values() for name in people) == sorted(
        one.name for one in played.state.characters
    )
    assert isinstance(timeline, TimelineBlock)
    assert [entry.place for entry in timeline.entries] == [place.name for place in played.state.places]
    assert "Zanzibar" not in str(timeline)
    acts = [event for event in played.record.events if event.kind == "act"]  # type: ignore[union-attr]
    names = {one.id: one.name for one in played.state.characters}
    assert graph.doing == {names[event.actor]: event.text for event in acts}
    assert "Zanzibar" not in str(graph)


def test_the_bundled_village_says_in_both_languages_where_its_places_are() -> None:
    for language in ("en", "ru"):
        graph = made(template="village", language=language).render().blocks[0]
        assert isinstance(graph, PlaceGraphBlock)
        assert set(graph.spots) == set(graph.looks) == set(graph.places)
        assert sorted(graph.looks.values()) == ["dam", "mill", "orchard", "shop", "square"]


def test_the_map_of_a_world_needs_its_template_only_at_the_beginning(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    village = files("wsap_sandbox.templates") / "village.en.toml"
    file.write_text(village.read_text("utf-8"), "utf-8")
    world = made(template=str(file))
    first = world.render()
    file.unlink()
    assert world.render() == first
    assert isinstance(first.blocks[0], PlaceGraphBlock)
    assert set(first.blocks[0].spots) == set(first.blocks[0].places)
