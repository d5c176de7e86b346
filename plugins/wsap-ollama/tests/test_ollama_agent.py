"""The protocol's reference agent, and how light the plugin is."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

from llm_server import ModelServer, Say

from wsap_core.builtin.echo import EchoWorld
from wsap_core.protocol import Action
from wsap_core.references import load_agent_spec
from wsap_core.seams.context import Context
from wsap_llm.agent import LLMOptions
from wsap_llm.decision.styles import TagStyle
from wsap_llm.tools.calculator import Calculator
from wsap_ollama import OLLAMA_OPTIONS, OllamaAgent, OllamaOptions


def play(server: ModelServer, steps: int) -> tuple[OllamaAgent, list[Action]]:
    async def main() -> tuple[OllamaAgent, list[Action]]:
        world = EchoWorld(Context.create(7))
        agent = OllamaAgent(model="qwen3:8b", ollama=OllamaOptions(host=server.address))
        await agent.initialize(world.game_description, world.action_space)
        world.reset()
        actions = []
        for _ in range(steps):
            actions.append(await agent.decide(world.observe()))
            await agent.reflect(world.act(actions[-1]))
        await agent.aclose()
        return agent, actions

    return asyncio.run(main())


def test_a_model_plays_through_ollama_bound_to_what_is_legal(server: ModelServer) -> None:
    def answer(body: Any) -> Say:
        return Say(json.dumps({"action": "wait", "params": {}, "reasoning": "Nothing to do."}), thinking="Hm. " * 400)

    server.default = answer
    agent, actions = play(server, 3)
    assert [action.name for action in actions] == ["wait", "wait", "wait"]
    decided = [r.body for r in server.requests if r.path == "/api/chat"]
    assert len(decided) == 3
    for body in decided:
        assert "wait" in json.dumps(body["format"])
        assert body["options"] == {**OLLAMA_OPTIONS, "num_predict": 1324, "num_ctx": 5120}
        assert "Hm." not in json.dumps(body), "what the model thought may not come back to it"
    assert agent.system_prompt == decided[0]["messages"][0]["content"]
    assert agent.last_decision is not None
    assert not agent.last_decision.forced
    assert agent.last_decision.usage.completion_tokens > 400


def test_after_a_tool_the_model_goes_on_in_the_same_thought_by_prefill(server: ModelServer) -> None:
    # Ollama goes on with a last message of the assistant (ollama/ollama#6778); its stop texts end a
    # reply without being named, and what would have come after them does not come.
    server.say(
        Say("Two and three make\n<calculator>2 + 3</calculator>\n<observation>6</observation>"),
        Say("Five, then.\n</thinking>\n<speak>five</speak> and some more"),
    )

    async def main() -> tuple[OllamaAgent, Action]:
        world = EchoWorld(Context.create(7))
        agent = OllamaAgent(
            model="llama3.2",
            ollama=OllamaOptions(host=server.address),
            options=LLMOptions(plan=False),
            style=TagStyle(),
            tools=[Calculator()],
        )
        await agent.initialize(world.game_description, world.action_space)
        action = await agent.decide(world.reset() or world.observe())
        await agent.aclose()
        return agent, action

    agent, action = asyncio.run(main())
    assert (action.name, dict(action.parameters)) == ("speak", {"text": "five"})
    assert agent.last_decision is not None
    assert agent.last_decision.resumption == "prefill"
    assert not agent.last_decision.repaired
    first, second = [r.body for r in server.requests if r.path == "/api/chat"]
    assert first["messages"][-1] == {"role": "assistant", "content": "<thinking>\n"}
    assert second["messages"][:-1] == first["messages"][:-1]
    assert second["messages"][-1] == {
        "role": "assistant",
        "content": "<thinking>\nTwo and three make\n<calculator>2 + 3</calculator>\n<observation>5</observation>\n",
    }
    assert "</calculator>" in first["options"]["stop"]
    assert not first.get("format"), "there is no schema for tags"


def test_the_agent_can_be_named_on_the_command_line() -> None:
    spec = load_agent_spec("wsap_ollama:OllamaAgent")
    assert spec.name == "ollama-agent"
    assert "Ollama" in spec.summary


def test_listing_the_plugin_imports_no_client() -> None:
    code = (
        "import sys, wsap_ollama.plugin as p\n"
        "assert p.wsap_backends()[0].name == 'ollama'\n"
        "print([m for m in ('aiohttp', 'wsap_llm', 'pydantic') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
