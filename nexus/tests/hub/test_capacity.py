"""Games that can be played in only so many worlds at once: busy where all are taken, and free again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from life_kit import Place, at_desk, host_with, nexus_at

from wsap_core import PluginHost
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import GameUnavailableError
from wsap_nexus.hub.games.remote_games import read_spec
from wsap_nexus.store.entities import EXTERNAL, EntryRequest
from wsap_nexus.worlds.remote.game_client import GameClient

OUTSIDE = {"*": EXTERNAL}


def limited(game: str, worlds: int) -> AdapterSpec:
    """An installed game under another name, of which there can be only so many worlds."""
    return replace(PluginHost.discovered().games.get(game), name="small", title="Small", max_worlds=worlds)


def never(spec: AdapterSpec, options: Mapping[str, object]) -> AdapterSpec:
    """The variant of a family that nobody asked for."""
    raise AssertionError(f"{spec.name} was loaded")


def stands(place: Place) -> str:
    return place.nexus.entrance.game_info("small").status


def test_a_game_whose_only_world_is_taken_is_busy_until_it_is_left(tmp_path: Path) -> None:
    async def test() -> None:
        agents = {"a": OUTSIDE, "b": OUTSIDE}
        async with nexus_at(tmp_path, agents, host=host_with(limited("echo", 1)), games=("small", "echo")) as place:
            nexus = place.nexus
            assert (stands(place), nexus.entrance.game_info("small").capacity) == ("available", 1)
            await nexus.enter("a", "small", EntryRequest())
            assert stands(place) == "busy"
            assert nexus.entrance.game_info("echo").status == "available"
            with pytest.raises(GameUnavailableError, match="Small is busy: its only world is taken"):
                await nexus.enter("b", "small", EntryRequest())
            around = at_desk(nexus, "b").observe()
            told = next(world for world in around.games if world.game == "small")
            assert told.status == "busy"
            assert "small" not in [suggestion.game for suggestion in around.suggestions]
            waiting = asyncio.create_task(nexus.context.wakeups.wait("b", 600.0))
            await asyncio.sleep(0)
            await nexus.exit("a")
            assert await waiting, "who waits for a world is woken"
            assert stands(place) == "available"
            stay = await nexus.enter("b", "small", EntryRequest())
            assert (stay.session.game, stands(place)) == ("small", "busy")

    asyncio.run(test())


def test_a_stay_that_is_open_while_its_agent_is_paused_takes_its_world_after_a_restart_too(tmp_path: Path) -> None:
    async def test() -> None:
        host = host_with(limited("echo", 1))
        async with nexus_at(tmp_path, {"a": OUTSIDE}, host=host, games=("small",)) as place:
            await place.nexus.enter("a", "small", EntryRequest())
            place.nexus.pause("a")
        async with nexus_at(tmp_path, {}, host=host, games=("small",)) as place:
            assert stands(place) == "busy"
            await place.nexus.exit("a")
            assert stands(place) == "available"

    asyncio.run(test())


def test_agents_on_their_way_share_a_world_with_several_seats_and_no_more_than_it_has(tmp_path: Path) -> None:
    async def test() -> None:
        agents = {"a": OUTSIDE, "b": OUTSIDE, "c": OUTSIDE}
        async with nexus_at(tmp_path, agents, host=host_with(limited("matrix", 1)), games=("small",)) as place:
            nexus = place.nexus
            assert nexus.entrance.game_info("small").capacity == 2
            both = [asyncio.create_task(nexus.enter(agent, "small", EntryRequest())) for agent in ("a", "b")]
            await asyncio.sleep(0)
            assert stands(place) == "busy", "both seats are spoken for"
            with pytest.raises(GameUnavailableError):
                nexus.entrance.request_enter("c", "small", EntryRequest())
            first, second = await asyncio.gather(*both)
            assert first.session.world_id == second.session.world_id
            assert stands(place) == "busy"

    asyncio.run(test())


def test_who_is_late_for_the_only_world_stays_at_home(tmp_path: Path) -> None:
    async def test() -> None:
        spec = limited("matrix", 1)
        agents = {"a": OUTSIDE, "b": OUTSIDE}
        async with nexus_at(tmp_path, agents, host=host_with(spec), games=("small",)) as place:
            nexus = place.nexus
            await nexus.agent_tasks.end()
            for agent in agents:
                nexus.entrance.request_enter(agent, "small", EntryRequest())
            first, late = nexus.live.entries.pop("a"), nexus.live.entries.pop("b")
            assert await nexus.capacity.enter_together([first], spec, nexus.sessions.enter_together) is not None
            assert await nexus.capacity.enter_together([late], spec, nexus.sessions.enter_together) is None
            with nexus.nexus_store.look() as tx:
                assert tx.agent("b").session_id is None
                assert [row for row in tx.transfers("prepared") if row.agent_id == "b"] == []

    asyncio.run(test())


def test_a_game_that_is_closed_is_not_called_busy(tmp_path: Path) -> None:
    async def test() -> None:
        async with nexus_at(tmp_path, {"a": OUTSIDE}, host=host_with(limited("echo", 1)), games=("small",)) as place:
            await place.nexus.enter("a", "small", EntryRequest())
            place.nexus.breaker.put("small", "maintenance", "new version")
            assert stands(place) == "maintenance"

    asyncio.run(test())


def test_a_family_of_games_is_offered_and_loaded_only_by_the_names_of_its_members(tmp_path: Path) -> None:
    echo = PluginHost.discovered().games.get("echo")
    host = host_with(
        replace(echo, name="family", family="id"),
        replace(echo, name="heavy", family="id", variant="test_capacity:never"),
    )

    async def test(games: tuple[str, ...] | None) -> list[str]:
        async with nexus_at(tmp_path, {"a": OUTSIDE}, host=host, games=games) as place:
            return [world.game for world in at_desk(place.nexus, "a").observe().games]

    installed = asyncio.run(test(None))
    assert "crafter" in installed
    assert not {"family", "heavy", "openspiel", "textarena", "gymnasium"} & set(installed)
    assert asyncio.run(test(("echo", "family:one"))) == ["echo", "family:one"]


def test_a_game_elsewhere_says_how_many_worlds_it_can_hold() -> None:
    def told(**more: object) -> int | None:
        game = {"name": "far", "summary": "Far.", "protocol_version": "1.0.0", **more}
        return read_spec({"game": game}, GameClient("http://127.0.0.1:7801")).max_worlds

    assert told() is None
    assert told(max_worlds=2) == 2
