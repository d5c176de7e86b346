"""Decisions of several steps: bounded in the constraint, parsed leniently, and optional."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core.protocol import ActionDef, ParamDef, Tool
from wsap_llm.reply import Understood, read_reply
from wsap_llm.reply.schema import reply_schema
from wsap_llm.reply.steps import NOTHING_SAID, Steps, repeatable, steps_in_tags
from wsap_llm.reply.tags import OPENING, TagTurn, read_leg
from wsap_llm.schemas.patterns import json_pattern

WAIT = ActionDef("wait")
MOVE = ActionDef("move", parameters=[ParamDef("direction", "north|south")])
SAY = ActionDef("say", parameters=[ParamDef("text", "what to say")])
LEAVE = ActionDef("leave", category="meta")
DRUM = ActionDef("drum", parameters=[ParamDef("times", "1-3")])
ACTIONS = (WAIT, MOVE, SAY, LEAVE)
TOOLS = (Tool("clock"),)


def reply_pattern(*args: Any, **options: Any) -> str:
    return json_pattern(reply_schema(*args, **options))


def fits(value: Any, **options: Any) -> bool:
    """Validate by an independent library."""
    return bool(jsonschema.Draft202012Validator(reply_schema(ACTIONS, TOOLS, **options)).is_valid(value))


def read(text: str, most: int = 8, actions: Sequence[ActionDef] = ACTIONS) -> Understood:
    reading = read_reply(text, actions, steps=most)
    assert isinstance(reading, Understood)
    return reading


def reply(action: str, params: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"action": action, "params": params, **more, "reasoning": "x"}


@pytest.mark.parametrize(
    ("value", "valid"),
    [
        (reply("wait", {}), True),
        (reply("wait", {}, times=8), True),
        (reply("wait", {}, times=1, until="hurt"), True),
        (reply("wait", {}, until="blocked"), True),
        (reply("move", {"direction": "north"}, times=3, until="change"), True),
        (reply("wait", {}, times=9), False),
        (reply("wait", {}, times=0), False),
        (reply("wait", {}, times="3"), False),
        (reply("wait", {}, until="never"), False),
        (reply("say", {"text": "hello"}), True),
        (reply("say", {"text": "hello"}, times=2), False),
        (reply("leave", {}), True),
        (reply("leave", {}, times=2), False),
        ({"tool": "clock", "params": {}}, True),
        ({"tool": "clock", "params": {}, "times": 2}, False),
    ],
)
def test_steps_are_optional_and_bounded_inside_the_schema_and_its_expression(value: Any, valid: bool) -> None:
    assert fits(value, steps=8) is valid
    assert bool(re.fullmatch(reply_pattern(ACTIONS, TOOLS, steps=8), json.dumps(value))) is valid


@given(st.sampled_from(ACTIONS[:2]), st.integers(1, 64), st.none() | st.integers(1, 64))
def test_a_schema_for_one_step_knows_no_steps(action: ActionDef, most: int, times: int | None) -> None:
    params = {"direction": "south"} if action is MOVE else {}
    more = {} if times is None else {"times": times}
    assert fits(reply(action.name, params, **more)) is (times is None)
    assert fits(reply(action.name, params, **more), steps=most) is (times is None or 1 < most >= times)


def test_the_reasoning_is_in_the_expression_once_for_all_actions_that_can_be_repeated() -> None:
    many = [ActionDef(f"go{i}", parameters=[ParamDef("where", "a|b")]) for i in range(20)]
    assert reply_pattern(many, steps=8).count("reasoning") == 1


def test_in_the_strict_dialect_steps_are_required_and_may_be_null() -> None:
    schema = reply_schema((WAIT,), strict_openai=True, steps=4)
    branch = schema["properties"]["reply"]
    assert branch["required"] == ["action", "params", "times", "until", "reasoning"]
    text = json.dumps({"reply": {**reply("wait", {}), "times": None, "until": None}})
    assert read(text, 4, (WAIT,)).steps == NOTHING_SAID


def test_what_is_said_in_free_words_and_leaving_are_done_once() -> None:
    once = [
        SAY,
        LEAVE,
        ActionDef("jack_out"),
        ActionDef("list", parameters=[ParamDef("names", schema={"type": "array", "items": {"type": "string"}})]),
        ActionDef("any", parameters=[ParamDef("what", schema={"type": "array"})]),
        ActionDef("form", parameters=[ParamDef("f", schema={"type": "object", "properties": {"a": {}}})]),
    ]
    several = [
        WAIT,
        MOVE,
        ActionDef("aim", parameters=[ParamDef("angle", schema={"type": "number"})]),
        ActionDef("at", parameters=[ParamDef("x", schema={"type": "array", "items": {"type": "integer"}})]),
        ActionDef("pick", parameters=[ParamDef("x", schema={"enum": ["a", "b"]})]),
    ]
    assert [repeatable(a) for a in (*once, *several)] == [False] * len(once) + [True] * len(several)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ('{"action": "wait", "params": {}, "times": 5, "reasoning": "x"}', Steps(5)),
        ('{"action": "wait", "params": {}, "times": 5, "until": "hurt", "reasoning": "x"}', Steps(5, "hurt")),
        ('{"action": "wait", "params": {}, "until": "blocked"}', Steps(8, "blocked")),
        ('{"action": "wait", "params": {}, "times": 500}', Steps(8)),
        ('{"action": "wait", "params": {}, "times": -2}', Steps(1)),
        ('{"action": "wait", "params": {}, "times": "3 times"}', Steps(3)),
        ('{"action": "wait", "params": {}, "times": 4.0}', Steps(4)),
        ('{"action": "wait", "params": {}, "times": true}', NOTHING_SAID),
        ('{"action": "wait", "params": {}, "times": "many"}', NOTHING_SAID),
        ('{"action": "wait", "params": {}, "times": 2, "until": "something changes"}', Steps(2)),
        ('{"action": "wait", "params": {}, "times": 2, "until": "nightfall"}', Steps(2)),
        ("```json\n{'action': 'wait', 'params': {}, 'times': 6,}\n```", Steps(6)),
        ('I wait. {"action": "wait", "times": 2}', Steps(2)),
        ('<think>{"action": "wait", "times": 7}</think>{"action": "wait", "params": {}}', NOTHING_SAID),
        ('{"action": {"name": "wait", "times": 3}}', Steps(3)),
        ('{"action": "wait", "params": {}, "reasoning": "three times is enough"}', NOTHING_SAID),
        ("wait", NOTHING_SAID),
    ],
)
def test_steps_are_read_with_tolerance_and_leave_the_rest_understood(text: str, steps: Steps) -> None:
    reading = read(text)
    assert reading.steps == steps
    assert getattr(reading.choice, "name", "") == "wait"


def test_steps_that_are_asked_for_as_told_are_no_repair() -> None:
    assert not read('{"action": "move", "params": {"direction": "north"}, "times": 5, "until": "hurt"}').repaired
    assert read('{"action": "move", "params": {"direction": "north"}, "times": 5,}').repaired


def test_a_parameter_of_that_name_stays_the_actions_own() -> None:
    for text in ('{"action": "drum", "params": {"times": 3}}', '{"action": "drum", "times": 3}'):
        reading = read(text, actions=(DRUM, WAIT))
        assert reading.steps == NOTHING_SAID
        assert reading.choice.parameters == {"times": 3}
    reading = read('{"action": "drum", "params": {"times": 3}, "times": 2}', actions=(DRUM, WAIT))
    assert reading.steps == Steps(2)
    assert reading.choice.parameters == {"times": 3}


def test_steps_never_stand_in_for_a_missing_parameter() -> None:
    assert not isinstance(read_reply('{"action": "say", "times": 2}', ACTIONS, steps=8), Understood)
    twice = '{"action": "say", "params": {}, "times": 2, "times": 3}'
    assert not isinstance(read_reply(twice, ACTIONS, steps=8), Understood)


@pytest.mark.parametrize(
    "text",
    ['{"action": "wait", "action": "say", "params": {}, "times": 2}', '{"times": 2, "action": "say", "params": {"te'],
)
def test_a_reply_that_contradicts_itself_or_broke_off_is_no_clearer_for_its_steps(text: str) -> None:
    assert not isinstance(read_reply(text, ACTIONS, steps=8), Understood)


def test_the_steps_of_the_last_action_count_where_a_reply_has_several() -> None:
    text = '{"action": "wait", "params": {}, "times": 5}\nFinal answer: {"action": "wait", "params": {}}'
    assert read(text).steps == NOTHING_SAID


@given(st.text(max_size=200), st.integers(2, 64))
def test_any_text_is_read_and_a_silent_one_as_where_nobody_asks_for_steps(text: str, most: int) -> None:
    reading = read_reply(text, ACTIONS, steps=most)
    if "times" not in text and "until" not in text:
        assert reading == read_reply(text, ACTIONS)
    assert steps_in_tags(text, most).times is None or "<" in text


# --- tags ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leg", "valid"),
    [
        ("x</thinking>\n<wait/>", True),
        ("x</thinking>\n<times>5</times><wait/>", True),
        ("x</thinking><times>12</times>\n<until>hurt</until>\n<move>north</move>", True),
        ("x</thinking><until>blocked</until><wait></wait>", True),
        ("x</thinking><times>13</times><wait/>", False),
        ("x</thinking><times>0</times><wait/>", False),
        ("x</thinking><times>2</times><times>2</times><wait/>", False),
        ("x</thinking><until>dawn</until><wait/>", False),
        ("x</thinking><times>2</times><say>hello</say>", False),
        ("x</thinking><say>hello</say>", True),
        ("x</thinking><times>2</times><leave/>", False),
        ("x<clock/>", True),
        ("x<times>2</times><clock/>", False),
    ],
)
def test_steps_are_bounded_inside_the_expression_for_tags(leg: str, valid: bool) -> None:
    turn = TagTurn(TOOLS, ACTIONS, steps=12)
    assert bool(re.fullmatch(turn.continuation_pattern(), leg)) is valid
    assert bool(re.fullmatch(turn.pattern(), OPENING + leg)) is valid


@pytest.mark.parametrize(
    ("leg", "steps"),
    [
        ("x</thinking>\n<times>5</times><wait/>", Steps(5)),
        ("x</thinking><times>2</times> <until>hurt</until>\n<move>north</move>", Steps(2, "hurt")),
        ("x</think>< Times > 40 </times>\n\n<wait/>", Steps(8)),
        ("x</thinking><until>blocked</until><wait/>", Steps(8, "blocked")),
        ("<times>5</times> would be too long</thinking><wait/>", NOTHING_SAID),
        ("x</thinking><wait/><times>5</times>", NOTHING_SAID),
        ("x</thinking><say><times>5</times></say>", NOTHING_SAID),
        ("x</thinking><wait/>", NOTHING_SAID),
    ],
)
def test_steps_in_tags_stand_between_the_thinking_and_the_final_tag(leg: str, steps: Steps) -> None:
    assert steps_in_tags(leg, 8) == steps
    reading, _ = read_leg(TagTurn((), ACTIONS, steps=8), leg, inside_thinking=True)
    assert isinstance(reading, Understood)
    assert reading.steps == steps


def test_an_action_with_the_name_of_the_tag_keeps_it() -> None:
    turn = TagTurn((), (WAIT, ActionDef("times", parameters=[ParamDef("n", "1-9")])), steps=8)
    assert turn.steps == 1
    assert re.fullmatch(turn.continuation_pattern(), "x</thinking><times>4</times>")
    assert not re.fullmatch(turn.continuation_pattern(), "x</thinking><times>4</times><wait/>")
