"""The scripted backend keeps the protocol of backends."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wsap_check import BackendTests
from wsap_core.seams.model import Backend
from wsap_llm.scripted import ScriptedBackend


class TestScripted(BackendTests):
    @pytest.fixture
    def make_backend(self) -> Callable[[], Backend]:
        return lambda: ScriptedBackend(lambda _: "Hello, all of you.", piece=5)

    @pytest.fixture
    def make_failing(self) -> Callable[[], Backend]:
        return lambda: ScriptedBackend([])
