"""Whole prompts: what a model is told of a role under a rule set, in full and in brief.

The files in `prompts/` were read line by line against the rules; whoever changes what is told reads them again.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from turn_kit import Scene

from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Abilities
from wsap_llm.agent import LLMAgent
from wsap_llm.decision.styles import JsonStyle
from wsap_llm.options.llm import LLMOptions, Profile
from wsap_llm.scripted import ScriptedBackend
from wsap_tossim.engine.data.rules import RULE_SETS
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.options import TownOptions
from wsap_tossim.perception.description import description_of, role_sheet
from wsap_tossim.plugin import wsap_adapters
from wsap_tossim.verbs import action_space

FOLDER = Path(__file__).parent / "prompts"


def model(profile: Profile) -> tuple[LLMAgent, ScriptedBackend]:
    """Return an agent as the game asks for it, and the model that it asks."""
    (spec,) = wsap_adapters()
    backend = ScriptedBackend(['{"action": "wait", "params": {}}'], abilities=Abilities(json_schema=True))
    options = LLMOptions("ToSSim", objective=spec.objective, profile=profile, complete_turns=spec.complete_turns)
    return LLMAgent(backend, options, style=JsonStyle()), backend


def prompt(rules: str, role: str, profile: Profile) -> str:
    """Return what a Sheriff is asked by day, or a Mafioso at night."""
    scene = Scene("Sheriff", "Doctor", "Citizen", "Citizen", "Godfather", "Mafioso", "Jester", rules=rules)
    scene.on(1, "night", 1, "interrogate 6").on(1, "night", 6, "kill 3")
    scene.on(2, "discussion", 2, "speak: I am the Doctor. Who found something?")
    scene.on(2, "discussion", 7, "speak: It was Player 2!").on(2, "nomination", 7, "vote 2")
    day = "ballot" if rules == "parity" else "nomination"
    player = {"Sheriff": 1, "Mafioso": 6}[role]
    town = scene.play(2, *{1: (day, 1), 6: ("night", 6)}[player]).town()
    seat, (agent, backend) = town.seat(f"player-{player}"), model(profile)

    async def turn() -> None:
        await agent.initialize(seat.game_description, seat.action_space)
        await agent.decide(town.observation(f"player-{player}"))

    asyncio.run(turn())
    return "\n\n".join(f"[{m.role}]\n{m.text()}" for m in backend.requests[0].messages) + "\n"


@pytest.mark.parametrize("profile", ["full", "brief"])
@pytest.mark.parametrize("role", ["Sheriff", "Mafioso"])
@pytest.mark.parametrize("rules", ["classic", "parity"])
def test_a_whole_prompt_is_as_it_was_read(rules: str, role: str, profile: Profile) -> None:
    golden = FOLDER / f"{rules}-{role.lower()}-{profile}.txt"
    assert prompt(rules, role, profile) == golden.read_text(encoding="utf-8"), f"{golden.name}: read it before changing"


@pytest.mark.slow
def test_a_brief_prompt_has_at_most_1500_tokens_and_a_system_message_under_3000_characters() -> None:
    for rules in RULE_SETS:
        chosen = TownOptions.read({"mode": "ranked", "rules": rules})
        for role in ROLES.values():
            sizes = {}
            for profile in ("full", "brief"):
                agent, _ = model(profile)
                told = f"{description_of(chosen.setup, chosen.rules)}\n\nYou are Player 15, the {role.name}.\n"
                space = action_space(chosen.names, list(ROLES), chosen.rules, role)
                asyncio.run(agent.initialize(told + role_sheet(role, chosen.rules), space))
                sizes[profile] = agent.system_prompt
            assert len(sizes["full"]) < 3000, (rules, role.name)
            assert estimate_tokens(sizes["brief"]) < 700, (rules, role.name)
    # What is left for the turn: the longest one.
    talk = Scene(*["Citizen"] * 13, "Mafioso", "Mafioso")
    for player in range(1, 16):
        talk.on(1, "discussion", player, f"speak: {'Perhaps it was Player 3, who said nothing. ' * 9}", "speak: Yes!")
        talk.write(player, "will", "I trust nobody. " * 60)
    turn = talk.on(1, "night", 14, "kill 1").play(2, "nomination", 4).shown(4).to_brief()
    assert estimate_tokens(turn) < 700
