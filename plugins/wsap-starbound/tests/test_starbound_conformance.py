"""Starbound and its settler under the protocol's conformance suite, in short episodes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from wsap_check import AgentTests, GameAdapterTests
from wsap_starbound.plugin import wsap_adapters, wsap_agents


@pytest.mark.slow
class TestStarbound(GameAdapterTests):
    @pytest.fixture
    def game(self) -> object:
        (spec,) = wsap_adapters()
        return spec

    @pytest.fixture
    def config(self) -> Mapping[str, object]:
        return {"length": "40"}

    @pytest.fixture
    def steps(self) -> int:
        return 40


@pytest.mark.slow
class TestTwoSeats(TestStarbound):
    @pytest.fixture
    def config(self) -> Mapping[str, object]:
        return {"length": "30", "seats": "2"}


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
