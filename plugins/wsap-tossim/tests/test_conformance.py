"""The town under the protocol's conformance suite, small, so that it is quick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from wsap_check import GameAdapterTests
from wsap_tossim.plugin import wsap_adapters


class TestTown(GameAdapterTests):
    @pytest.fixture
    def game(self) -> object:
        (spec,) = wsap_adapters()
        return spec

    @pytest.fixture
    def config(self) -> Mapping[str, Any]:
        return {"mode": "five", "rules": "quick"}

    @pytest.fixture
    def steps(self) -> int:
        return 12

    @pytest.mark.slow
    def test_snapshot_continues(self, subject: object) -> None:
        """Seven seats go on from four moments; `test_snapshot_elsewhere` goes on from one, and is quick."""
        super().test_snapshot_continues(subject)  # type: ignore[misc]  # made of the table of checks

    @pytest.mark.slow
    def test_secrets(self, subject: object) -> None:
        """Every player's papers are rewritten after each of forty moves, and six others looked at."""
        super().test_secrets(subject)  # type: ignore[misc]  # made of the table of checks

    @pytest.mark.slow
    def test_other_process(self, subject: object) -> None:
        """Whole games in another process; tests/turns has the order of hashes in short ones."""
        super().test_other_process(subject)  # type: ignore[misc]  # made of the table of checks

    @pytest.mark.slow
    def test_reset(self, subject: object) -> None:
        """Whole games after others; `test_same_seed` plays two."""
        super().test_reset(subject)  # type: ignore[misc]  # made of the table of checks

    @pytest.mark.slow
    def test_independent(self, subject: object) -> None:
        """Two worlds side by side, seven seats each."""
        super().test_independent(subject)  # type: ignore[misc]  # made of the table of checks
