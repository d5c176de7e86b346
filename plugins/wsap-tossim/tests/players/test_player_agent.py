"""The players as agents: through the protocol they play as at the level of the engine, and can be stopped anywhere."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from wsap_check import AgentTests
from wsap_core.errors import SnapshotError
from wsap_core.protocol import Observation
from wsap_tossim.engine.data.model import Verb
from wsap_tossim.options import TownOptions
from wsap_tossim.players.agent import TownPlayer
from wsap_tossim.players.decider import RandomDecider
from wsap_tossim.plugin import wsap_adapters, wsap_agents
from wsap_tossim.world import Town


class _OnTheTown(AgentTests):
    name = ""

    @pytest.fixture
    def agent(self) -> object:
        return next(spec for spec in wsap_agents() if spec.name == self.name)

    @pytest.fixture
    def game(self) -> object:
        (spec,) = wsap_adapters()
        return spec

    @pytest.fixture
    def config(self) -> Mapping[str, Any]:
        return {}


class TestTheScriptedPlayer(_OnTheTown):
    name = "tossim-player"

    @pytest.mark.slow
    def test_seed(self, subject: object) -> None:
        """Whole games with several seeds; `test_snapshot` and `test_decisions` play shorter ones."""
        super().test_seed(subject)  # type: ignore[misc]  # made of the table of checks


@pytest.mark.slow
class TestThePlayerByLot(_OnTheTown):
    name = "tossim-random"


def town(**options: Any) -> Town:
    return Town(TownOptions.read({"mode": "seven", **options}), 5)


async def play(world: Town, agents: list[TownPlayer], *, restart: bool = False) -> None:
    """Play a game to its end; with `restart` every agent is made anew from its snapshot before each decision."""

    async def one(number: int) -> None:
        seat = world.seat(f"player-{number + 1}")
        observation: Observation = await seat.observe()
        for _ in range(2000):
            if world.game.over:
                return
            if restart:
                kept = agents[number].snapshot()
                agents[number] = TownPlayer(99)
                agents[number].restore(kept)
            action = agents[number].decide(observation)
            result = await seat.act(action)
            assert result.success, result.message
            agents[number].reflect(result)
            observation = result.observation
            if result.done:
                return
        raise AssertionError("the game has no end")

    await asyncio.gather(*(one(n) for n in range(len(agents))))


def test_a_game_is_played_to_its_end_with_wills_and_notes_written() -> None:
    world = town()
    asyncio.run(asyncio.wait_for(play(world, [TownPlayer(n) for n in range(7)]), 300))
    assert world.game.over
    written = {e.data["what"] for e in world.game.log if e.kind == "writes"}
    assert written == {"will", "notebook", "note"}
    spoken = [e for e in world.game.log if e.kind == "speech"]
    assert len(spoken) > 5


@pytest.mark.slow
def test_an_agent_made_anew_before_every_decision_plays_the_same_game() -> None:
    worlds = [town(), town()]
    asyncio.run(asyncio.wait_for(play(worlds[0], [TownPlayer(n) for n in range(7)]), 300))
    asyncio.run(asyncio.wait_for(play(worlds[1], [TownPlayer(n) for n in range(7)], restart=True), 300))
    assert worlds[0].game.record == worlds[1].game.record


def test_it_plays_one_game_after_another() -> None:
    world = town(rules="quick")
    agents = [TownPlayer(n) for n in range(7)]
    asyncio.run(asyncio.wait_for(play(world, agents), 300))
    first = world.game.record
    world.reset()
    asyncio.run(asyncio.wait_for(play(world, agents), 300))
    assert world.game.over
    assert world.game.record != first


def test_where_no_tools_are_left_it_plays_on_without_a_will() -> None:
    world = town(tool_calls=0)
    asyncio.run(asyncio.wait_for(play(world, [TownPlayer(n) for n in range(7)]), 300))
    assert world.game.over
    assert not [e for e in world.game.log if e.kind == "writes"]


def test_one_who_comes_in_the_middle_of_a_game_waits() -> None:
    world = town()
    observation = world.observation("player-1")
    late = TownPlayer(1)
    from dataclasses import replace

    assert late.decide(replace(observation, first_news=30)).name == Verb.WAIT


def test_a_player_by_lot_says_nothing() -> None:
    world = town()
    asyncio.run(asyncio.wait_for(play(world, [TownPlayer(n, RandomDecider) for n in range(7)]), 300))
    assert not [e for e in world.game.log if e.kind in ("speech", "whisper", "said")]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        json.dumps({"format": 2}).encode(),
        json.dumps({"format": 1, "seed": "x"}).encode(),
        json.dumps({"format": 1, "seed": 1, "over": 0, "player": 3, "names": ["a"], "events": [[1]]}).encode(),
    ],
)
def test_a_damaged_snapshot_is_refused_and_changes_nothing(damage: bytes) -> None:
    player = TownPlayer(7)
    before = player.snapshot()
    with pytest.raises(SnapshotError, match=r"snapshot"):
        player.restore(damage)
    assert player.snapshot() == before
