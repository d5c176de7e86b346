"""The suite as pytest classes with fixtures: one test per check."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from wsap_check.checks.agents import AgentSubject
from wsap_check.subject import Check, Subject
from wsap_check.suite import AGENT_CHECKS, CHECKS, game_spec
from wsap_core.errors import UsageError
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.specs import AdapterSpec

C = TypeVar("C", bound=type)


def _tests_of(checks: Sequence[Check]) -> Callable[[C], C]:
    """Return a decorator that adds a test for each check: `done` becomes `test_done`."""

    def give(cls: C) -> C:
        for check in checks:
            name = f"test_{check.name.removeprefix('agent-').replace('-', '_')}"
            setattr(cls, name, _test_of(check, f"{cls.__qualname__}.{name}"))
        return cls

    return give


def _test_of(check: Check, qualified_name: str) -> Callable[[object, object], None]:
    def test(self: object, subject: object) -> None:
        outcome = check.run(subject)
        if outcome.status == "skipped":
            pytest.skip(outcome.reason)
        errors = [finding.to_text() for finding in outcome.findings if finding.severity == "error"]
        if errors:
            pytest.fail(f"{check.name}: {check.summary}\n" + "\n".join(errors), pytrace=False)

    test.__doc__, test.__qualname__, test.__name__ = check.summary, qualified_name, qualified_name.split(".")[-1]
    return test


def _fixture(value: object) -> Any:
    """Return a fixture with a default value."""
    return pytest.fixture(lambda self: value)


@_tests_of(CHECKS)
class GameAdapterTests:
    """Checks a game against the protocol, one test per check.

    Subclass it as `class TestMyGame(GameAdapterTests)` with a fixture `game`: a class, a factory, a spec,
    `./file.py:Class` or a registered name. The fixtures `config`, `seed`, `steps` and `text_limit` can be
    overridden, too (see `run_checks`). Warnings do not fail; `wsap check` shows them.
    """

    @pytest.fixture
    def game(self) -> object:
        """Return the game; subclasses override it."""
        raise UsageError("Define a fixture `game` that returns the class, factory or spec to check.")

    config = _fixture({})
    seed = _fixture(0)
    steps = _fixture(200)
    text_limit = _fixture(8_000)

    @pytest.fixture
    def subject(self, game: object, config: Mapping[str, Any], seed: int, steps: int, text_limit: int) -> Subject:
        """Return the subject of the checks."""
        return Subject(game_spec(game), seed, steps, config, text_limit)


@_tests_of(AGENT_CHECKS)
class AgentTests:
    """Checks an agent against the protocol, one test per check.

    Subclass it as `class TestMyAgent(AgentTests)` with a fixture `agent`: a class, a factory, a spec,
    `./file.py:Class` or a registered name; and, unless it plays any game, a fixture `game` (by default `echo`).
    """

    @pytest.fixture
    def agent(self) -> object:
        """Return the agent; subclasses override it."""
        raise UsageError("Define a fixture `agent` that returns the class, factory or spec to check.")

    game = _fixture(
        AdapterSpec("echo", "Echo.", "wsap_core.builtin.echo:EchoWorld", abilities=("seed", "snapshot", "render"))
    )
    config = _fixture({})

    @pytest.fixture
    def subject(self, agent: object, game: object, config: Mapping[str, Any]) -> AgentSubject:
        """Return the subject of the checks."""
        return AgentSubject(load_agent_spec(agent), load_adapter_spec(game), config=config)
