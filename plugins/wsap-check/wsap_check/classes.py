"""The suite as pytest classes with fixtures: one test for each check in the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pytest

from wsap_check.agents import AgentSubject
from wsap_check.subject import Check, Subject
from wsap_check.suite import AGENT_CHECKS, CHECKS, game_spec
from wsap_core.errors import UsageError
from wsap_core.references import load_adapter_spec, load_agent_spec
from wsap_core.specs import AdapterSpec

C = TypeVar("C", bound=type)


def _tests_of(checks: Sequence[Check]) -> Callable[[C], C]:
    """Give a class a test for each check, named after it: `done` is `test_done`."""

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
    """Return a fixture of this value, for a subclass to give another. Any: pytest's own type, or a method."""
    return pytest.fixture(lambda self: value)


@_tests_of(CHECKS)
class GameAdapterTests:
    """Checks a game against the protocol, one test per check.

    Subclass it as `class TestMyGame(GameAdapterTests)` and give the fixture `game`: a class, a
    factory, a spec, `./file.py:Class` or a registered name. `config`, `seed`, `steps` and
    `text_limit` may be given too. Warnings do not fail; `wsap check` shows them.
    """

    @pytest.fixture
    def game(self) -> object:
        """Return the game: to be given by the subclass."""
        raise UsageError("Give a fixture `game` that returns the class, factory or spec to check.")

    config = _fixture({})
    """The options for every world (Any: as the game takes them)."""
    seed = _fixture(0)
    """Of the first world."""
    steps = _fixture(200)
    """About how many each check plays."""
    text_limit = _fixture(8_000)
    """The most characters that the text of an observation may have."""

    @pytest.fixture
    def subject(self, game: object, config: Mapping[str, Any], seed: int, steps: int, text_limit: int) -> Subject:
        """Return what the checks take."""
        return Subject(game_spec(game), seed, steps, config, text_limit)


@_tests_of(AGENT_CHECKS)
class AgentTests:
    """Checks an agent against the protocol, one test per check.

    Subclass it as `class TestMyAgent(AgentTests)` and give the fixture `agent`: a class, a factory,
    a spec, `./file.py:Class` or a registered name; and, unless it plays everything, `game`.
    """

    @pytest.fixture
    def agent(self) -> object:
        """Return the agent: to be given by the subclass."""
        raise UsageError("Give a fixture `agent` that returns the class, factory or spec to check.")

    game = _fixture(
        AdapterSpec("echo", "Echo.", "wsap_core.builtin.echo:EchoWorld", abilities=("seed", "snapshot", "render"))
    )
    """The world to play in; the kernel's `echo` unless the subclass says otherwise."""
    config = _fixture({})
    """The agent's options (Any: as it takes them)."""

    @pytest.fixture
    def subject(self, agent: object, game: object, config: Mapping[str, Any]) -> AgentSubject:
        """Return what the checks take."""
        return AgentSubject(load_agent_spec(agent), load_adapter_spec(game), config=config)
