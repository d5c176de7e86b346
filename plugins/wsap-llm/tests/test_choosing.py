"""The style `choose`: the options are the legal actions, and the drawn one is executed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from wsap_core.errors import SnapshotError
from wsap_core.protocol import Action, ActionAvailability, ActionDef, ActionSpace, Goal, Observation, ParamDef
from wsap_core.seams.model import Abilities, ChooseConstraint, JsonConstraint
from wsap_llm.agent import LLMAgent
from wsap_llm.create import style_that_suits
from wsap_llm.decision.choosing import MOST_OPTIONS, ChooseStyle, options_of
from wsap_llm.decision.styles import JsonStyle, Style
from wsap_llm.options.llm import LLMOptions, Profile, profile_for
from wsap_llm.scripted import ScriptedBackend

WALK = ActionDef("move_west")
VOTE = ActionDef("vote", "", [ParamDef("player", "Ann|Bob"), ParamDef("why", "a reason", optional=True)])
BET = ActionDef("bet", "", [ParamDef("chips", "1-3")])
SAY = ActionDef("say", "", [ParamDef("text", "what to say")])
LOOK = ActionDef("look_up", category="tool")


@dataclass(frozen=True)
class Meadow(Observation):
    def phrases(self) -> Mapping[str, str]:
        return {"move_west": "go west to the tree"}


def test_options_are_phrases_or_names_in_words_with_each_value() -> None:
    assert options_of([WALK, VOTE, BET, LOOK], {"move_west": "go west to the tree"}) == {
        "go west to the tree": Action("move_west"),
        "vote Ann": Action("vote", {"player": "Ann"}),
        "vote Bob": Action("vote", {"player": "Bob"}),
        "bet 1": Action("bet", {"chips": 1}),
        "bet 2": Action("bet", {"chips": 2}),
        "bet 3": Action("bet", {"chips": 3}),
    }


@pytest.mark.parametrize("action", [SAY, ActionDef("bid", "", [ParamDef("chips", f"1-{MOST_OPTIONS + 1}")])])
def test_what_takes_free_text_or_too_many_values_is_not_listed(action: ActionDef) -> None:
    assert options_of([WALK, action], {}) == {}


def decide(reply: str, space: list[ActionDef]) -> tuple[LLMAgent, ScriptedBackend, Action]:
    backend = ScriptedBackend(lambda request: reply, abilities=Abilities(choose=True, json_schema=True))
    agent = LLMAgent(backend, LLMOptions("Meadow", profile="brief"), style=ChooseStyle(JsonStyle()))

    async def session() -> Action:
        await agent.initialize("A meadow.", ActionSpace(space))
        if len(space) > 1:
            await agent.decide(Meadow(available_actions=[ActionAvailability(space[-1].name, False)]))
        return await agent.decide(Meadow())

    return agent, backend, asyncio.run(session())


def test_what_is_legal_is_scored_and_the_decision_counts_as_chosen() -> None:
    agent, backend, action = decide("go west to the tree", [WALK, VOTE])
    first, second = backend.requests
    assert action == Action("move_west")
    assert agent.last_decision is not None
    assert agent.last_decision.chosen
    assert first.constraint == ChooseConstraint(["go west to the tree"])
    assert second.constraint == ChooseConstraint(["go west to the tree", "vote Ann", "vote Bob"])
    assert first.sampling.seed != second.sampling.seed
    assert "- vote Bob" in second.messages[-1].text()
    assert "JSON" not in second.messages[-1].text()


def test_where_free_text_is_legal_the_reply_is_written() -> None:
    agent, backend, action = decide('{"action": "say", "params": {"text": "Hello"}}', [SAY])
    assert action.name == "say"
    assert agent.last_decision is not None
    assert not agent.last_decision.chosen
    assert isinstance(backend.requests[-1].constraint, JsonConstraint)
    assert "JSON" in backend.requests[-1].messages[-1].text()


@pytest.mark.parametrize(
    ("abilities", "profile", "style"),
    [
        (Abilities(choose=True, parameters=135_000_000), "brief", "choose"),
        (Abilities(choose=True, parameters=1_700_000_000), "brief", "json"),
        (Abilities(choose=True, parameters=8_000_000_000), "full", "json"),
        (Abilities(context=4096), "brief", "json"),
        (Abilities(), "full", "json"),
    ],
)
def test_small_models_are_told_little_and_tiny_ones_choose(abilities: Abilities, profile: str, style: str) -> None:
    assert profile_for(abilities) == profile
    assert style_that_suits(abilities, profile_for(abilities)) == style


def test_goals_are_told_once_with_the_newest_observation() -> None:
    backend = ScriptedBackend(lambda request: '{"action": "move_west", "params": {}}')
    agent = LLMAgent(backend, LLMOptions("Meadow", profile="full", plan=False))

    async def session() -> None:
        await agent.initialize("A meadow.", ActionSpace([WALK]))
        for goal in ("find the gate", "find the gate", "go home"):
            await agent.decide(Observation(current_goals=[Goal("goal", goal)]))

    asyncio.run(session())
    for request, goal in zip(backend.requests, ("find the gate", "find the gate", "go home"), strict=True):
        *older, newest = [message.text() for message in request.messages]
        assert goal in newest
        assert not any("find the gate" in text for text in older)


@pytest.mark.parametrize("abilities", [Abilities(json_schema=True), Abilities(choose=True)])
def test_where_nothing_can_be_chosen_actions_are_told_by_name_and_the_reply_is_written(abilities: Abilities) -> None:
    backend = ScriptedBackend(lambda request: '{"action": "move_west", "params": {}}', abilities=abilities)
    options = LLMOptions("Meadow", profile="brief", constrain=abilities.json_schema)
    agent = LLMAgent(backend, options, style=ChooseStyle(JsonStyle()))

    async def session() -> Action:
        await agent.initialize("A meadow.", ActionSpace([WALK]))
        return await agent.decide(Meadow())

    assert asyncio.run(session()) == Action("move_west")
    assert "- move_west: go west to the tree" in backend.requests[0].messages[-1].text()


def suited(abilities: Abilities, profile: Profile, going_on: str) -> Style:
    choose = (going_on or style_that_suits(abilities, profile)) == "choose"
    return ChooseStyle(JsonStyle()) if choose else JsonStyle()


def test_a_session_goes_on_as_it_was_saved() -> None:
    tiny = Abilities(choose=True, json_schema=True, parameters=135_000_000)
    backend = ScriptedBackend(["move west", '{"action": "move_west", "params": {}}'], abilities=tiny)
    first, second = (LLMAgent(backend, LLMOptions("Meadow", plan=False), style=suited) for _ in range(2))

    async def session() -> None:
        for agent in (first, second):
            await agent.initialize("A meadow.", ActionSpace([WALK]))
        await first.decide(Observation())
        second.restore(first.snapshot())
        await second.decide(Observation())

    asyncio.run(session())
    assert isinstance(backend.requests[0].constraint, ChooseConstraint)
    assert isinstance(backend.requests[1].constraint, ChooseConstraint)
    assert "Available actions:" not in second.system_prompt


def test_a_session_that_a_newer_version_saved_is_refused() -> None:
    agent = LLMAgent(ScriptedBackend(["move west"]), LLMOptions("Meadow", plan=False))
    saved = json.loads(agent.snapshot())
    with pytest.raises(SnapshotError, match="a newer version of WSAP took it"):
        agent.restore(json.dumps({**saved, "format": 2}).encode())


def test_small_models_give_their_reason_first() -> None:
    style = JsonStyle(reasoning_first=True)
    backend = ScriptedBackend(
        lambda request: '{"reasoning": "why", "action": "move_west", "params": {}}',
        abilities=Abilities(json_schema=True),
    )
    agent = LLMAgent(backend, LLMOptions("Meadow", profile="brief"), style=style)

    async def session() -> Action:
        await agent.initialize("A meadow.", ActionSpace([WALK]))
        return await agent.decide(Observation())

    assert asyncio.run(session()) == Action("move_west", {}, "why")
    constraint = backend.requests[0].constraint
    assert isinstance(constraint, JsonConstraint)
    assert list(constraint.schema["properties"]) == ["reasoning", "action", "params"]
    example = '{"reasoning": "why, in a few words", "action": "name", "params": {}}'
    assert example in backend.requests[0].messages[-1].text()
