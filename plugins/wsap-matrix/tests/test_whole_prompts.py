"""Whole prompts of the matrix game; whoever changes what is told reads the files in `prompts/` again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from wsap_core import Action, Context, World
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Abilities
from wsap_llm.agent import LLMAgent
from wsap_llm.decision.choosing import ChooseStyle
from wsap_llm.decision.styles import JsonStyle
from wsap_llm.options.llm import LLMOptions, Profile
from wsap_llm.scripted import ScriptedBackend
from wsap_matrix.plugin import wsap_adapters

FOLDER = Path(__file__).parent / "prompts"


def prompt(name: str, profile: Profile, *, choose: bool = False) -> str:
    """Return what `column` is asked in the second round, as the model reads it."""
    spec = next(s for s in wsap_adapters() if s.name == name)
    backend = ScriptedBackend(
        ["defect" if choose else '{"action": "defect", "params": {}}'],
        abilities=Abilities(json_schema=True, choose=choose),
    )
    options = LLMOptions(spec.display_title, spec.objective, profile=profile, plan=False)
    style = ChooseStyle(JsonStyle()) if choose else JsonStyle()
    agent = LLMAgent(backend, options, style=style)

    async def turn() -> None:
        world = World.create(spec, Context.create(0))
        row, column = world.open_seat("row"), world.open_seat("column")
        await asyncio.gather(row.act(Action("cooperate")), column.act(Action("defect")))
        await agent.initialize(column.game_description, column.action_space)
        assert (await agent.decide(await column.observe())).name == "defect"

    asyncio.run(turn())
    return "\n\n".join(f"[{m.role}]\n{m.text()}" for m in backend.requests[0].messages) + "\n"


@pytest.mark.parametrize(("profile", "choose"), [("full", False), ("brief", False), ("brief", True)])
def test_a_whole_prompt_is_as_it_was_read_and_short(profile: Profile, choose: bool) -> None:
    golden = FOLDER / f"matrix-{'choose' if choose else profile}.txt"
    text = prompt("matrix", profile, choose=choose)
    assert text == golden.read_text(encoding="utf-8"), f"{golden.name}: read it before changing"
    assert profile == "full" or estimate_tokens(text) <= 300


@pytest.mark.parametrize("name", ["matrix-turns", "matrix-free"])
def test_only_what_matters_is_listed(name: str) -> None:
    spec = next(s for s in wsap_adapters() if s.name == name)
    seat = World.create(spec, Context.create(0)).open_seat("row")
    assert seat.action_space.listed().names == ("cooperate", "defect", "say")
