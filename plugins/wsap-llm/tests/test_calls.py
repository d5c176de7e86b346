"""The style `calls`: actions and tools as functions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from llm_server import Card, ModelServer, Refusal, Say

from wsap_core.protocol import TOOL, Action, ActionDef, ActionResult, ActionSpace, Observation, ParamDef, Tool
from wsap_core.seams.model import Message
from wsap_core.seams.model_errors import ConstraintError
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.backends.openai.backend import OpenAIBackend
from wsap_llm.backends.openai.options import OpenAIOptions
from wsap_llm.calling import call_in, calls_of, linked
from wsap_llm.decision.styles import CallStyle

DIRECTION = ParamDef("direction", "north|south")
SPACE = ActionSpace(
    [
        ActionDef("wait", "Stay"),
        ActionDef("move", "Go", [DIRECTION], category="movement"),
        ActionDef("map", "Where you are", category=TOOL),
    ]
)


class Add:
    definition = Tool("add", "Adds", [ParamDef("numbers", "such as 2+3")])

    def run(self, parameters: Mapping[str, Any]) -> str:
        return f"{parameters['numbers']} is five"


def play(
    server: ModelServer, *says: Say, turns: int = 1, steps: int = 1, **own: Any
) -> tuple[LLMAgent, list[Action], list[str]]:
    server.say(*says)
    told: list[str] = []

    async def main() -> tuple[LLMAgent, list[Action], list[str]]:
        backend = OpenAIBackend("qwen3:8b", OpenAIOptions(server.base_url, calls=True), tell=told.append)
        options = LLMOptions("Town", plan=False, **own)
        agent = LLMAgent(backend, options, style=CallStyle(steps=steps), tools=[Add()], tell=told.append)
        actions = []
        try:
            await agent.initialize("A town.", SPACE)
            for _ in range(turns):
                actions.append(await agent.decide(Observation()))
                await agent.reflect(ActionResult(True, "Done.", observation=Observation()))
        finally:
            await backend.aclose()
        assert told.pop(0) == "openai/qwen3:8b is asked in the style calls, with the profile full."
        return agent, actions, told

    return asyncio.run(main())


def test_legal_actions_and_tools_are_functions_and_a_call_is_the_decision(server: ModelServer) -> None:
    says = Say("North it is.", calls=[("move", {"direction": "north"})])
    agent, actions, told = play(server, says, Say(calls=[("wait", {})], text=""), turns=2)
    assert actions == [Action("move", {"direction": "north"}, "North it is."), Action("wait", {}, "")]
    assert agent.last_decision is not None
    assert (agent.last_decision.repaired, agent.last_decision.unconstrained, told) == (False, False, [])
    functions = {tool["function"]["name"]: tool["function"] for tool in server.last["tools"]}
    assert list(functions) == ["wait", "move", "map", "add"]
    assert functions["move"]["parameters"]["properties"]["direction"]["enum"] == ["north", "south"]
    assert server.last["tool_choice"] == "required"
    # Earlier calls and their results are sent in the protocol's own format.
    assert [message["role"] for message in server.last["messages"]] == ["system", "user", "assistant", "tool"]
    assert "JSON" not in json.dumps(server.last["messages"])


def test_tools_and_lookups_are_called_in_the_same_turn(server: ModelServer) -> None:
    add, look = Say("", calls=[("add", {"numbers": "2+3"})]), Say("", calls=[("map", {})])
    _, actions, _ = play(server, add, look, Say("", calls=[("wait", {})]), turns=2)
    assert [action.name for action in actions] == ["map", "wait"]
    told = [message["content"] for message in server.last["messages"] if message["role"] == "tool"]
    assert "2+3 is five" in told[0]
    assert "Done." in told[1]


def test_several_steps_are_arguments_beside_the_actions_own(server: ModelServer) -> None:
    says = Say("", calls=[("move", {"direction": "south", "times": 3, "until": "blocked"})])
    _, actions, _ = play(server, says, turns=3, steps=4)
    assert [(action.name, action.parameters) for action in actions] == [("move", {"direction": "south"})] * 3
    assert len(server.requests) == 1


def test_calls_of_several_actions_are_asked_for_again_and_of_the_same_twice_are_one(server: ModelServer) -> None:
    several = Say("", calls=[("wait", {}), ("move", {"direction": "north"})])
    agent, (action,), _ = play(server, several, Say("", calls=[("wait", {}), ("wait", {})]))
    assert action.name == "wait"
    assert agent.last_decision is not None
    assert agent.last_decision.repaired
    assert server.last["messages"][-1]["content"].endswith("Call one function.")


@pytest.mark.parametrize(
    "words",
    ["qwen3 does not support tools", '"required" tool choice requires --tool-call-parser to be set'],
)
def test_a_server_that_makes_no_calls_is_read_as_in_json(server: ModelServer, words: str) -> None:
    server.models["qwen3:8b"] = Card(refusal=Refusal(400, words, fields=frozenset({"tools"})))
    agent, (action,), told = play(server, Say('{"action": "wait", "params": {}}'))
    assert action.name == "wait"
    assert agent.last_decision is not None
    assert agent.last_decision.unconstrained
    assert words.split()[-1] in told[0]
    assert "tools" not in server.last
    with pytest.raises(ConstraintError, match="Strict play"):
        play(server, strict=True)


def test_a_server_that_can_not_be_made_to_call_is_asked_all_the_same(server: ModelServer) -> None:
    server.say(Say(status=400, error="This model does not support this tool_choice"))
    _, (action,), (told,) = play(server, Say("", calls=[("wait", {})]))
    assert action.name == "wait"
    assert "refuses tool_choice" in told
    assert "tools" in server.last
    assert "tool_choice" not in server.last


def test_arguments_that_are_no_json_are_kept_for_the_reader_and_other_texts_are_no_calls() -> None:
    found = json.loads(Message("assistant", "Well.", calls_of([("go", '{"a": 1')])).text())
    assert found == {"name": "go", "arguments": '{"a": 1', "content": "Well."}
    for text in ("", "{", '{"name": 3, "arguments": {}}', '{"name": "go", "arguments": []}', '{"name": "go"}'):
        assert call_in(text) is None
    assert [identity for *_, identity in linked([Message("user", '{"name": "go", "arguments": {}}')])] == [""]
