"""Games as tasks of Inspect, and its models as a backend. Skipped where Inspect is missing; `nox -s extras` has it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from wsap_core import World
from wsap_core.errors import ConfigError, MissingServiceError, UsageError
from wsap_core.factories import build
from wsap_core.host import PluginHost
from wsap_core.references import load_adapter_spec
from wsap_core.seams.constraints import CallConstraint, FunctionDef
from wsap_core.seams.context import Context
from wsap_core.seams.model import FunctionCall, Message, Reply, Request
from wsap_core.seams.services import Player, runtime_services
from wsap_eval.inspect_backend import InspectBackend

# Inspect's types are not there everywhere, so they are Any.

# Inspect and what it imports use what others call deprecated, and leave files open.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_without_inspect_the_backend_says_how_to_install_it() -> None:
    factory = PluginHost.discovered().backends.get("inspect").factory
    try:
        import inspect_ai  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(MissingServiceError, match=r"pip install .*wsap-eval\[inspect\]'"):
            build(factory, Context.create(config={"model": "openai/gpt-5"}))
    with pytest.raises(ConfigError, match="expected inspect/PROVIDER/MODEL"):
        build(factory, Context.create(config={"model": "gpt-5"}))


@pytest.fixture
def inspect_ai(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Inspect, with a provider `parrot`: its models answer what they are called, `fails` fails."""
    found = pytest.importorskip("inspect_ai")
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    _register(found)
    return found


def _register(inspect_ai: Any) -> None:
    from inspect_ai.model import ModelAPI, ModelOutput, ModelUsage, modelapi

    class Parrot(ModelAPI):  # type: ignore[misc]
        async def generate(self, input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:  # noqa: A002
            if self.model_name == "fails":
                raise RuntimeError("The line is dead.")
            if tools:
                return _used(ModelOutput.for_tool_call(self.model_name, tools[0].name, {}))
            return _used(ModelOutput.from_content(self.model_name, self.model_name))

        def should_retry(self, ex: Any) -> bool:
            return False

    def _used(output: Any) -> Any:
        output.usage = ModelUsage(input_tokens=7, input_tokens_cache_read=3, output_tokens=5, total_tokens=15)
        return output

    modelapi(name="parrot")(lambda: Parrot)


def evaluated(inspect_ai: Any, model: str, **given: Any) -> Any:
    """The log of an evaluation by Inspect."""
    task_args = {name: given.pop(name) for name in list(given) if name not in ("model_roles", "epochs", "token_limit")}
    (log,) = inspect_ai.eval(
        "wsap_eval/game", model=_model(model), task_args=task_args, display="none", log_dir="logs", **given
    )
    return log


def _model(name: str) -> Any:
    from inspect_ai.model import get_model

    return get_model(f"parrot/{name}")  # a text with commas would be a list of models


@pytest.mark.slow
def test_a_game_is_a_task_with_scores_and_tool_calls(inspect_ai: Any) -> None:
    log = evaluated(inspect_ai, '{"action": "noop", "params": {}}', game="crafter", seeds="3-4", steps=5, epochs=2)
    assert log.status == "success", log.error
    assert log.eval.task == "crafter"
    scores = {score.name: score.metrics for score in log.results.scores}
    assert list(scores) == ["progression", "reward", "forfeited"]
    assert scores["forfeited"]["mean"].value == 0
    # A metric of a set of episodes, such as Crafter's score, has no value of a sample.
    assert scores["progression"].keys() >= {"mean", "stderr", "score"}
    assert [(sample.id, sample.epoch) for sample in log.samples] == [(3, 1), (4, 1), (3, 2), (4, 2)]
    sample = log.samples[0]
    assert [message.role for message in sample.messages[:4]] == ["system", "user", "assistant", "tool"]
    assert [call.function for call in sample.messages[2].tool_calls] == ["noop"]
    assert sample.messages[3].tool_call_id == sample.messages[2].tool_calls[0].id
    events = [event.event for event in sample.events if event.event in ("model", "tool")]
    assert events == ["model", "tool"] * 5
    tool = next(event for event in sample.events if event.event == "tool")
    assert (tool.function, tool.result) == ("noop", sample.messages[3].text)
    assert sample.model_usage[log.eval.model].total_tokens == 5 * 15
    with runtime_services() as services:  # the same run as of `wsap play`, which `wsap replay` shows
        about = services.require("runs").about(sample.metadata["wsap"]["run"])
    assert about["summary"]["trajectory_hash"] == sample.metadata["wsap"]["trajectory"]
    assert about["summary"]["usage"]["prompt_tokens"] == 5 * 10


@pytest.mark.slow
def test_a_model_that_says_nothing_of_use_forfeits_and_scores_the_worst(inspect_ai: Any) -> None:
    log = evaluated(inspect_ai, "I would rather not.", game="crafter", seeds=1)
    assert log.status == "success", log.error
    (sample,) = log.samples
    assert {name: score.value for name, score in sample.scores.items() if name != "reward"} == {
        "progression": 0.0,
        "forfeited": 1,
    }
    assert sample.scores["reward"].value != sample.scores["reward"].value  # it has no worst: not scored
    assert "decisions were forced" in sample.scores["forfeited"].explanation


@pytest.mark.slow
def test_an_outage_is_an_error_of_the_sample_and_no_score(inspect_ai: Any) -> None:
    log = evaluated(inspect_ai, "fails", game="crafter", seeds=1)
    assert log.status == "error"
    (sample,) = log.samples
    assert "The line is dead." in sample.error.message
    assert not sample.scores


@pytest.mark.slow
def test_a_limit_of_inspect_ends_the_sample_as_one(inspect_ai: Any) -> None:
    log = evaluated(inspect_ai, '{"action": "noop", "params": {}}', game="crafter", seeds=1, token_limit=50)
    assert log.status == "success", log.error
    (sample,) = log.samples
    assert (sample.limit.type, sample.limit.limit) == ("token", 50)


@pytest.mark.slow
def test_other_seats_are_agents_or_models_with_the_role_of_a_seat(inspect_ai: Any) -> None:
    world = World.create(load_adapter_spec("matrix"), Context.create(0))
    first = next(each for each in world.open_seat("row").action_space.actions if not each.parameters)
    reply = json.dumps({"action": first.name, "params": {}})
    log = evaluated(inspect_ai, reply, game="matrix", seeds=1, seat="column", opponent="tit-for-tat")
    assert log.status == "success", log.error
    about = _run_of(log)
    assert [(seat["seat"], seat["agent"]) for seat in about["summary"]["seats"]] == [
        ("row", "tit-for-tat"),
        ("column", "llm"),
    ]
    roles = {"column": _model(f"{reply} ")}
    log = evaluated(inspect_ai, reply, game="matrix", seeds=1, model_roles=roles)
    assert log.status == "success", log.error
    models = {seat["seat"]: seat["model"] for seat in _run_of(log)["summary"]["seats"]}
    assert models == {"row": f"inspect/parrot/{reply}", "column": f"inspect/parrot/{reply} "}


def _run_of(log: Any) -> Any:
    with runtime_services() as services:
        return services.require("runs").about(log.samples[0].metadata["wsap"]["run"])


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"game": "craftr"}, "crafter"),
        ({"game": "crafter", "seeds": "many"}, "FIRST-LAST"),
        ({"game": "crafter", "seeds": 0}, "FIRST-LAST"),
        ({"game": "crafter", "seeds": []}, "FIRST-LAST"),
        ({"game": "matrix", "seat": "dealer"}, "there are: row, column"),
        ({"game": "crafter", "legal": "maybe"}, "is invalid at legal"),
        ({"game": "crafter", "steps": 0}, "is invalid at steps"),
        ({"game": "crafter", "options": 5}, "is invalid at options"),
        ({"game": "crafter", "agent_options": "memory"}, "agent_options, is invalid at options"),
    ],
)
def test_what_is_wrong_with_a_task_is_said_before_it_begins(inspect_ai: Any, given: Any, why: str) -> None:
    from wsap_eval.inspect_tasks import PrerequisiteError, game

    with pytest.raises(PrerequisiteError, match=why) as refused:  # Inspect shows it without a traceback
        game(**given)
    assert "\n" not in str(refused.value)


def test_seeds_are_a_number_a_span_or_a_list(inspect_ai: Any) -> None:
    from wsap_eval.inspect_tasks import seeds_of

    assert (seeds_of(3), seeds_of("3"), seeds_of("10-12"), seeds_of([5, 7])) == (
        [0, 1, 2],
        [0, 1, 2],
        [10, 11, 12],
        [5, 7],
    )
    with pytest.raises(UsageError, match="not '12-10'"):
        seeds_of("12-10")


# --- the backend -------------------------------------------------------------------------------


class TestBackend:
    """The checks of backends, where Inspect is installed."""

    @pytest.fixture(autouse=True)
    def _here(self, inspect_ai: Any) -> None:
        """Skip all where it is not."""

    @pytest.fixture
    def make_backend(self) -> Callable[[], InspectBackend]:
        return lambda: InspectBackend("parrot/Good day to you.")

    @pytest.fixture
    def make_failing(self) -> Callable[[], InspectBackend]:
        return lambda: InspectBackend("parrot/fails")


def _take_checks() -> None:
    from wsap_check import BackendTests

    for name, check in vars(BackendTests).items():
        if name.startswith("test_"):
            setattr(TestBackend, name, check)


_take_checks()


@pytest.mark.slow
def test_its_models_play_and_their_usage_is_counted(inspect_ai: Any) -> None:
    address = 'inspect/parrot/{"action": "wait", "params": {}}'
    with runtime_services() as services:
        summary = asyncio.run(services.require("runner").play("echo", {"seat-1": Player(address)}, steps=3))
    assert summary["decisions"]["forced"] == 0
    # What a provider has in its cache was read, too.
    assert summary["usage"] == {**summary["usage"], "calls": 3, "prompt_tokens": 30, "completion_tokens": 15}


def asked(name: str, request: Request, **options: Any) -> Reply:
    async def whole() -> Reply:
        backend = build("wsap_eval.inspect_backend:create", Context.create(config={"model": name, **options}))
        try:
            return await backend.complete(request)
        finally:
            await backend.aclose()

    return asyncio.run(whole())


def test_functions_are_called_where_the_option_says_that_the_model_can(inspect_ai: Any) -> None:
    wait = FunctionDef("wait", "Wait.", {"type": "object", "properties": {}})
    request = Request([Message("user", "Go on.")], constraint=CallConstraint((wait,)))
    assert asked("parrot/x", request, calls=True).calls == (FunctionCall("wait", {}),)
    assert (
        build("wsap_eval.inspect_backend:create", Context.create(config={"model": "parrot/x"})).abilities.calls is False
    )


@pytest.mark.parametrize("name", ["no-such-provider/x", "openai/gpt-5"])
def test_a_model_that_can_not_be_made_is_told_in_one_line(
    name: str, inspect_ai: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match=f"^Inspect has no model '{name}': .+") as refused:
        asked(name, Request([Message("user", "Hello")]))
    assert "\n" not in str(refused.value)
