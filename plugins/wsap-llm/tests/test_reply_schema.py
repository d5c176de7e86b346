"""The schema of a reply accepts exactly the legal actions, and every reply ends."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core import ActionDef, ActionSpace, Observation, ParamDef
from wsap_core.protocol import ActionAvailability, Tool
from wsap_core.protocol.values import validate_value
from wsap_llm.reply import ToolCall, Understood, read_reply
from wsap_llm.reply.schema import bounded, legal_actions, reply_schema
from wsap_llm.schemas.patterns import integer_pattern, json_pattern, literal, text_pattern

ACTIONS = (
    ActionDef("wait"),
    ActionDef("look"),
    ActionDef("move", parameters=(ParamDef("direction", "north|south"),)),
    ActionDef("say", parameters=(ParamDef("text", "what to say"),)),
    ActionDef("give", parameters=(ParamDef("item", "what"), ParamDef("amount", "1-12", optional=True))),
    ActionDef(
        "aim",
        parameters=(
            ParamDef("angle", schema={"type": "number", "minimum": -0.5, "maximum": 2.5}),
            ParamDef("at", schema={"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}),
        ),
    ),
)
TOOLS = (Tool("calculator", parameters=(ParamDef("expression", "arithmetic"),)), Tool("clock"))


def reply_pattern(*args: Any, **options: Any) -> str:
    return json_pattern(reply_schema(*args, **options))


def accepts(schema: dict[str, Any], value: Any) -> bool:
    """Validate by an independent library."""
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


def reply(action: str, params: dict[str, Any], reasoning: str = "x") -> dict[str, Any]:
    return {"action": action, "params": params, "reasoning": reasoning}


# --- what is legal ------------------------------------------------------------------------


def test_without_a_word_about_availability_every_declared_action_is_legal() -> None:
    assert legal_actions(ActionSpace(ACTIONS), Observation()) == ACTIONS


def test_what_the_observation_bars_is_not_legal_and_what_it_leaves_out_is() -> None:
    observation = Observation(
        available_actions=[ActionAvailability("wait"), ActionAvailability("say", False, "you are gagged")]
    )
    legal = legal_actions(ActionSpace(ACTIONS), observation)
    assert [a.name for a in legal] == ["wait", "look", "move", "give", "aim"]


# --- the schema ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        (reply("wait", {}), True),
        (reply("look", {}), True),
        (reply("fly", {}), False),
        (reply("wait", {"x": 1}), False),
        (reply("move", {"direction": "south"}), True),
        (reply("move", {"direction": "up"}), False),
        (reply("move", {}), False),
        (reply("give", {"item": "bread"}), True),
        (reply("give", {"item": "bread", "amount": 12}), True),
        (reply("give", {"item": "bread", "amount": 13}), False),
        (reply("say", {"text": "x" * 400}), True),
        (reply("say", {"text": "x" * 401}), False),
        (reply("wait", {}, "y" * 300), True),
        (reply("wait", {}, "y" * 301), False),
        ({"action": "wait", "params": {}}, False),
        ({**reply("wait", {}), "more": 1}, False),
        ({"tool": "calculator", "params": {"expression": "1+1"}}, True),
        ({"tool": "clock", "params": {}}, True),
        ({"tool": "wait", "params": {}}, False),
        ({"tool": "calculator", "params": {"expression": "1+1"}, "action": "wait"}, False),
    ],
)
def test_the_schema_and_the_pattern_let_through_what_is_legal_now(value: Any, fits: bool) -> None:
    assert accepts(reply_schema(ACTIONS, TOOLS), value) is fits
    assert bool(re.fullmatch(reply_pattern(ACTIONS, TOOLS), json.dumps(value))) is fits


def test_a_tool_that_may_not_be_called_any_more_can_not_be_said() -> None:
    assert not accepts(reply_schema(ACTIONS), {"tool": "clock", "params": {}})


@pytest.mark.parametrize(
    ("first", "keys", "most"),
    [(False, ["action", "params", "reasoning"], 300), (True, ["reasoning", "action", "params"], 120)],
)
def test_the_reasoning_stands_where_it_is_wanted(first: bool, keys: list[str], most: int) -> None:
    branch = reply_schema(ACTIONS[:2], reasoning_first=first)
    assert list(branch["properties"]) == branch["required"] == keys
    assert branch["properties"]["reasoning"]["maxLength"] == most


def test_actions_without_parameters_share_a_branch_and_the_others_have_their_own() -> None:
    branches = reply_schema(ACTIONS, TOOLS)["anyOf"]
    assert [b["properties"].get("action", b["properties"].get("tool")) for b in branches] == [
        {"type": "string", "enum": ["wait", "look"]},
        *({"type": "string", "const": name} for name in ("move", "say", "give", "aim", "calculator", "clock")),
    ]


def test_without_a_legal_action_there_is_no_schema() -> None:
    with pytest.raises(ValueError, match="no legal action"):
        reply_schema(())


def _objects(schema: Any) -> list[dict[str, Any]]:
    if isinstance(schema, list):
        return [o for part in schema for o in _objects(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema] if schema.get("type") == "object" else []
    return own + [o for part in schema.values() for o in _objects(part)]


def test_the_strict_dialect_has_an_object_as_its_root_and_requires_every_property() -> None:
    # https://platform.openai.com/docs/guides/structured-outputs: the root is not anyOf, all fields are
    # required, additionalProperties is false, minLength and maxLength are refused.
    schema = reply_schema(ACTIONS, TOOLS, strict_openai=True)
    assert schema["type"] == "object"
    for part in _objects(schema):
        assert part["additionalProperties"] is False
        assert part["required"] == list(part["properties"])
    assert "Length" not in json.dumps(schema)


def test_a_reply_in_the_strict_dialect_is_read_with_its_empty_options_left_out() -> None:
    value = {"reply": reply("give", {"item": "bread", "amount": None})}
    assert accepts(reply_schema(ACTIONS, strict_openai=True), value)
    read = read_reply(json.dumps(value), ACTIONS)
    assert isinstance(read, Understood)
    assert (read.choice.parameters, getattr(read.choice, "name", None)) == ({"item": "bread"}, "give")


# --- bounds -------------------------------------------------------------------------------

_SIMPLE = st.one_of(
    st.builds(dict, type=st.just("string"), maxLength=st.integers(0, 30)),
    st.just({"type": "string"}),
    st.just({"type": "string", "minLength": 3}),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({"type": ["integer", "null"], "maximum": 5}),
    st.just({"enum": ["a", "it's <b>", 3, None, 'q"']}),
    st.just({"const": "x/y (z)"}),
    st.tuples(st.integers(-300, 300), st.integers(0, 400)).map(
        lambda t: {"type": "integer", "minimum": t[0], "maximum": t[0] + t[1]}
    ),
    st.tuples(st.integers(-30, 30), st.integers(2, 40)).map(
        lambda t: {"type": "integer", "exclusiveMinimum": t[0], "exclusiveMaximum": t[0] + t[1]}
    ),
    st.tuples(st.floats(-30, 30), st.floats(0, 40)).map(
        lambda t: {"type": "number", "minimum": t[0], "maximum": t[0] + t[1]}
    ),
    st.tuples(st.integers(-3, 3), st.integers(1, 3)).map(
        lambda t: {"type": "number", "exclusiveMinimum": t[0], "exclusiveMaximum": t[0] + t[1]}
    ),
    st.just({"type": "integer"}),
    st.just({"type": "number"}),
)


def _larger(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from(["a", "b", 'c"', "d.e"])
    return st.one_of(
        st.tuples(parts, st.integers(0, 3), st.integers(0, 3)).map(
            lambda t: {"type": "array", "items": t[0], "minItems": t[1], "maxItems": t[1] + t[2]}
        ),
        st.tuples(st.lists(parts, min_size=1, max_size=3), st.integers(0, 3)).map(
            lambda t: {"type": "array", "prefixItems": t[0], "items": False, "minItems": min(t[1], len(t[0]))}
        ),
        st.tuples(parts, parts).map(lambda t: {"type": "array", "prefixItems": [t[0]], "items": t[1], "maxItems": 3}),
        st.dictionaries(names, st.tuples(parts, st.booleans()), max_size=4).map(
            lambda d: {
                "type": "object",
                "properties": {k: v[0] for k, v in d.items()},
                "required": [k for k, v in d.items() if v[1]],
                "additionalProperties": False,
            }
        ),
    )


SCHEMAS = st.recursive(_SIMPLE, _larger, max_leaves=4)


@pytest.mark.slow
@given(st.data())
@settings(max_examples=400, deadline=None)
def test_whatever_the_pattern_of_a_schema_matches_is_json_that_fits_it(data: st.DataObject) -> None:
    schema = data.draw(SCHEMAS)
    pattern = json_pattern(bounded(schema, 20))
    text = data.draw(st.from_regex(pattern, fullmatch=True))
    value = json.loads(text)
    assert validate_value(value, schema) is None, (pattern, text)
    assert accepts(schema, value)


@given(st.data())
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_whatever_the_pattern_of_a_reply_matches_is_understood_without_repair(data: st.DataObject) -> None:
    first = data.draw(st.booleans())
    pattern = reply_pattern(ACTIONS, TOOLS, reasoning_limit=8, text_limit=8, reasoning_first=first)
    text = data.draw(st.from_regex(pattern, fullmatch=True))
    read = read_reply(text, ACTIONS, TOOLS)
    assert isinstance(read, Understood), text
    assert not read.repaired
    assert isinstance(read.choice, ToolCall) == ("tool" in json.loads(text))


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**6), st.lists(st.integers(-(10**7), 10**7), max_size=30))
def test_an_integer_pattern_matches_just_the_numbers_of_its_range(low: int, size: int, others: list[int]) -> None:
    pattern, high = re.compile(integer_pattern(low, low + size)), low + size
    for number in (*others, low, high, low - 1, high + 1, low + size // 2, 0, -1):
        assert bool(pattern.fullmatch(str(number))) is (low <= number <= high)
    assert not pattern.fullmatch("0" + str(abs(low) + 1))


def test_an_empty_range_has_no_pattern() -> None:
    with pytest.raises(ValueError, match="no whole number"):
        integer_pattern(3, 2)


@given(st.text(max_size=20))
def test_a_literal_matches_just_itself(text: str) -> None:
    assert re.fullmatch(literal(text), text)


@given(st.integers(0, 30), st.text(max_size=40))
def test_a_text_pattern_has_its_bounds_and_no_tag(limit: int, text: str) -> None:
    if re.fullmatch(text_pattern(limit), text):
        assert len(text) <= limit
        assert "<" not in text
    if re.fullmatch(text_pattern(limit, least=1), text):
        assert text.strip()


@pytest.mark.parametrize("pattern", [reply_pattern(ACTIONS, TOOLS), reply_pattern(ACTIONS, reasoning_first=True)])
def test_a_pattern_keeps_to_what_every_engine_has(pattern: str) -> None:
    plain = re.sub(r"\[(?:\\.|[^\]])*\]|\\[^dswDSWbB0-9]", "", pattern)
    assert not re.search(r"\(\?[^:]", plain), "lookaround, flags or named groups"
    assert not re.search(r"\\[1-9bBAZz]", plain), "backreferences or anchors"
    assert not re.search(r"[*+]", plain), "a repetition without an end"
    assert not re.search(r"\{\d+,\}", plain), "a repetition without an end"


def test_a_schema_without_a_bound_has_no_pattern() -> None:
    with pytest.raises(ValueError, match="is unbounded"):
        json_pattern({"type": "string"})
    with pytest.raises(ValueError, match="is unbounded"):
        json_pattern({"type": "array", "items": {"type": "null"}})
