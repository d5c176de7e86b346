"""The conformance suite on real worlds and agents, as functions, as pytest classes and as `wsap check`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wsap_check import (
    AGENT_CHECKS,
    CHECKS,
    AgentTests,
    GameAdapterTests,
    IsolatedHost,
    ManualClock,
    Subject,
    plugin_host,
    run_agent_checks,
    run_checks,
)
from wsap_core import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    AdapterSpec,
    AgentSpec,
    Goal,
    Observation,
    ParamDef,
    Possible,
)
from wsap_core.authoring.rounds import RoundGame
from wsap_core.builtin.echo import EchoWorld
from wsap_core.cli import main
from wsap_core.errors import ConfigError, PluginError, UnknownNameError, UsageError
from wsap_core.loading import load_object
from wsap_core.protocol.values import JsonValue
from wsap_core.references import load_adapter_spec

BROKEN = Path(__file__).parent / "broken"
MEADOW: AdapterSpec = load_object(f"{BROKEN / 'meadow.py'}:SPEC")
Meadow: Any = MEADOW.factory


@pytest.mark.slow
def test_the_kernels_own_world_passes_every_check() -> None:
    report = run_checks("echo", steps=100, host=plugin_host())
    assert report.ok, report.to_text()
    assert [f.check for f in report.findings] == ["seeds-matter"]  # there is no chance in it, as it says


def test_a_game_that_nobody_can_make_is_told_once() -> None:
    with pytest.raises(ConfigError, match="length"):
        run_checks("echo", config={"length": "long"}, host=plugin_host())

    with pytest.raises(ConfigError, match="Did you mean 'length'"):
        run_checks("echo", config={"lenght": 3}, host=plugin_host())

    class Broken(EchoWorld):
        def __init__(self) -> None:
            raise RuntimeError("no echo here")

    with pytest.raises(PluginError, match="no echo here"):
        run_checks(Broken)


def test_one_object_is_not_enough_for_checks_that_make_many_worlds() -> None:
    with pytest.raises(UsageError, match="class or a factory"):
        run_checks(Meadow())


def test_a_misspelt_check_is_told() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'vision-cone'"):
        run_checks(MEADOW, only=["vision-con"])


def test_a_subset_of_the_checks_runs_alone() -> None:
    report = run_checks(MEADOW, only=["done", "members"])
    assert [check.name for check in report.checks] == ["members", "done"]


def test_the_text_limit_is_the_callers() -> None:
    report = run_checks(MEADOW, only=["text"], text_limit=100)
    (finding,) = report.findings
    assert "the limit is 100" in finding.message
    assert finding.where.startswith("seed 0, step ")


def test_a_world_whose_seeds_give_one_trajectory_is_warned_about_and_passes() -> None:
    class OneDay(Meadow):  # type: ignore[misc]
        def reset(self, seed: int | None = None) -> Observation:
            return super().reset(0)  # type: ignore[no-any-return]

    report = run_checks(replace(MEADOW, factory=OneDay), steps=60, only=["same-seed", "seeds-matter"])
    assert report.ok
    assert [(f.check, f.severity) for f in report.findings] == [("seeds-matter", "warning")]


def test_a_world_whose_first_episode_is_of_another_seed_is_warned_about() -> None:
    class LateSeed(Meadow):  # type: ignore[misc]
        def __init__(self, context: object = None) -> None:
            super().__init__()

    report = run_checks(replace(MEADOW, factory=LateSeed), seed=5, only=["first-episode"])
    assert [(f.check, f.severity) for f in report.findings] == [("first-episode", "warning")]


@pytest.mark.slow
def test_bad_luck_that_is_told_as_an_event_is_not_a_refusal() -> None:
    from wsap_core import Event

    class Windy(Meadow):  # type: ignore[misc]
        kind = "chance"

        def result(self, result: ActionResult) -> ActionResult:
            if self._random.random() < 0.3:
                events = [Event("The wind is in the way.", self.kind)]
                self.event = events[0].description
                seen = replace(result.observation, recent_events=events)
                return replace(result, success=False, message="The wind is in the way.", observation=seen)
            return result

    class Rude(Windy):
        kind = "info"

    assert run_checks(replace(MEADOW, factory=Windy), only=["available"]).ok
    assert not run_checks(replace(MEADOW, factory=Rude), only=["available"]).ok


def test_a_class_made_inside_a_function_is_checked_but_for_other_processes() -> None:
    class Here(Meadow):  # type: ignore[misc]
        pass

    (outcome,) = run_checks(replace(MEADOW, factory=Here), only=["other-process"]).checks
    assert outcome.status == "skipped"
    assert "inside a function" in outcome.reason


@pytest.mark.slow
def test_the_checks_run_where_an_event_loop_runs_already() -> None:
    async def notebook() -> bool:
        return run_checks("echo", steps=20, subprocesses=False, host=plugin_host()).ok

    assert asyncio.run(notebook())


class Asynchronous:
    """A world with an engine of its own somewhere, that declares nothing."""

    game_description = "Something ticks somewhere else."
    action_space = ActionSpace([ActionDef("listen", "Listen")])

    def __init__(self) -> None:
        self.ticks = 0

    async def observe(self) -> Observation:
        await asyncio.sleep(0)
        return Observation(step=self.ticks)

    async def act(self, action: Action) -> ActionResult:
        await asyncio.sleep(0)
        if action != Action("listen"):
            return ActionResult(False, "One can only listen.", observation=Observation(step=self.ticks))
        self.ticks += 1
        return ActionResult(True, "Tick.", observation=Observation(step=self.ticks))

    async def reset(self) -> Observation:
        self.ticks = 0
        return Observation()


class Silent(Asynchronous):
    async def act(self, action: Action) -> ActionResult:
        await asyncio.Event().wait()
        raise AssertionError


@pytest.mark.slow
def test_an_asynchronous_world_that_declares_nothing_passes_what_applies() -> None:
    report = run_checks(Asynchronous, steps=50)
    assert [(finding.check, finding.severity) for finding in report.findings] == [("done", "warning")]  # it has no end
    assert report.count("passed") >= 15


def test_a_world_that_never_answers_is_stuck_and_no_test_hangs() -> None:
    check = next(c for c in CHECKS if c.name == "play")
    (finding,) = check(Subject(load_adapter_spec(Silent), patience=0.05))
    assert "stuck" in finding.message
    assert "seat-1 is acting" in finding.message


class Pondering(Asynchronous):
    async def act(self, action: Action) -> ActionResult:
        if self.ticks == 2:
            await asyncio.to_thread(self._ponder)
        return await super().act(action)

    def _ponder(self) -> None:
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass


def test_a_world_that_is_only_slow_is_not_stuck() -> None:
    check = next(c for c in CHECKS if c.name == "play")
    assert list(check(Subject(load_adapter_spec(Pondering), steps=4, patience=0.1))) == []


def test_a_check_is_a_function_of_a_subject() -> None:
    check = next(c for c in CHECKS if c.name == "vision-range")
    assert check(Subject(MEADOW, steps=50)) == []


def test_a_report_says_the_same_as_text_and_as_json() -> None:
    report = run_checks(replace(MEADOW, achievements=()), steps=100, only=["achievements", "turns", "done"])
    data = json.loads(json.dumps(report.to_json()))
    assert (data["ok"], data["passed"], data["failed"], data["skipped"]) == (False, 1, 1, 1)
    assert data["checks"][2]["findings"][0]["check"] == "achievements"
    text = report.to_text()
    assert "FAIL  achievements" in text
    assert "-     turns" in text
    assert text.endswith("meadow fails 1 of 2 checks.")


def test_what_a_game_says_reaches_no_terminal_raw() -> None:
    class Loud(Meadow):  # type: ignore[misc]
        def act(self, action: Action) -> ActionResult:
            return ActionResult(True, "\x1b[2J\x07done", observation=self.observe())

    text = run_checks(replace(MEADOW, factory=Loud), only=["undeclared-actions"]).to_text()
    assert "done" in text
    assert "\x1b" not in text
    assert "\x07" not in text


# --- agents -------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["random", "random-legal", "always"])
def test_the_kernels_own_agents_pass_every_check(agent: str) -> None:
    report = run_agent_checks(agent, host=plugin_host())
    assert report.findings == (), report.to_text()


class Sound:
    """An agent that keeps its promises."""

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None:
        self.names = action_space.names

    def decide(self, observation: Observation) -> Action:
        return Action("wait")

    def reflect(self, result: ActionResult) -> None:
        pass

    def plan(self, goals: list[Goal]) -> list[str]:
        return []


class Meddling(Sound):
    def decide(self, observation: Observation) -> Action:
        observation.status["seen"] = True  # type: ignore[index]
        return Action("wait")


class Inventive(Sound):
    def decide(self, observation: Observation) -> Action:
        return Action("fly")


class Talkative(Sound):
    def decide(self, observation: Observation) -> Action:
        return "wait"  # type: ignore[return-value]


class Grudging(Sound):
    def reflect(self, result: ActionResult) -> None:
        result.observation.status["grudge"] = 1  # type: ignore[index]


class Thoughtful(Sound):
    async def decide(self, observation: Observation) -> Action:  # type: ignore[override]
        await asyncio.sleep(0)
        return Action("wait")


class Planless(Sound):
    plan = None  # type: ignore[assignment]


class Fickle(Sound):
    count = 0

    def decide(self, observation: Observation) -> Action:
        Fickle.count += 1
        return Action("speak", {"text": str(Fickle.count)})


class Forgetful(Sound):
    said = 0

    def decide(self, observation: Observation) -> Action:
        self.said += 1
        return Action("speak", {"text": str(self.said)})

    def snapshot(self) -> bytes:
        return b"1"

    def restore(self, data: bytes) -> None:
        pass


@pytest.mark.parametrize(
    ("agent", "checks"),
    [
        (Sound, set()),
        (Thoughtful, set()),
        (Meddling, {"agent-decisions"}),
        (Inventive, {"agent-decisions"}),
        (Talkative, {"agent-decisions"}),
        (Grudging, {"agent-reflection"}),
        (Planless, {"agent-members"}),
        (Fickle, {"agent-seed"}),
        (Forgetful, {"agent-snapshot"}),
    ],
)
def test_a_broken_agent_fails_the_checks_that_are_about_its_fault(agent: type[Sound], checks: set[str]) -> None:
    abilities = ("snapshot", "seed") if agent is Forgetful else ("seed",)
    report = run_agent_checks(AgentSpec("x", "X.", agent, abilities), host=plugin_host())  # type: ignore[arg-type]
    assert {finding.check for finding in report.findings} == checks


def test_the_page_about_checking_lists_every_check_as_it_describes_itself() -> None:
    page = (Path(__file__).parents[3] / "docs/how-to/check-your-game.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{check.name}` | {check.summary} |" for check in (*CHECKS, *AGENT_CHECKS)]


# --- as pytest classes ----------------------------------------------------------------------------


@pytest.mark.parametrize(("tests", "checks"), [(GameAdapterTests, CHECKS), (AgentTests, AGENT_CHECKS)])
def test_every_check_is_a_test_of_the_class_and_says_the_same(tests: type, checks: Any) -> None:
    methods = {name: getattr(tests, name).__doc__ for name in vars(tests) if name.startswith("test_")}
    names = [f"test_{check.name.removeprefix('agent-').replace('-', '_')}" for check in checks]
    assert list(methods.items()) == list(zip(names, (check.summary for check in checks), strict=True))


def test_the_tests_of_a_class_can_be_taken_over_one_by_one() -> None:
    class Own(GameAdapterTests):
        def test_done(self, subject: object) -> None:
            pytest.skip("it never ends")

    assert Own.test_done is not GameAdapterTests.test_done  # type: ignore[attr-defined]
    assert Own.test_reset is GameAdapterTests.test_reset  # type: ignore[attr-defined]


class TestMeadow(GameAdapterTests):
    @pytest.fixture
    def game(self) -> object:
        return MEADOW

    @pytest.fixture
    def steps(self) -> int:
        return 60


class TestRandomAgent(AgentTests):
    @pytest.fixture
    def agent(self) -> object:
        return "wsap_core.builtin.random_agents:create_random"


THIRD_PARTY = """
import pytest
from wsap_check import GameAdapterTests
from wsap_core.builtin.echo import EchoWorld

class Mine(EchoWorld):
    def act(self, action):
        if action.name not in ("speak", "wait"):
            raise KeyError(action.name)
        return super().act(action)

class TestMine(GameAdapterTests):
    @pytest.fixture
    def game(self):
        return Mine
"""


@pytest.mark.slow
def test_a_third_party_needs_nothing_but_pytest_and_a_class(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(THIRD_PARTY, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert "1 failed" in done.stdout, done.stdout
    assert "TestMine.test_undeclared_actions" in done.stdout.replace("::", ".")
    assert "act(Action('speakx')) raised KeyError: 'speakx' at test_mine.py:9; it must refuse" in done.stdout


def test_the_functions_of_the_suite_need_no_pytest() -> None:
    code = "import sys\nfrom wsap_check import run_checks, plugin_host\nassert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


# --- wsap check -------------------------------------------------------------------------------------


def run_command(*arguments: str) -> int:
    try:
        return main(["check", *arguments])
    except SystemExit as done:
        return int(done.code or 0)


def test_wsap_check_ends_with_0_for_a_sound_game_and_tells_each_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("echo", "--steps", "40", "--only", "done", "--only", "turns") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok    done")
    assert lines[1].endswith("skipped: there is one seat")
    assert lines[-1] == "echo conforms to the protocol: 1 check passed."


def test_wsap_check_ends_with_1_for_a_broken_game_in_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    place = f"{BROKEN / 'meadow_faults.py'}:UndeclaredRaises"
    assert run_command(place, "--steps", "20", "--only", "undeclared-actions", "--json") == 1
    data = json.loads(capsys.readouterr().out)
    assert data["ok"] is False
    assert data["subject"] == "undeclared-raises"


def test_wsap_check_hands_options_to_the_game(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("echo", "--option", "length=3", "--only", "done", "--steps", "1") == 0
    assert run_command("echo", "--option", "length=long") == 2
    assert "length='long'" in capsys.readouterr().err


def test_wsap_check_tells_what_is_misspelt(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command("ecko") == 2
    assert "Did you mean 'echo'" in capsys.readouterr().err


# --- around a world -----------------------------------------------------------------------------------


def test_a_manual_clock_wakes_sleepers_in_the_order_of_time() -> None:
    async def play() -> tuple[list[tuple[str, float]], int]:
        clock, woken = ManualClock(), list[tuple[str, float]]()

        async def sleeper(name: str, seconds: float) -> None:
            await clock.sleep(seconds)
            woken.append((name, clock.now()))
            if name == "a":
                await sleeper("again", 1.0)

        tasks = [asyncio.create_task(sleeper(n, s)) for n, s in [("c", 9.0), ("b", 2.0), ("a", 1.0)]]
        await asyncio.sleep(0)
        await clock.advance(5.0)
        left = clock.sleeping
        for task in tasks:
            task.cancel()
        return woken, left

    woken, left = asyncio.run(play())
    assert woken == [("a", 1.0), ("b", 2.0), ("again", 2.0)]
    assert left == 1


def test_a_plugin_host_for_tests_has_what_it_is_given_and_finds_nothing_else() -> None:
    host = plugin_host(MEADOW, AgentSpec("still", "Waits.", Sound))
    assert host.games.get("meadow") is MEADOW
    assert host.agents.get("still").factory is Sound
    assert "echo" in host.games.names()
    assert "crafter" not in host.games.names()
    with pytest.raises(PluginError, match="does not load"):
        IsolatedHost.discovered()


def test_a_plugin_host_takes_whole_plugins() -> None:
    from wsap_core.builtin import plugin

    host = plugin_host(plugin, builtin=False)
    assert "echo" in host.games.names()


class Forever(RoundGame):
    """Two count in turn, without an end, so that one of them always waits for its result."""

    game_description, action_space = "Count.", ActionSpace([ActionDef("count", "Say the next number")])
    seats = ("ann", "bob")

    def begin(self) -> None:
        self.number = 0

    def to_move(self) -> tuple[str, ...]:
        return (self.seats[self.number % 2],)

    def legal(self, seat: str) -> tuple[str, ...]:
        return ("count",)

    def apply(self, moves: Mapping[str, Action]) -> None:
        self.number += 1

    def see(self, seat: str) -> Observation:
        return Observation(status={"number": self.number})

    def returns(self) -> dict[str, float]:
        return {"ann": 0.0, "bob": 0.0}

    def dump(self) -> int:
        return self.number

    def load(self, data: JsonValue) -> None:
        self.number = int(data)


@pytest.mark.slow
def test_a_game_in_turns_without_an_end_is_checked_in_bounded_time() -> None:
    report = run_checks(Forever, steps=5, only=["play", "turns", "snapshot-continues", "legal-moves"])
    assert report.findings == ()
    assert report.count("passed") == 4


def test_a_restored_game_that_asks_the_seats_of_the_round_before_it_was_restored_is_found() -> None:
    class Rounds(RoundGame):
        """All but one seat move at once; which one rests depends on the round."""

        game_description = "Say a word."
        action_space = ActionSpace([ActionDef("a", "Say a"), ActionDef("b", "Say b")])
        seats = ("ann", "bob", "cid")
        timing = "phased"

        def begin(self) -> None:
            self.said = 0

        def to_move(self) -> tuple[str, ...]:
            return tuple(s for s in self.seats if s != self.seats[self.round % 3]) if self.round < 9 else ()

        def legal(self, seat: str) -> tuple[str, ...]:
            return ("a", "b")

        def apply(self, moves: Mapping[str, Action]) -> None:
            self.said += sum(action.name == "a" for action in moves.values())

        def see(self, seat: str) -> Observation:
            return Observation(status={"said": self.said})

        def returns(self) -> dict[str, float]:
            return dict.fromkeys(self.seats, float(self.said))

        def dump(self) -> JsonValue:
            return self.said

        def load(self, data: JsonValue) -> None:
            self.said = int(data)

    class Stale(Rounds):
        """Asks, after a restore, the seats that moved before it."""

        def restore(self, data: bytes) -> None:
            before = tuple(self.to_move())
            super().restore(data)
            object.__setattr__(self, "_named", before)  # past the guard of the kit's names

    only = ["snapshot-continues"]
    assert run_checks(Rounds, steps=60, only=only).findings == ()
    (finding,) = run_checks(Stale, steps=60, only=only).findings
    assert finding.message.startswith("A used world restored from a snapshot is not what the saved one was: ")
    assert finding.where == "snapshot at seed 0, step 0"


def test_a_default_action_that_is_refused_when_a_seat_decides_is_found_with_the_seat_and_the_step() -> None:
    class Turns(RoundGame):
        """Bid one or two coins in turn; `legal` answers for the seat that is to move alone."""

        game_description = "Bid."
        action_space = ActionSpace([ActionDef("bid", "Bid", [ParamDef("coins", "0|1|2")])])
        seats = ("ann", "bob")

        def begin(self) -> None:
            self.bids = 0

        def to_move(self) -> tuple[str, ...]:
            return (self.seats[self.bids % 2],) if self.bids < 30 else ()

        def legal(self, seat: str) -> list[Possible]:
            assert seat in self.to_move(), f"{seat} is not to move"
            return [Possible("bid", choices={"coins": ["1", "2"]})]

        def apply(self, moves: Mapping[str, Action]) -> None:
            self.bids += 1

        def see(self, seat: str) -> Observation:
            return Observation(status={"bids": self.bids})

        def returns(self) -> dict[str, float]:
            return dict.fromkeys(self.seats, 0.0)

        def dump(self) -> JsonValue:
            return self.bids

        def load(self, data: JsonValue) -> None:
            self.bids = int(data)

    class Mean(Turns):
        """Bids nothing for a seat that is late, which is not possible."""

        def default_action(self, seat: str) -> Action:
            return Action("bid", {"coins": "0"})

    only = ["action-space"]
    assert run_checks(Turns, steps=40, only=only).findings == ()
    (finding,) = run_checks(Mean, steps=40, only=only).findings
    assert finding.message.startswith("The default action is not legal: ")
    assert finding.where == "seed 0, step 0, seat ann, action bid(coins='0')"


@pytest.mark.slow
def test_a_seat_that_is_out_before_a_message_arrives_need_not_hear_it() -> None:
    class Knockout(RoundGame):
        """One seat drops out in every round, the last seat first."""

        game_description = "Stay in."
        action_space = ActionSpace([ActionDef("stay", "Stay")])
        seats = ("ann", "bob", "cid", "dee", "eve")
        timing = "simultaneous"
        talks = True

        def begin(self) -> None:
            self.played = 0

        def to_move(self) -> tuple[str, ...]:
            return tuple(self.seats) if self.played < 4 else ()

        def out(self, seat: str) -> bool:
            return self.seats.index(seat) >= 5 - self.played

        def legal(self, seat: str) -> list[str]:
            assert not self.out(seat)
            return ["stay"]

        def apply(self, moves: Mapping[str, Action]) -> None:
            self.played += 1

        def see(self, seat: str) -> Observation:
            return Observation(status={"played": self.played})

        def returns(self) -> dict[str, float]:
            return dict.fromkeys(self.seats, 0.0)

        def dump(self) -> JsonValue:
            return self.played

        def load(self, data: JsonValue) -> None:
            self.played = int(data)

    report = run_checks(Knockout, steps=40, subprocesses=False)
    assert report.ok, report.to_text()


@pytest.mark.parametrize("method", ["act", "reset"])
@pytest.mark.slow
def test_an_endless_loop_is_named_with_its_call_file_and_line(method: str) -> None:
    class Endless(EchoWorld):
        """Loops for ever once something has been said."""

        def act(self, action: Action) -> ActionResult:
            while method == "act" and self._step == 2:
                pass
            return super().act(action)

        def reset(self, seed: int | None = None) -> Observation:
            while method == "reset" and self._step > 2:
                pass
            return super().reset(seed)

    report = run_checks(Endless, steps=30, seconds=3, only=["members", "play", "reset", "done"], subprocesses=False)
    (finding,) = report.findings
    line = Endless.act.__code__.co_firstlineno if method == "act" else Endless.reset.__code__.co_firstlineno
    assert finding.message.startswith("The check did not end within 3 s: ")
    assert any(f"test_conformance.py:{line + offset}" in finding.message for offset in (1, 2)), finding.message
    assert f" {method}(" in finding.message
    assert [c.status for c in report.checks][-1] == "skipped" or method == "reset"
