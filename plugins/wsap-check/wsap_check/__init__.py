"""The conformance suite: checks games and agents against the protocol.

`run_checks` returns a report; `GameAdapterTests` and `AgentTests` are the same checks as pytest classes, the only part
that needs pytest. `ManualClock` and `plugin_host` help with tests of your own.

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
    from wsap_check.backends import BackendTests as BackendTests
    from wsap_check.checks.agents import AgentSubject as AgentSubject
    from wsap_check.classes import AgentTests as AgentTests
    from wsap_check.classes import GameAdapterTests as GameAdapterTests
    from wsap_check.findings import CheckOutcome as CheckOutcome
    from wsap_check.findings import Finding as Finding
    from wsap_check.findings import Report as Report
    from wsap_check.hosts import IsolatedHost as IsolatedHost
    from wsap_check.hosts import ManualClock as ManualClock
    from wsap_check.hosts import plugin_host as plugin_host
    from wsap_check.memories import MemoryTests as MemoryTests
    from wsap_check.memories import ToolTests as ToolTests
    from wsap_check.subject import Check as Check
    from wsap_check.subject import Subject as Subject
    from wsap_check.suite import AGENT_CHECKS as AGENT_CHECKS
    from wsap_check.suite import CHECKS as CHECKS
    from wsap_check.suite import run_agent_checks as run_agent_checks
    from wsap_check.suite import run_checks as run_checks

# Imported on first use: registering the command stays light, and only the classes need pytest.
_MODULES = {
    "agents": ("AgentSubject",),
    "backends": ("BackendTests",),
    "classes": ("AgentTests", "GameAdapterTests"),
    "findings": ("CheckOutcome", "Finding", "Report"),
    "hosts": ("IsolatedHost", "ManualClock", "plugin_host"),
    "memories": ("MemoryTests", "ToolTests"),
    "subject": ("Check", "Subject"),
    "suite": ("AGENT_CHECKS", "CHECKS", "run_agent_checks", "run_checks"),
}


def __getattr__(name: str) -> Any:
    # Any: the names have every kind of type; type checkers read the imports above.
    for module, names in _MODULES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
