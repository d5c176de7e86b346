"""What is said where a game raises: the call that was made, the file and the line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from wsap_check import run_agent_checks, run_checks
from wsap_check.raised import called, describe
from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Goal, Observation
from wsap_core.authoring.rounds import RoundGame
from wsap_core.builtin.echo import EchoWorld
from wsap_core.errors import PluginError, UsageError, WorldError

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
    assert finding.message.startswith(f"act(Action('speakx')) raised ValueError: speakx at {place}; it must refuse")


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


class RaisingAtFirst(EchoWorld):
    def __init__(self) -> None:
        raise KeyError("no map")  # made


class RaisingRules(EchoWorld):
    @property
    def game_description(self) -> str:
        raise OSError("no rules")  # rules


def test_a_game_that_can_not_be_created_says_where_it_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE.parent)
    with pytest.raises(PluginError) as caught:
        run_checks(RaisingAtFirst, steps=20)
    said = f"RaisingAtFirst() raised KeyError: 'no map' at test_raised.py:{line_of('made')}"
    assert str(caught.value) == f"RaisingAtFirst could not be created: {said}"


def test_a_property_that_raises_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE.parent)
    (finding,) = run_checks(RaisingRules, steps=20, only=["members"]).findings
    assert finding.message == f"game_description() raised OSError: no rules at test_raised.py:{line_of('rules')}"


def test_the_place_is_the_authors_own_in_whichever_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_rules.py").write_text("def judge():\n    raise ValueError('unjust')\n")
    (tmp_path / "my_game.py").write_text(
        "from my_rules import judge\nfrom wsap_core.builtin.echo import EchoWorld\n\n\n"
        "class Game(EchoWorld):\n    def act(self, action):\n        judge()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (finding,) = run_checks("my_game:Game", steps=20, only=["play"]).findings
    assert finding.message.endswith(" raised ValueError: unjust at my_rules.py:2")


def test_a_game_that_raises_in_another_process_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "words.txt").write_text("hello\n")
    (tmp_path / "reading.py").write_text(
        "from wsap_core.builtin.echo import EchoWorld\n\n\n"
        "class Game(EchoWorld):\n    def reset(self, seed=None):\n"
        "        open('words.txt').close()\n        return super().reset(seed)\n"
    )
    monkeypatch.chdir(tmp_path)
    (finding,) = run_checks("./reading.py:Game", steps=10, only=["other-process"]).findings
    assert "could not be played: reset(0) raised FileNotFoundError: " in finding.message
    assert finding.message.endswith("reading.py:6")


def test_what_our_code_stumbles_over_is_said_to_be_what_the_game_returned() -> None:
    class Nameless(EchoWorld):
        action_space = ActionSpace(["knock"])  # nameless

    (finding,) = run_checks(Nameless, steps=20, only=["play"]).findings
    place = rf"Nameless at .*test_raised.py:{line_of('nameless') - 1}"
    said = rf"The check can't go on with what {place} returned: AttributeError: 'str' .*, in `.*\.parameters.*`"
    assert re.fullmatch(said, finding.message)


class Unfinished(RoundGame):
    game_description, action_space, seats = "Nothing.", ActionSpace([]), ("ann", "bob")

    def begin(self) -> None: ...

    def to_move(self) -> tuple[str, ...]:
        return ()


def test_a_method_that_the_authoring_kit_needs_and_misses_is_named() -> None:
    with pytest.raises(PluginError, match=r"Unfinished at .*test_raised.py:\d+ has no see\(\) of its own"):
        run_checks(Unfinished)


def test_what_the_authoring_kit_can_not_use_is_shown_with_the_line_that_uses_it() -> None:
    class Vague(Unfinished):
        def to_move(self) -> tuple[str, ...]:
            return 5  # type: ignore[return-value]

    with pytest.raises(PluginError, match=r"what Vague at .* returned: TypeError: .*, in `.*to_move\(\).*`"):
        run_checks(Vague)


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
