"""What is said where a game raises: the call that was made, the file and the line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wsap_check import run_agent_checks, run_checks
from wsap_check.raised import called, describe
from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Goal, Observation
from wsap_core.builtin.echo import EchoWorld
from wsap_core.errors import UsageError, WorldError

HERE = Path(__file__)


def line_of(text: str) -> int:
    """The number of the line here that ends with a remark."""
    (number,) = (n for n, line in enumerate(HERE.read_text("utf-8").splitlines(), 1) if line.endswith(f"# {text}"))
    return number


class Raising(EchoWorld):
    def act(self, action: Action) -> ActionResult:
        if action.name == "speak":
            return self.spoken(action)
        return super().act(action)

    def spoken(self, action: Action) -> ActionResult:
        raise KeyError(action.parameters["text"])  # spoken


class RaisingLibrary(EchoWorld):
    def observe(self) -> Observation:
        json.loads("{")  # observed
        raise AssertionError


class RaisingReset(EchoWorld):
    def reset(self, seed: int | None = None) -> Observation:
        raise ZeroDivisionError  # reset


class Refusing(EchoWorld):
    def reset(self, seed: int | None = None) -> Observation:
        raise UsageError("Not today.")  # refusing


@pytest.mark.parametrize(
    ("game", "call", "said", "line"),
    [
        (Raising, r"act\(Action\('speak', \{'text': .*\}\)\)", "KeyError: ", "spoken"),
        (RaisingLibrary, r"reset\(0\)", "JSONDecodeError: ", "observed"),
        (RaisingReset, r"reset\(0\)", "ZeroDivisionError: no message", "reset"),
        (Refusing, r"reset\(0\)", "UsageError: Not today.", "refusing"),
    ],
)
def test_a_finding_names_the_call_the_exception_the_file_and_the_line(
    game: type, call: str, said: str, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(HERE.parent)
    report = run_checks(game, steps=20, only=["play"], subprocesses=False)
    (finding,) = report.findings
    assert re.fullmatch(f"{call} raised {said}.* at test_raised.py:{line_of(line)}", finding.message), finding.message


def test_a_refusal_by_an_exception_names_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE.parent.parent)

    class Strict(EchoWorld):
        def act(self, action: Action) -> ActionResult:
            if action.name not in ("speak", "wait"):
                raise ValueError(action.name)  # strict
            return super().act(action)

    (finding,) = run_checks(Strict, steps=20, only=["undeclared-actions"]).findings
    place = f"tests/test_raised.py:{line_of('strict')}"
    assert finding.message.startswith(f"act(Action('speakx')) raised ValueError: speakx at {place}, where it should")


def test_an_agent_that_raises_is_named_too() -> None:
    class Confused:
        def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

        def decide(self, observation: Observation) -> Action:
            raise LookupError("where am I?")  # decided

        def reflect(self, result: ActionResult) -> None: ...

        def plan(self, goals: list[Goal]) -> list[str]:
            return []

    report = run_agent_checks(AgentSpec("confused", "Is confused.", Confused))
    said = {f.check: f.message for f in report.findings}["agent-decisions"]
    assert re.match(r"decide\(.*\) raised LookupError: where am I\? at .*test_raised.py:", said)
    assert said.endswith(f":{line_of('decided')}")


def test_what_the_suite_itself_says_of_a_game_is_left_as_it_is() -> None:
    assert describe(WorldError("The game 'x' observed a str, not an Observation.")).startswith("The game 'x' observed")
    assert describe(ValueError("odd")) == "It raised ValueError: odd."


def test_a_call_is_shown_short_and_without_control_characters() -> None:
    assert called("act", Action("go", {"to": "\x1b[2J"})) == r"act(Action('go', {'to': '\x1b[2J'}))"
    assert len(called("restore", b"x" * 10_000)) < 100

    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "Odd" in called("act", Odd())
