"""A model that decides for several steps at once, in the real Crafter, recorded, resumed and played again."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("wsap_crafter")
pytest.importorskip("wsap_nexus")

from hosts import host_with_ours

from wsap_core import PluginHost
from wsap_core.errors import ConfigError
from wsap_core.host import Registration
from wsap_core.protocol.wire import Codec
from wsap_core.seams.model import Request
from wsap_core.specs import BackendSpec
from wsap_crafter.perception.observation import CrafterObservation
from wsap_crafter.plugin import wsap_adapters
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.api import play, resume_run
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.logged import LoggedStep, read_step
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.terminal.plain import summary_lines
from wsap_nexus.terminal.recorded import Recording
from wsap_nexus.terminal.spending import spending_of

STEPS = 240
SEED = 5
DIRECTIONS = ("move_left", "move_up", "move_right", "move_down")
OPTIONS: dict[str, Any] = {"model": "walker/x", "plan": "no", "window": 4}
FAST: dict[str, Any] = {**OPTIONS, "max_steps": 8}


class Walker:
    """A model that reads what it is shown: it takes wood from a tree in front, or walks on, eight steps at a time.

    What it answers depends on the prompt alone, so that it is the same model after a restart.
    """

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def answer(self, request: Request) -> str:
        self.requests.append(request)
        shown = request.messages[-1].text()
        found = re.search(r"^Step (\d+)", shown, re.MULTILINE)
        step = int(found[1]) if found else 0
        possible = shown.partition("POSSIBLE NOW:\n")[2].partition("\n")[0].split(", ")
        turned = step // 25 + shown.count("got no further")
        ways = [d for d in (*DIRECTIONS[turned % 4 :], *DIRECTIONS[: turned % 4]) if d in possible]
        action = "do" if "facing a tree" in shown and "do" in possible else [*ways, "noop"][0]
        several = ', "times": 8' if '"times": 1' in shown else ""
        return f'{{"action": "{action}", "params": {{}}{several}, "reasoning": "on"}}'


@pytest.fixture
def walker() -> Walker:
    return Walker()


@pytest.fixture
def host(walker: Walker) -> PluginHost:
    own = host_with_ours()
    for adapter in wsap_adapters():
        own.games.add(Registration(adapter, "t", "t"))
    backend = BackendSpec("walker", "", lambda context: ScriptedBackend(walker.answer, model="walker/x"))
    own.backends.add(Registration(backend, "t", "t"))
    return own


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def logged(database: str) -> list[LoggedStep]:
    codec = Codec([CrafterObservation])
    with open_store(database) as store:
        (run,) = store.repository.list_runs()
        events = list(store.repository.read_events(run.id, kinds=("step",)))
    return [read_step(e.seq, e.episode, e.step or 0, e.body, codec) for e in events]


@pytest.mark.slow
def test_each_step_is_one_of_the_game_and_the_log_and_only_decisions_cost(
    host: PluginHost, walker: Walker, database: str
) -> None:
    summary = play("crafter", "llm", agent_options=FAST, seed=SEED, steps=STEPS, database=database, host=host)
    steps = logged(database)
    infos = [step.info for step in steps]
    assert len(steps) == summary.steps == STEPS
    played = [step.result.observation.step for step in steps]
    first_died = next(number for number, step in enumerate(steps) if step.result.done) + 1
    assert played == [*range(1, first_died + 1), *range(1, STEPS - first_died + 1)]
    assert [i for i in infos if i is None or i.usage.calls != (0 if i.continued else 1)] == []
    counted = summary.to_json()
    asked = sum(1 for info in infos if info is not None and not info.continued)
    assert counted["usage"]["calls"] == asked == len(walker.requests)
    assert counted["decisions"]["continued"] == STEPS - asked
    assert counted["decisions"]["repaired"] == counted["decisions"]["forced"] == 0
    assert asked < STEPS / 2


def test_what_is_carried_on_is_the_same_action_and_no_step_of_it_failed_before(host: PluginHost, database: str) -> None:
    play("crafter", "llm", agent_options=FAST, seed=SEED, steps=STEPS, database=database, host=host)
    steps = logged(database)
    health = [step.result.observation.status["health"] for step in steps]
    for number in range(1, len(steps)):
        before, now = steps[number - 1], steps[number]
        if now.info is None or not now.info.continued:
            continue
        assert now.action.name == before.action.name
        assert before.result.success
        assert not before.result.achievements
        assert not before.result.observation.recent_events
        assert number < 2 or health[number - 1] >= health[number - 2]


def test_the_same_model_without_steps_is_asked_at_each(host: PluginHost, walker: Walker) -> None:
    summary = play("crafter", "llm", agent_options=OPTIONS, seed=SEED, steps=60, record=False, host=host)
    assert len(walker.requests) == 60
    assert summary.to_json()["decisions"]["continued"] == 0


def plan() -> RunPlan:
    seat = SeatPlan("seat-1", "llm", FAST)
    return RunPlan("crafter", (seat,), seed=SEED, steps=STEPS, snapshot_every=7)


@pytest.mark.parametrize("stop", [2, 13, 15, 100])
@pytest.mark.slow
def test_a_run_goes_on_in_the_middle_of_several_steps_and_asks_nothing_twice(
    stop: int, host: PluginHost, walker: Walker, database: str
) -> None:
    whole = play("crafter", "llm", agent_options=FAST, seed=SEED, steps=STEPS, record=False, host=host)
    asked = len(walker.requests)
    walker.requests.clear()
    controls = Controls()
    taken: list[Any] = []

    def count(step: Any) -> None:
        taken.append(step)
        if len(taken) >= stop:
            controls.stop()

    with open_store(database) as store, start(plan(), host, store, controls=controls, observers=[count]) as session:
        asyncio.run(session.play())
    assert len(taken) == stop
    resumed = resume_run(database=database, host=host)
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert resumed.to_json()["decisions"] == whole.to_json()["decisions"]
    assert len(walker.requests) == asked


def test_some_of_these_stops_are_in_the_middle_of_several_steps(host: PluginHost, database: str) -> None:
    play("crafter", "llm", agent_options=FAST, seed=SEED, steps=101, database=database, host=host)
    steps = logged(database)
    middle = [number for number in (2, 13, 15, 100) if (info := steps[number].info) and info.continued]
    assert len(middle) >= 2


@pytest.mark.slow
def test_a_recorded_run_is_played_again_without_asking(host: PluginHost, walker: Walker, database: str) -> None:
    first = play("crafter", "llm", agent_options=FAST, seed=SEED, steps=STEPS, database=database, host=host)
    asked = len(walker.requests)
    host.backends = type(host.backends)(BackendSpec, "backend", "backends")  # there is nobody left to ask
    with open_store(database) as store:
        again, past = replies_of(str(first.run), store)
        with start(again, host, store, past=past) as session:
            second = asyncio.run(session.play())
    assert len(walker.requests) == asked
    assert second.trajectory_hash == first.trajectory_hash
    assert second.to_json()["decisions"] == first.to_json()["decisions"]


def test_shares_are_of_decisions_and_not_of_the_steps_that_go_on_with_one(host: PluginHost, database: str) -> None:
    summary = play("crafter", "llm", agent_options=FAST, seed=SEED, steps=60, database=database, host=host).to_json()
    asked = summary["usage"]["calls"]
    assert spending_of(summary).decisions == asked < 60
    assert f"decisions for several steps: {asked} for 60 steps" in summary_lines(summary, units={}, catalogue=0)
    with open_store(database) as store:
        recording = Recording(store.repository, store.repository.get_run("last"), host)
        assert recording.stage(60).spending.decisions == asked


def test_a_model_that_can_name_no_step_count_rightly_is_still_understood(host: PluginHost) -> None:
    told: list[str] = []

    def answer(request: Request) -> str:
        told.append(request.messages[-1].text())
        return '{"action": "noop", "params": {}, "times": "as long as it takes", "until": "dawn", "reasoning": ""}'

    backend = BackendSpec("vague", "", lambda context: ScriptedBackend(answer, model="vague/x"))
    host.backends.add(Registration(backend, "t", "t"))
    options = {**FAST, "model": "vague/x"}
    summary = play("crafter", "llm", agent_options=options, seed=SEED, steps=10, record=False, host=host).to_json()
    assert (len(told), summary["decisions"]["repaired"], summary["decisions"]["forced"]) == (10, 0, 0)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"max_steps": 0}, "max_steps must be a whole number from 1 to 64"),
        ({"max_steps": 2.5}, "max_steps must be a whole number from 1 to 64, not 2.5"),
        ({"every": 4}, "has no option 'every'"),
        ({"max_steps": 4, "wake": "hurt"}, "has no option 'wake'"),
        ({"thinking": "auto"}, "thinking must be yes or no, not 'auto'"),
    ],
)
def test_steps_that_make_no_sense_are_refused_in_a_sentence(
    options: dict[str, Any], reason: str, host: PluginHost
) -> None:
    with pytest.raises(ConfigError, match=reason):
        play("crafter", "llm", agent_options={**OPTIONS, **options}, steps=1, record=False, host=host)
