"""Starbound and its settler under the protocol's conformance suite."""

from __future__ import annotations

import pytest

from wsap_check import AgentTests, GameAdapterTests
from wsap_starbound.plugin import wsap_adapters, wsap_agents


@pytest.mark.slow
class TestStarbound(GameAdapterTests):
    @pytest.fixture
    def game(self) -> object:
        (spec,) = wsap_adapters()
        return spec


@pytest.mark.slow
class TestSettler(AgentTests):
    @pytest.fixture
    def agent(self) -> object:
        (spec,) = wsap_agents()
        return spec

    @pytest.fixture
    def game(self) -> object:
        (spec,) = wsap_adapters()
        return spec
