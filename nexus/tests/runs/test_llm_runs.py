"""Runs in which language models decide: recorded, replayed without asking, gone on with without buying twice."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hosts import host_with_ours
from life_kit import conversations

from wsap_core import PluginHost
from wsap_core.errors import ConfigError, UnknownNameError
from wsap_core.host import Registration
from wsap_core.protocol.wire import encode
from wsap_core.seams.agent import Usage
from wsap_core.seams.context import Context
from wsap_core.seams.model import ChooseConstraint, Finish, FunctionCall, Reply, Request
from wsap_core.seams.model_errors import BudgetReachedError, ContextTooSmallError, ForcedDecisionsError
from wsap_core.seams.services import Services
from wsap_core.specs import BackendSpec
from wsap_llm.backends.pool import ModelPool
from wsap_llm.middleware.budgets import Budget
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.text.tokens import estimate_request
from wsap_nexus.api import list_runs, play, read_run, resume_run
from wsap_nexus.cli.calls import ShownCall, call_lines
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.record.journal import chances_of, read_reply
from wsap_nexus.runs.session import replies_of, resume, start
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.records import RunStatus
from wsap_nexus.store.repository import Repository


class Speaker:
    """A model that says how many messages it was shown, and remembers what it was asked."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def make(self, context: Context) -> ScriptedBackend:
        def answer(request: Request) -> str:
            self.requests.append(request)
            return json.dumps({"action": "speak", "params": {"text": f"number {len(request.messages)}"}})

        return ScriptedBackend(answer, model=f"speaker/{context.config['model']}")


@pytest.fixture
def speaker() -> Speaker:
    return Speaker()


@pytest.fixture
def host(speaker: Speaker) -> PluginHost:
    own = host_with_ours()
    own.backends.add(Registration(BackendSpec("speaker", "", speaker.make), "t", "t"))
    return own


@pytest.fixture
def database(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


OPTIONS: dict[str, Any] = {
    "model": "speaker/loud",
    "plan": "no",
    "reflect": "no",
    "memory": "fifo",
    "tools": "calculator,notes",
}


def plan(steps: int = 25, **options: Any) -> RunPlan:
    return RunPlan(
        "echo",
        (SeatPlan("seat-1", "llm", {**OPTIONS, **options}),),
        steps=steps,
        options={"length": 10},
        snapshot_every=7,
    )


@contextmanager
def stopping(after: int) -> Iterator[tuple[Controls, list[Any]]]:
    controls = Controls()

    class Seen(list[Any]):
        def append(self, item: Any) -> None:
            super().append(item)
            if len(self) >= after:
                controls.stop()

    yield controls, Seen()


def test_every_prompt_and_reply_is_in_the_log_and_reads_back_whole(
    host: PluginHost, speaker: Speaker, database: str
) -> None:
    summary = play("echo", "llm", agent_options=OPTIONS, steps=25, options={"length": 10}, database=database, host=host)
    assert summary.to_json()["usage"]["calls"] == 25
    assert summary.to_json()["decisions"] == {
        "total": 25,
        "repaired": 0,
        "forced": 0,
        "unconstrained": 25,
        "cut": 0,
        "continued": 0,
    }
    with open_store(database) as store:
        calls = [e.data for e in Repository(store.database).read_events(str(summary.run), kinds=("call",))]
    assert len(calls) == len(speaker.requests) == 25
    for conversation, call, request in zip(conversations(calls), calls, speaker.requests, strict=True):
        reply = read_reply(call["reply"])
        assert [m["content"] for m in conversation] == [m.text() for m in request.messages]
        assert f"number {len(conversation)}" in reply.text


def test_the_probabilities_of_a_chosen_reply_are_kept_and_shown() -> None:
    reply = Reply("wait", finish=Finish(usage=Usage(1, 10, 3, 0.0), probabilities=(0.75, 0.25)))
    call = encode({"constraint": ChooseConstraint(("go west", "wait")), "reply": reply})
    assert read_reply(call["reply"]) == reply
    chances = tuple(chances_of(call))
    assert chances == (("go west", 0.75), ("wait", 0.25))
    shown = "\n".join(call_lines(ShownCall(1, "seat-1", 0, (("user", "A tree."),), "", reply, chances)))
    assert "  probabilities:\n     75%  go west\n     25%  wait" in shown
    assert not tuple(chances_of(encode({"constraint": ChooseConstraint(("wait",)), "reply": Reply("wait")})))


def test_calls_of_a_recorded_reply_come_back_typed_and_are_shown_as_text() -> None:
    calls = (FunctionCall("go", {"to": "west"}),)
    for reply in (Reply("On.", calls=calls), Reply("", calls=(*calls, FunctionCall("wait", '{"a'))), Reply("On.")):
        recorded = encode(reply)
        assert read_reply(recorded) == reply
        assert ("calls" in recorded) == bool(reply.calls)
        shown = "\n".join(call_lines(ShownCall(1, "seat-1", 0, (), "", reply)))
        assert reply.message.text() in shown


def test_a_recorded_run_is_played_again_byte_for_byte_without_asking(
    host: PluginHost, speaker: Speaker, database: str
) -> None:
    first = play("echo", "llm", agent_options=OPTIONS, steps=25, options={"length": 10}, database=database, host=host)
    asked = len(speaker.requests)
    host.backends = type(host.backends)(BackendSpec, "backend", "backends")  # there is nobody left to ask
    with open_store(database) as store:
        again, past = replies_of(str(first.run), store)
        with start(again, host, store, past=past) as session:
            second = asyncio.run(session.play())
        before = [e.body for e in store.repository.read_events(str(first.run), kinds=("step", "call"))]
        after = [e.body for e in store.repository.read_events(str(second.run), kinds=("step", "call"))]
    assert len(speaker.requests) == asked
    assert second.trajectory_hash == first.trajectory_hash
    steps = [b for b in before if b"reasoning" in b and b'"step"' in b]
    assert steps
    assert [b for b in after if b"reasoning" in b and b'"step"' in b] == steps


def test_a_run_whose_prompts_an_older_version_made_is_played_again_to_the_same_hash(
    host: PluginHost, speaker: Speaker, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = play("echo", "llm", agent_options=OPTIONS, steps=25, options={"length": 10}, database=database, host=host)
    asked = len(speaker.requests)
    host.backends = type(host.backends)(BackendSpec, "backend", "backends")
    monkeypatch.setattr("wsap_nexus.runs.play.recorded_agent.FORMAT", 999)
    monkeypatch.setattr("wsap_llm.agent.report_of", lambda action, result: "Told in other words.")
    with open_store(database) as store:
        again, past = replies_of(str(first.run), store)
        with start(again, host, store, past=past) as session:
            second = asyncio.run(session.play())
        before, after = (
            [e.body for e in store.repository.read_events(str(run.run), kinds=("step",))] for run in (first, second)
        )
    assert len(speaker.requests) == asked
    assert second.trajectory_hash == first.trajectory_hash
    assert after == before


def test_ten_forced_decisions_pause_a_run_which_goes_on_when_the_model_is_understood(
    host: PluginHost, speaker: Speaker, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    understood = speaker.make
    monkeypatch.setattr(speaker, "make", lambda context: ScriptedBackend(lambda request: "Well, well."))
    host.backends.add(Registration(BackendSpec("mumbler", "", speaker.make), "t", "t"))
    options = {**OPTIONS, "model": "mumbler/x"}
    with pytest.raises(ForcedDecisionsError, match=r"last 10 decisions of seat 'seat-1' were forced.*names no action"):
        play("echo", "llm", agent_options=options, steps=25, options={"length": 20}, database=database, host=host)
    (run,) = list_runs(database=database)
    assert run.status is RunStatus.INTERRUPTED
    host.backends = type(host.backends)(BackendSpec, "backend", "backends")
    host.backends.add(Registration(BackendSpec("mumbler", "", understood), "t", "t"))
    summary = resume_run(run.id, database=database, host=host).to_json()
    assert (summary["steps"], summary["decisions"]["forced"]) == (25, 10)


@pytest.mark.parametrize("stop", [1, 6, 8, 19])
def test_a_run_that_is_gone_on_with_buys_no_reply_twice(
    stop: int, host: PluginHost, speaker: Speaker, database: str
) -> None:
    whole = play("echo", "llm", agent_options=OPTIONS, steps=25, options={"length": 10}, record=False, host=host)
    drawn = [each.sampling.seed for each in speaker.requests]
    speaker.requests.clear()
    with (
        stopping(stop) as (controls, seen),
        open_store(database) as store,
        start(plan(), host, store, controls=controls, observers=[seen.append]) as session,
    ):
        asyncio.run(session.play())
    assert len(speaker.requests) == stop
    resumed = resume_run(database=database, host=host)
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert len(speaker.requests) == 25
    assert [each.sampling.seed for each in speaker.requests] == drawn


class Narrow:
    """A model whose server refuses prompts above its context, which it tells in no other way."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def make(self, context: Context) -> ScriptedBackend:
        def answer(request: Request) -> str:
            self.sizes.append(estimate_request(request))
            if self.sizes[-1] > 1500:
                raise ContextTooSmallError("the request exceeds the available context size (1500 tokens)")
            return json.dumps({"action": "speak", "params": {"text": f"number {len(request.messages)}"}})

        return ScriptedBackend(answer, model=f"narrow/{context.config['model']}")


@pytest.mark.parametrize("stop", [9, 14, 22])
def test_a_run_whose_prompts_were_refused_as_too_large_goes_on_and_is_played_again(
    stop: int, host: PluginHost, database: str
) -> None:
    narrow = Narrow()
    host.backends.add(Registration(BackendSpec("narrow", "", narrow.make), "t", "t"))
    options = {"model": "narrow/x", "window": 16}
    given = {**OPTIONS, **options}
    whole = play("echo", "llm", agent_options=given, steps=25, options={"length": 10}, record=False, host=host)
    refused = [size for size in narrow.sizes if size > 1500]
    assert refused
    asked = len(narrow.sizes)
    narrow.sizes.clear()
    with (
        stopping(stop) as (controls, seen),
        open_store(database) as store,
        start(plan(**options), host, store, controls=controls, observers=[seen.append]) as session,
    ):
        asyncio.run(session.play())
    resumed = resume_run(database=database, host=host)
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert len(narrow.sizes) == asked
    with open_store(database) as store:
        again, past = replies_of(str(resumed.run), store)
        with start(again, host, store, past=past) as session:
            replayed = asyncio.run(session.play())
    assert replayed.trajectory_hash == whole.trajectory_hash
    assert len(narrow.sizes) == asked


class Sampler:
    """A model that draws its reply as a server that honours seeds does: equal prompts and seeds give equal replies."""

    def __init__(self) -> None:
        self.seeds: list[int | None] = []

    def make(self, context: Context) -> ScriptedBackend:
        def answer(request: Request) -> str:
            self.seeds.append(request.sampling.seed)
            drawn = random.Random(f"{request.sampling.seed} {request.messages}").getrandbits(32)
            return json.dumps({"action": "speak", "params": {"text": f"word {drawn}"}})

        return ScriptedBackend(answer, model=f"sampler/{context.config['model']}")


def test_a_model_that_sees_the_same_prompt_again_is_asked_with_another_seed(host: PluginHost) -> None:
    sampler, options = Sampler(), {"model": "sampler/x", "profile": "brief", "plan": "no"}
    host.backends.add(Registration(BackendSpec("sampler", "", sampler.make), "t", "t"))

    def asked(seed: int, **more: str) -> list[int | None]:
        sampler.seeds = []
        agent = {**options, **more}
        play("echo", "llm", agent_options=agent, steps=25, options={"length": 10}, seed=seed, record=False, host=host)
        return sampler.seeds

    first = asked(7)
    assert None not in first
    assert len(set(first)) == len(first) >= 25
    assert asked(7) == first
    assert not set(asked(8)) & set(first)
    assert set(asked(7, sampling_seed="no")) == {None}


def test_a_budget_that_is_used_up_pauses_the_run_and_more_of_it_goes_on(
    host: PluginHost, speaker: Speaker, database: str
) -> None:
    models = ModelPool(host, budgets=[Budget("run", calls=9)])
    with (
        open_store(database) as store,
        start(plan(), host, store, services=Services(models=models)) as session,
        pytest.raises(BudgetReachedError, match="9 calls a run"),
    ):
        asyncio.run(session.play())
    record = list_runs(database=database)[0]
    assert record.status is RunStatus.INTERRUPTED
    assert len(read_run(database=database, host=host).steps) == 9
    more = ModelPool(host, budgets=[Budget("run", calls=100)])
    with open_store(database) as store, resume("last", host, store, services=Services(models=more)) as session:
        summary = asyncio.run(session.play())
    assert summary.steps == 25
    assert len(speaker.requests) == 25


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"model": ""}, ConfigError, "requires a model"),
        ({"model": "nobody/x"}, UnknownNameError, "nobody"),
        ({"style": "xml"}, ConfigError, "Unknown style 'xml'; expected one of: auto, json, tags, calls, choose"),
        ({"memory": "elephant"}, UnknownNameError, "no memory called 'elephant'"),
        ({"tools": "calculater"}, UnknownNameError, "Did you mean 'calculator'"),
        ({"temperature": "hot"}, ConfigError, "must be a number from 0 to 5, not 'hot'"),
        ({"window": "-1"}, ConfigError, "from 0 to 1000"),
        ({"strict": "perhaps"}, ConfigError, "must be yes or no"),
        ({"modell": "x"}, ConfigError, "has no option 'modell'. Did you mean 'model'"),
        ({"prompts": "no/such/folder"}, ConfigError, "does not exist"),
        ({"persona": "@no/such/file"}, ConfigError, "option persona can't be read"),
    ],
)
def test_options_that_make_no_sense_are_refused_in_a_sentence(
    host: PluginHost, options: dict[str, Any], error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=reason):
        play("echo", "llm", agent_options={**OPTIONS, **options}, record=False, host=host)


def test_the_version_of_the_templates_is_in_the_log(host: PluginHost, database: str, tmp_path: Path) -> None:
    from wsap_llm.prompts import Prompts

    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "json_question.j2").write_text("What now?", encoding="utf-8")
    found = []
    for options in ({}, {"prompts": str(tmp_path / "own")}):
        summary = play("echo", "llm", steps=1, agent_options={**OPTIONS, **options}, database=database, host=host)
        with open_store(database) as store:
            (event,) = store.repository.read_events(str(summary.run), kinds=("model",))
        found.append(event.data["prompts"])
    assert found == [Prompts().version, Prompts.from_folder(tmp_path / "own").version]
    assert found[0] != found[1]
