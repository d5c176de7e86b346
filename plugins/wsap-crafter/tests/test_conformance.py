"""Crafter and its survivor under the protocol's conformance suite."""

from __future__ import annotations

import asyncio

import pytest

from wsap_check import AgentTests, GameAdapterTests
from wsap_core import Action, ActionResult, Context, World
from wsap_crafter.plugin import wsap_adapters, wsap_agents


class TestCrafter(GameAdapterTests):
    @pytest.fixture
    def game(self) -> object:
        (spec,) = wsap_adapters()
        return spec


class TestSurvivor(AgentTests):
    @pytest.fixture
    def agent(self) -> object:
        (spec,) = wsap_agents()
        return spec

    @pytest.fixture
    def game(self) -> object:
        (spec,) = wsap_adapters()
        return spec


def test_a_player_can_look_around_through_its_seat_without_a_step_of_the_game() -> None:
    async def look() -> tuple[ActionResult, int]:
        (spec,) = wsap_adapters()
        seat = World.create(spec, Context.create(1)).open_seat("me")
        result = await seat.act(Action("look", {"target": "north"}))
        return result, (await seat.observe()).step

    result, step = asyncio.run(look())
    assert result.success
    assert result.message.startswith("To the north")
    assert step == 0
