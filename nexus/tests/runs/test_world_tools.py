"""Games with tools, turns that are complete in themselves, and a sentence of their own, from the run to the model."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tool_town import SPEC, WILL

from wsap_core import PluginHost
from wsap_core.host import BUILTIN, Registration
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities, Request
from wsap_core.specs import AdapterSpec, AgentSpec, BackendSpec
from wsap_llm.scripted import ScriptedBackend
from wsap_nexus.api import play, read_run, resume_run
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import replies_of, start
from wsap_nexus.runs.store import open_store


class Investigator:
    """A model that notes something and looks a will up on each day before it speaks."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    def make(self, context: Context) -> ScriptedBackend:
        return ScriptedBackend(self.answer, model="mind/x", abilities=Abilities(prefill=True))

    def answer(self, request: Request) -> str:
        self.requests.append(request)
        calls = request.prefill.count("<observation>")
        if calls == 0:
            return "I write that down.\n<notebook>Player 4 claims to be the Doctor.</notebook>"
        if calls == 1:
            return "Now the will.\n<check_will>Player 3</check_will>"
        return "It says so.\n</thinking>\n<speak>Player 4 is lying.</speak>"


@pytest.fixture
def model() -> Investigator:
    return Investigator()


def host_of(model: Investigator, spec: AdapterSpec = SPEC, *, saved: bool = True) -> PluginHost:
    own = PluginHost()
    own.load(BUILTIN)
    own.games.add(Registration(spec, "t", "t"))
    abilities: tuple[Any, ...] = ("snapshot",) if saved else ()
    own.agents.add(Registration(AgentSpec("llm", "", "wsap_llm.create:create", abilities=abilities), "t", "t"))
    own.backends.add(Registration(BackendSpec("mind", "", model.make), "t", "t"))
    return own


OPTIONS: dict[str, Any] = {"model": "mind/x", "style": "tags"}


def test_a_turn_with_tools_is_recorded_as_decisions_of_one_step_of_the_game(
    model: Investigator, tmp_path: Path
) -> None:
    database, host = str(tmp_path / "runs.db"), host_of(model)
    summary = play("tool-town", "llm", agent_options=OPTIONS, database=database, host=host)
    steps = read_run(database=database, host=host).steps
    assert [s.action.name for s in steps] == ["notebook", "check_will", "speak"] * 4
    assert [s.result.observation.step for s in steps] == [0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4]
    assert summary.to_json()["usage"]["calls"] == len(model.requests) == 12
    assert summary.to_json()["decisions"]["repaired"] == summary.to_json()["decisions"]["forced"] == 0
    with open_store(database) as store:
        told = [e.data["decision"] for e in store.repository.read_events(str(summary.run), kinds=("step",))]
    assert [d["resumption"] for d in told] == [None, "prefill", "prefill"] * 4
    assert model.requests[2].prefill == (
        "<thinking>\nI write that down.\n<notebook>Player 4 claims to be the Doctor.</notebook>\n"
        "<observation>Noted, as number 1.</observation>\nNow the will.\n<check_will>Player 3</check_will>\n"
        f"<observation>{WILL}</observation>\n"
    )


@pytest.mark.parametrize("saved", [True, False], ids=["from a saved state", "from the beginning"])
@pytest.mark.parametrize("stop", [1, 2, 3, 7])
def test_a_run_that_stops_in_mid_thought_goes_on_with_it_and_is_played_again(
    model: Investigator, tmp_path: Path, stop: int, *, saved: bool
) -> None:
    database, host = str(tmp_path / "runs.db"), host_of(model, saved=saved)
    whole = play("tool-town", "llm", agent_options=OPTIONS, record=False, host=host)
    expected = list(model.requests)
    model.requests.clear()
    controls, seen = Controls(), [0]

    def watch(step: object) -> None:
        seen[0] += 1
        if seen[0] == stop:
            controls.stop()

    plan = RunPlan("tool-town", (SeatPlan("seat-1", "llm", OPTIONS),), snapshot_every=2)
    with open_store(database) as store, start(plan, host, store, controls=controls, observers=[watch]) as session:
        asyncio.run(session.play())
    assert len(model.requests) == stop
    resumed = resume_run(database=database, host=host)
    assert resumed.trajectory_hash == whole.trajectory_hash
    assert model.requests == expected, "nothing was asked twice, and everything in the same words"

    host.backends = type(host.backends)(BackendSpec, "backend", "backends")  # there is nobody left to ask
    with open_store(database) as store:
        again, past = replies_of(str(resumed.run), store)
        with start(again, host, store, past=past) as session:
            second = asyncio.run(session.play())
    assert second.trajectory_hash == whole.trajectory_hash


def test_in_a_game_of_complete_turns_a_model_is_shown_the_turn_in_the_games_words_and_nothing_else(
    model: Investigator,
) -> None:
    play("tool-town", "llm", agent_options=OPTIONS, record=False, host=host_of(model))
    for request in model.requests:
        assert [m.role for m in request.messages] == ["system", "user"]
        assert "Your goal is to find out who lies. Think inside <thinking>" in request.messages[0].text()
        assert "survive" not in request.messages[0].text()
    assert [r.messages[1].text() for r in model.requests[::3]] == [
        f"Day {day}\n- Player 3 [DEAD] - Role: Doctor\nNotes: {2 * day // 2}\n\n"
        "Think, then end your turn with one action tag."
        for day in range(4)
    ]
    assert {r.purpose for r in model.requests} == {"decide", "tool"}, "no plan was asked for"


def test_somebody_who_wants_earlier_turns_has_them(model: Investigator) -> None:
    play("tool-town", "llm", agent_options={**OPTIONS, "window": 8}, record=False, host=host_of(model))
    assert [len(r.messages) for r in model.requests[::3]] == [2, 4, 6, 8]


def test_in_other_games_they_go_along_as_before(model: Investigator) -> None:
    spec = replace(SPEC, complete_turns=False, objective="")
    play("tool-town", "llm", agent_options=OPTIONS, record=False, host=host_of(model, spec))
    assert [len(r.messages) for r in model.requests[::3]] == [2, 4, 6, 8]
    assert "Your goal is to survive and accomplish objectives. Think inside" in model.requests[0].messages[0].text()


def test_the_limit_of_calls_holds_for_tags_too(model: Investigator) -> None:
    play("tool-town", "llm", agent_options={**OPTIONS, "tool_calls": 1}, record=False, host=host_of(model))
    # The will may not be looked up any more, which the model is told and does not understand.
    assert sum(r.purpose == "re-ask" for r in model.requests) > 0
    five = Investigator()
    replies = [f"<notebook>{number}</notebook>" for number in range(5)] + ["</thinking><wait/>"]
    five.answer = lambda request: replies[request.prefill.count("<observation>")]  # type: ignore[method-assign]
    summary = play(
        "tool-town",
        "llm",
        agent_options={**OPTIONS, "tool_calls": 5},
        options={"days": 1},
        record=False,
        host=host_of(five),
    )
    assert (summary.steps, summary.to_json()["decisions"]["repaired"]) == (6, 0)
