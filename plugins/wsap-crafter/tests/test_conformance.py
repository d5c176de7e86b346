"""Crafter and its survivor under the protocol's conformance suite."""

from __future__ import annotations

import pytest

from wsap_core.testing import AgentTests, GameAdapterTests
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
