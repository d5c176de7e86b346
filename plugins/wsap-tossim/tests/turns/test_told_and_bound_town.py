"""What a player of the town is told that it can do, and look up, is what its reply is bound to."""

from __future__ import annotations

import asyncio

import pytest
from told_and_bound import ABILITIES, Player
from turn_kit import Scene

from wsap_llm import agent
from wsap_llm.decision.choosing import ChooseStyle
from wsap_llm.decision.offers import offerable
from wsap_llm.decision.styles import CallStyle, JsonStyle, Style, TagStyle
from wsap_llm.options.llm import LLMOptions, Profile
from wsap_llm.tools.calculator import Calculator
from wsap_tossim.plugin import wsap_adapters

STYLES: dict[str, Style] = {
    "json": JsonStyle(), "calls": CallStyle(), "tags": TagStyle(), "choose": ChooseStyle(JsonStyle()),
}  # fmt: skip
TURNS = {1: ("nomination", 1), 5: ("night", 6), 6: ("night", 6)}
"""Player -> the phase and the place of a turn of it."""


@pytest.mark.parametrize("profile", ["full", "brief"])
@pytest.mark.parametrize("style", list(ABILITIES))
@pytest.mark.parametrize("player", list(TURNS))
def test_what_the_turn_names_is_what_the_reply_is_bound_to(
    monkeypatch: pytest.MonkeyPatch, player: int, style: str, profile: Profile
) -> None:
    scene = Scene("Sheriff", "Doctor", "Citizen", "Citizen", "Godfather", "Mafioso", "Jester", rules="classic")
    scene.on(1, "night", 1, "interrogate 6").on(1, "night", 6, "kill 3")
    town = scene.play(2, *TURNS[player]).town()
    (spec,) = wsap_adapters()
    model = Player(style, seed=player, by_name=("player", "role"))
    monkeypatch.setattr(agent, "offerable", lambda space: model.spaces.append(space) or offerable(space))
    options = LLMOptions("ToSSim", objective=spec.objective, profile=profile, complete_turns=spec.complete_turns)
    one = agent.LLMAgent(model, options, style=STYLES[style], tools=[Calculator()])
    seat = town.seat(f"player-{player}")

    async def turn() -> None:
        await one.initialize(seat.game_description, seat.action_space)
        await one.decide(town.observation(f"player-{player}"))

    asyncio.run(turn())
    assert model.decided == 1
    assert not model.problems, model.problems[0]
