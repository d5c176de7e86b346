"""The conformance suite: holds games and agents to what the protocol promises.

`run_checks` gives a report; `GameAdapterTests` and `AgentTests` are the same as pytest classes, and
the only part that needs pytest. `ManualClock` and `plugin_host` serve tests of one's own.

    from wsap_check import GameAdapterTests

    class TestMyGame(GameAdapterTests):
        @pytest.fixture
        def game(self):
            return MyGame
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsap_check.agents import AGENT_CHECKS, AgentSubject
    from wsap_check.classes import AgentTests, GameAdapterTests
    from wsap_check.findings import CheckOutcome, Finding, Report
    from wsap_check.hosts import IsolatedHost, ManualClock, plugin_host
    from wsap_check.memories import MemoryTests, ToolTests
    from wsap_check.subject import Check, Subject
    from wsap_check.suite import CHECKS, run_agent_checks, run_checks

_HOMES = {
    "AGENT_CHECKS": "agents",
    "AgentSubject": "agents",
    "AgentTests": "classes",
    "CHECKS": "suite",
    "Check": "subject",
    "CheckOutcome": "findings",
    "Finding": "findings",
    "GameAdapterTests": "classes",
    "IsolatedHost": "hosts",
    "ManualClock": "hosts",
    "MemoryTests": "memories",
    "Report": "findings",
    "Subject": "subject",
    "ToolTests": "memories",
    "plugin_host": "hosts",
    "run_agent_checks": "suite",
    "run_checks": "suite",
}

__all__ = [
    "AGENT_CHECKS",
    "CHECKS",
    "AgentSubject",
    "AgentTests",
    "Check",
    "CheckOutcome",
    "Finding",
    "GameAdapterTests",
    "IsolatedHost",
    "ManualClock",
    "MemoryTests",
    "Report",
    "Subject",
    "ToolTests",
    "plugin_host",
    "run_agent_checks",
    "run_checks",
]


def __getattr__(name: str) -> Any:
    # Any: the names have every kind of type; type checkers read the imports above.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
