"""MiniGrid and its finder under the protocol's conformance suite."""

from __future__ import annotations

import pytest

from wsap_check import AgentTests, GameAdapterTests
from wsap_minigrid.plugin import wsap_adapters, wsap_agents


class TestMiniGrid(GameAdapterTests):
    @pytest.fixture
    def game(self) -> object:
        (spec,) = wsap_adapters()
        return spec


class TestFinder(AgentTests):
    @pytest.fixture
    def agent(self) -> object:
        (spec,) = wsap_agents()
        return spec

    @pytest.fixture
    def game(self) -> object:
        (spec,) = wsap_adapters()
        return spec
