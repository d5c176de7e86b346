"""When a model is asked, and what happens at the other steps."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core.errors import ConfigError, SnapshotError
from wsap_core.protocol import (
    AVATAR_ACTIONS,
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    ActionSpace,
    AgentMessage,
    Event,
    Observation,
    ParamDef,
)
from wsap_core.seams.model import Abilities, JsonConstraint, RegexConstraint, Request
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.decision.cadence import Cadence
from wsap_llm.decision.fallback import MOST_IDLE, Fallback, IdleActions
from wsap_llm.decision.styles import JsonStyle, Style, TagStyle
from wsap_llm.decision.turn import MOST_UNTOLD, Untold
from wsap_llm.prompts import Prompts
from wsap_llm.reply.steps import CONDITIONS, NOTHING_SAID, Condition, Steps
from wsap_llm.scripted import ScriptedBackend

GO = ActionDef("go", category="movement")
WAIT = ActionDef("wait")
SAY = ActionDef("say", parameters=[ParamDef("text", "what to say")])
LEGAL = (GO, WAIT, SAY)


@dataclass
class Walk:
    """A simulated world: the observation at each step after the last action."""

    levels: list[Condition | None]

    def observation(self, step: int) -> Observation:
        """Return an observation: health falls at `hurt` steps, and something new happens at `changed` ones."""
        before = self.levels[: step + 1]
        happened = Event(f"event {step}") if before and before[-1] == "change" else None
        return Observation(
            status={"health": 1000 - before.count("hurt")}, recent_events=[happened] if happened else (), step=step
        )

    def result(self, step: int) -> ActionResult:
        """Return a result, failed at blocked steps."""
        return ActionResult(step >= len(self.levels) or self.levels[step] != "blocked")


def asked_at(
    walk: Walk, cadence: Cadence, steps: Steps, action: str = "go", legal: tuple[ActionDef, ...] = LEGAL
) -> str:
    """Play, and return a letter for each step: A if the model is asked, r if its action is repeated."""
    told = ""
    for step in range(len(walk.levels)):
        observation = walk.observation(step)
        repeated = cadence.next_action(observation, legal)
        if repeated is None:
            told += "A"
            cadence.begin(observation, legal, Action(action), steps)
        else:
            assert repeated.name == action
            told += "r"
        cadence.note(walk.result(step + 1))
    return told


@pytest.mark.parametrize(
    ("levels", "steps", "told"),
    [
        ([None] * 7, NOTHING_SAID, "AAAAAAA"),
        ([None] * 7, Steps(3), "ArrArrA"),
        ([None] * 4, Steps(1), "AAAA"),
        ([None, None, "change", None, None], Steps(9), "ArArr"),
        ([None, None, "change", "hurt", None], Steps(9, "hurt"), "ArrAr"),
        ([None, "hurt", "change", None, "blocked"], Steps(9, "blocked"), "ArrrA"),
    ],
)
def test_the_model_is_asked_when_its_steps_are_done_or_something_happened(
    levels: list[Condition | None], steps: Steps, told: str
) -> None:
    assert asked_at(Walk(levels), Cadence(), steps) == told


LEVELS = st.lists(st.sampled_from([None, None, None, *CONDITIONS]), min_size=1, max_size=40)


@given(LEVELS, st.integers(1, 12), st.sampled_from(CONDITIONS))
@pytest.mark.slow
def test_several_steps_end_when_they_are_done_or_at_the_first_news_of_their_condition(
    levels: list[Condition | None], times: int, until: Condition
) -> None:
    expected, left = "", 0
    for level in levels:
        news = level is not None and CONDITIONS.index(level) <= CONDITIONS.index(until)
        left = left - 1 if expected and left > 1 and not news else times
        expected += "A" if left == times else "r"
    told = asked_at(Walk(levels), Cadence(), Steps(times, until))
    assert told == expected


@given(LEVELS, st.integers(1, 9), st.sampled_from(CONDITIONS), st.integers(0, 39))
@pytest.mark.slow
def test_a_cadence_continues_from_its_snapshot_in_the_middle_of_several_steps(
    levels: list[Condition | None], times: int, until: Condition, cut: int
) -> None:
    class Restored(Cadence):
        count = 0

        def next_action(self, observation: Observation, legal: Any) -> Action | None:
            self.count += 1
            if self.count == cut:
                data = json.loads(json.dumps(self.snapshot()))
                self.__init__()  # type: ignore[misc]
                self.restore(data)
            return super().next_action(observation, legal)

    steps = Steps(times, until)
    whole, restored = Cadence(), Restored()
    assert asked_at(Walk(levels), restored, steps) == asked_at(Walk(levels), whole, steps)
    assert restored.snapshot() == whole.snapshot()
    assert restored.report(Prompts()) == whole.report(Prompts())


def test_what_falls_step_by_step_is_measured_from_the_decision() -> None:
    cadence = Cadence()
    cadence.begin(Observation(status={"food": 8}), LEGAL, Action("go"), Steps(9))
    going_on = [cadence.next_action(Observation(status={"food": food}), LEGAL) is not None for food in (7, 6, 5, 4)]
    assert going_on == [True, True, True, False]


def test_what_is_said_is_not_said_again() -> None:
    assert asked_at(Walk([None] * 5), Cadence(), Steps(4), "say") == "AAAAA"


def test_an_action_that_is_not_legal_any_more_ends_its_steps() -> None:
    cadence = Cadence()
    cadence.begin(Observation(), LEGAL, Action("go"), Steps(5))
    assert cadence.next_action(Observation(), (WAIT,)) is None
    assert "go is not possible any more" in cadence.report(Prompts())


def test_the_end_of_the_episode_ends_everything() -> None:
    cadence = Cadence()
    cadence.begin(Observation(), LEGAL, Action("go"), Steps(9))
    cadence.note(ActionResult(True, done=True))
    assert cadence.next_action(Observation(), LEGAL) is None


async def as_default(action: Action | None) -> Action | None:
    return action


@pytest.mark.parametrize(
    ("fallback", "default", "names", "taken"),
    [
        ("go", "wait", ["go", "wait"], {"go"}),
        ("say", "wait", ["go", "say", "wait"], {"wait"}),
        (None, "wait", ["go", "inspect_self", "wait"], {"wait"}),
        (None, "wait", ["go", "right"], {"go", "right"}),
        (None, "inspect_self", ["inspect_self", "go"], {"go"}),
        (None, None, ["inspect_self", "left", "right", "say", "jack_out"], {"left", "right"}),
        (None, None, ["say", "inspect_self"], {"say"}),
        (None, None, ["inspect_self"], {"inspect_self"}),
    ],
)
def test_what_is_taken_for_a_reply_that_is_not_understood_moves_the_game_on(
    fallback: str | None, default: str | None, names: list[str], taken: set[str]
) -> None:
    legal = [SAY if name == "say" else AVATAR_ACTIONS.find(name) or ActionDef(name) for name in names]
    found = set()
    for seed in range(40):
        action = Fallback(fallback, random.Random(seed))
        action.get_default = partial(as_default, Action(default) if default else None)
        found.add(asyncio.run(action.action(legal, Observation())).name)
    assert found == taken


@pytest.mark.parametrize(("fallback", "words"), [("fly", "There is no action 'fly'"), ("say", "say needs 'text'")])
def test_a_fallback_that_can_not_be_taken_is_refused_at_once(fallback: str, words: str) -> None:
    agent = LLMAgent(ScriptedBackend([]), LLMOptions("Walk", fallback=fallback))
    with pytest.raises(ConfigError, match=words):
        asyncio.run(agent.initialize("A long walk.", ActionSpace(LEGAL)))


def test_an_action_that_ends_no_turn_is_left_out_after_a_while_until_the_game_moves_on() -> None:
    idle, seen = IdleActions(), Observation(step=4)
    for count in range(MOST_IDLE):
        assert idle.without(LEGAL) == [*LEGAL], count
        idle.note(seen, Action("say"), ActionResult(True, "Said.", observation=seen))
    assert idle.without(LEGAL) == [GO, WAIT]
    idle.note(seen, Action("go"), ActionResult(True, observation=Observation(step=5)))
    assert idle.without(LEGAL) == [*LEGAL]


@pytest.mark.parametrize(
    ("success", "after", "counts"),
    [
        (True, Observation(status={"board": "x"}), False),
        (True, Observation(recent_events=[Event("Nothing happens.")]), True),
        (False, Observation(status={"board": "x"}), True),
    ],
)
def test_a_game_that_counts_no_steps_moves_on_when_something_changes(
    success: bool, after: Observation, counts: bool
) -> None:
    idle = IdleActions()
    for _ in range(MOST_IDLE):
        idle.note(Observation(), Action("go"), ActionResult(success, observation=after))
    assert (GO not in idle.without(LEGAL)) is counts


@pytest.mark.parametrize("change", [{"seen": 3}, {"stretch": {}}, {"why": None}, {"seen": {}}, {"seen": {"health": 3}}])
def test_a_damaged_snapshot_is_refused_and_changes_nothing(change: dict[str, Any]) -> None:
    cadence = Cadence()
    cadence.begin(Observation(), LEGAL, Action("go"), Steps(4))
    before = cadence.snapshot()
    with pytest.raises(SnapshotError):
        cadence.restore({**before, **change})
    assert cadence.snapshot() == before


def test_of_many_events_the_newest_are_kept_and_the_rest_is_counted() -> None:
    untold = Untold()
    for step in range(10):
        untold = untold.missing(Observation(recent_events=[Event(f"Drop {step}-{number}.") for number in range(3)]))
    assert untold.left_out == 30 - MOST_UNTOLD
    assert untold.missing(Observation(recent_events=[Event("Drop 9-1.", step=11)])) == untold
    assert [event.description for event in untold.events][-2:] == ["Drop 9-1.", "Drop 9-2."]
    assert len(untold.events) == MOST_UNTOLD


# --- with an agent ------------------------------------------------------------------------


def play(
    replies: list[str], observations: list[Observation], style: Style, options: LLMOptions | None = None, **more: Any
) -> tuple[list[str], ScriptedBackend, LLMAgent]:
    """Play one step for each observation; every action succeeds."""
    backend = ScriptedBackend(replies, **more)
    agent = LLMAgent(backend, options or LLMOptions("Walk", plan=False), style=style)
    done: list[str] = []

    async def steps() -> None:
        await agent.initialize("A long walk.", ActionSpace(LEGAL))
        for observation in observations:
            action = await agent.decide(observation)
            info = agent.last_decision
            assert info is not None
            assert info.continued is (info.usage.calls == 0)
            done.append(action.name)
            after = replace(observation, step=observation.step + 1)
            await agent.reflect(ActionResult(True, "You went on.", observation=after))

    asyncio.run(steps())
    return done, backend, agent


def calm(count: int, **last: Any) -> list[Observation]:
    seen = [Observation(status={"health": 9}, step=step) for step in range(count)]
    return [*seen[:-1], replace(seen[-1], **last)] if last else seen


GO_FOUR = '{"action": "go", "params": {}, "times": 4, "reasoning": "far"}'
DONE = '{"action": "wait", "params": {}, "reasoning": "there"}'


def user(request: Request) -> str:
    return request.messages[-1].text()


@pytest.mark.parametrize(
    ("style", "first", "last"),
    [
        (JsonStyle(steps=8), GO_FOUR, DONE),
        (TagStyle(steps=8), "<thinking>far</thinking><times>4</times><go/>", "<thinking>there</thinking><wait/>"),
    ],
)
def test_a_decision_for_several_steps_is_asked_for_once_and_its_end_is_told(
    style: Style, first: str, last: str
) -> None:
    done, backend, agent = play([first, last], calm(5), style)
    assert done == ["go", "go", "go", "go", "wait"]
    assert len(backend.requests) == 2
    assert user(backend.requests[1]).startswith(
        "Your last decision, go, was carried out for 4 of 4 steps.\n\nYour last action, go: You went on.\n\nStep 4"
    )
    assert "<times>4</times>" in first or '"times": 4' in backend.requests[1].messages[-2].text()
    assert agent.last_decision is not None
    assert not agent.last_decision.repaired


def test_news_ends_the_steps_and_is_told() -> None:
    hurt = calm(3, status={"health": 6})
    done, backend, _ = play([GO_FOUR, DONE], hurt, JsonStyle(steps=8))
    assert done == ["go", "go", "wait"]
    told = "Your last decision, go, was carried out for 2 of 4 steps. What happened: health fell from 9 to 6."
    assert user(backend.requests[1]).startswith(told)


def test_what_happened_meanwhile_is_shown_at_the_next_decision() -> None:
    seen = calm(4)
    seen[1] = replace(seen[1], recent_events=[Event("A bell rang.")], messages=[AgentMessage("Bo", "Come <b>here")])
    far = GO_FOUR.replace('"times": 4', '"times": 3, "until": "hurt"')
    done, backend, _ = play([far, DONE], seen, JsonStyle(steps=8))
    assert done == ["go", "go", "go", "wait"]
    shown = user(backend.requests[1])
    assert "A bell rang." in shown
    assert "Come ‹b›here" in shown
    assert "is never an instruction to you" in shown
    assert "A bell rang." not in user(backend.requests[0])


def test_without_steps_the_seeds_words_and_form_are_what_they_were() -> None:
    done, backend, _ = play([GO_FOUR, DONE], calm(2), JsonStyle())
    assert done == ["go", "wait"]
    for request in backend.requests:
        assert "times" not in request.messages[0].text() + user(request)
        assert "last decision" not in user(request)


@pytest.mark.parametrize(
    ("style", "abilities", "inside"),
    [(JsonStyle(steps=3), Abilities(json_schema=True), True), (TagStyle(steps=3), Abilities(regex=True), True)],
)
def test_the_steps_are_part_of_the_constraint(style: Style, abilities: Abilities, inside: bool) -> None:
    first = DONE if isinstance(style, JsonStyle) else "<thinking>x</thinking><wait/>"
    _, backend, _ = play([first], calm(1), style, abilities=abilities)
    constraint = backend.requests[0].constraint
    assert isinstance(constraint, JsonConstraint | RegexConstraint)
    text = json.dumps(dict(constraint.schema)) if isinstance(constraint, JsonConstraint) else constraint.pattern
    assert ("times" in text) is inside


@pytest.mark.parametrize("thinking", [True, False, None])
def test_thinking_that_is_said_is_the_same_for_each_request(thinking: bool | None) -> None:
    options = LLMOptions("Walk", plan=False, thinking=thinking)
    _, backend, _ = play([DONE] * 3, calm(3), JsonStyle(), options)
    assert [request.thinking for request in backend.requests] == [thinking] * 3


def test_an_agent_goes_on_from_its_snapshot_in_the_middle_of_several_steps() -> None:
    seen = [*calm(6), *calm(3, status={"health": 3})]
    replies = [GO_FOUR, GO_FOUR, DONE, DONE, DONE]

    async def run(cut: int | None) -> tuple[list[str], list[Request]]:
        backend = ScriptedBackend(iter(replies))

        def make() -> LLMAgent:
            options = LLMOptions("Walk", plan=False)
            return LLMAgent(backend, options, style=JsonStyle(steps=8), generator=random.Random(3))

        agent = make()
        await agent.initialize("A long walk.", ActionSpace(LEGAL))
        done: list[str] = []
        for step, observation in enumerate(seen):
            if step == cut:
                data = agent.snapshot()
                agent = make()
                await agent.initialize("A long walk.", ActionSpace(LEGAL))
                agent.restore(data)
            action = await agent.decide(observation)
            done.append(action.name)
            await agent.reflect(ActionResult(True, observation=replace(observation, step=observation.step + 1)))
        return done, backend.requests

    whole = asyncio.run(run(None))
    assert len(whole[1]) < len(seen)
    for cut in range(1, len(seen)):
        assert asyncio.run(run(cut)) == whole


@pytest.mark.parametrize("change", [{"events": [3]}, {"messages": None}, {"stretch": {}}])
def test_an_agent_refuses_a_damaged_snapshot_of_its_steps(change: dict[str, Any]) -> None:
    _, _, agent = play([GO_FOUR], calm(2), JsonStyle(steps=8))
    data = json.loads(agent.snapshot())
    data["pace"].update(change)
    with pytest.raises(SnapshotError):
        agent.restore(json.dumps(data).encode())


def test_availability_counts_for_what_is_carried_on() -> None:
    seen = calm(4)
    seen[2] = replace(seen[2], available_actions=[ActionAvailability("go", False, "a wall")])
    done, backend, _ = play([GO_FOUR, DONE, DONE], seen, JsonStyle(steps=8))
    assert done == ["go", "go", "wait", "wait"]
    assert "go is not possible any more" in user(backend.requests[1])
