"""A model that plays a character of a Russian world is told everything in Russian."""

from __future__ import annotations

import asyncio
import re

import pytest

from wsap_core import Context, PluginHost, World
from wsap_llm.agent import LLMAgent
from wsap_llm.options.llm import llm_options
from wsap_llm.prompts import Prompts
from wsap_llm.scripted import ScriptedBackend

MEMBERS = re.compile(r'"\w+":?|\{\}|\b(?:intend|wait|text|JSON)\b')


@pytest.mark.parametrize("name", ["village", "lighthouse"])
def test_a_character_of_a_russian_world_is_played_in_russian(name: str) -> None:
    spec = PluginHost.discovered().games.get(f"sandbox:{name}").with_options({"language": "ru"})
    backend = ScriptedBackend(["Ждать.", '{"action": "wait", "params": {}, "reasoning": "жду"}'])
    options = llm_options(Context(game=spec, world=spec.display_title))
    agent = LLMAgent(backend, options, prompts=Prompts(language=spec.language))

    async def turn() -> None:
        world = World.create(spec, Context.create(1, config={"language": "ru"}))
        await world.reset(1)
        seat = world.open_seat(spec.seat_names[0])
        await agent.initialize(seat.game_description, seat.action_space)
        await agent.decide(await seat.observe())

    asyncio.run(turn())
    assert len(backend.requests) == 2
    told = "\n".join(m.text() for m in backend.requests[-1].messages if m.role != "assistant")
    assert "Твой ответ не подошёл" in told
    assert re.findall("[A-Za-z]{2,}", MEMBERS.sub(" ", told)) == []
