"""Schemas for OpenAI's strict mode: within its subset, and accepting the same values as the originals."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core import Context
from wsap_core.builtin.echo import EchoWorld
from wsap_core.protocol import Action, ActionDef, ActionSpace, Observation, ParamDef, Tool
from wsap_core.seams.model import Abilities, JsonConstraint
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.reply import Understood, read_reply
from wsap_llm.reply.schema import bounded, reply_schema
from wsap_llm.schemas.strict_schema import strict_schema, strict_violation
from wsap_llm.scripted import ScriptedBackend
from wsap_matrix.game import create_simultaneous

WHERE = {
    "type": "object",
    "properties": {
        "x": {"type": "integer"},
        "note": {"type": "string", "minLength": 2},
        "maybe": {"type": ["null", "string"]},
    },
    "required": ["x"],
}
PATH = {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": WHERE, "maxItems": 5}
ACTIONS = (
    ActionDef("wait", ""),
    ActionDef("look", ""),
    ActionDef("speak", "", [ParamDef("text", "words"), ParamDef("loud", "yes|no", optional=True)]),
    ActionDef("build", "", [ParamDef("where", schema=WHERE), ParamDef("path", schema=PATH, optional=True)]),
    ActionDef("give", "", [ParamDef("count", "1-64"), ParamDef("share", schema={"type": "number", "default": 1})]),
)
TOOLS = (Tool("recall", "", [ParamDef("what", "words")]), Tool("time", ""))


def matrix_space() -> ActionSpace:
    world = create_simultaneous(Context(seed=1, config={"game": "rock-paper-scissors", "rounds": 2}))
    return world.seat("one").action_space


@pytest.mark.parametrize("steps", [1, 8])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    "actions",
    [ACTIONS, ACTIONS[:1], ACTIONS[2:3], EchoWorld(Context.create(1)).action_space.actions, matrix_space().actions],
    ids=["many", "one without parameters", "one with", "echo", "matrix"],
)
def test_the_schema_of_a_reply_is_within_the_subset(actions: Any, first: bool, steps: int) -> None:
    for tools in ((), TOOLS):
        schema = reply_schema(actions, tools, reasoning_first=first, strict_openai=True, steps=steps)
        assert strict_violation(schema) is None
        jsonschema.Draft202012Validator.check_schema(schema)


def test_the_usual_schema_is_outside_the_subset() -> None:
    assert strict_violation(reply_schema(ACTIONS)) == "The root is not an object."
    assert strict_violation({"type": "object", "properties": {}, "required": []}) is not None


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def deep(levels: int) -> dict[str, Any]:
    return {"type": "string"} if levels == 0 else an_object(x=deep(levels - 1))


A, B = {"type": "string", "const": "a"}, {"type": "string", "const": "b"}
TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (TEXT, "The root is not an object."),
        ({"anyOf": [an_object(x=TEXT)]}, "The root is not an object."),
        ({**an_object(x=TEXT), "additionalProperties": True}, "additionalProperties is not false"),
        ({"type": "object", "properties": {"x": TEXT}, "required": ["x"]}, "additionalProperties is not false"),
        ({**an_object(x=TEXT), "required": []}, "not all properties are required"),
        (an_object(x={"type": "string", "maxLength": 3}), "In the root / x: 'maxLength' is not allowed."),
        (an_object(x={"type": "string", "minLength": 3}), "'minLength' is not allowed"),
        (an_object(x={"type": "string", "default": ""}), "'default' is not allowed"),
        (an_object(x={"oneOf": [TEXT]}), "'oneOf' is not allowed"),
        (an_object(x={"type": "array", "prefixItems": [TEXT], "items": TEXT}), "'prefixItems' is not allowed"),
        (an_object(x={"type": "array"}), "the items of the list have no schema"),
        (an_object(x={}), "type is missing or unknown"),
        (an_object(x={"type": "date"}), "type is missing or unknown"),
        (
            an_object(x={"anyOf": [an_object(k=A, v=TEXT), an_object(k=A)]}),
            "start with 'k', whose value does not distinguish",
        ),
        (an_object(x={"anyOf": [an_object(k=TEXT), an_object(k=TEXT, v=A)]}), "start with 'k'"),
        (an_object(x={"anyOf": [an_object(k=A), an_object(k={"type": "string", "enum": ["a", "c"]})]}), "start with"),
        (deep(12), "nested deeper than 10 levels"),
        (an_object(**{f"p{i}": TEXT for i in range(5001)}), "There are 5001 properties"),
        (an_object(x={"type": "integer", "enum": list(range(1001))}), "There are 1001 values"),
        (an_object(x={"type": "string", "enum": ["y" * 70 + str(i) for i in range(251)]}), "15000 characters"),
        (an_object(**{"n" * 60_001: TEXT, "m" * 60_000: TEXT}), "Names and values have 120001 characters"),
    ],
    ids=lambda value: str(value)[:50] if isinstance(value, str) else "",
)
def test_what_openai_refuses_is_known_with_its_reason(schema: dict[str, Any], reason: str) -> None:
    assert reason in str(strict_violation(schema))


@pytest.mark.parametrize(
    "schema",
    [
        an_object(x=TEXT),
        an_object(),
        an_object(x={"type": ["string", "null"], "description": "a name", "pattern": "^[a-z]+$"}),
        an_object(x={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3}),
        an_object(x={"type": "number", "minimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.5}),
        an_object(x={"anyOf": [an_object(k=A, v=TEXT), an_object(k=B), {"type": "null"}]}),
        an_object(x={"anyOf": [an_object(k=TEXT), an_object(v=TEXT)]}),
        deep(9),
    ],
)
def test_what_openai_takes_is_within_the_subset(schema: dict[str, Any]) -> None:
    # The shapes of the examples in the guide.
    assert strict_violation(schema) is None


def test_many_listed_numbers_become_ranges_before_the_limit_is_passed() -> None:
    wide = [ActionDef(f"put{i}", "", [ParamDef("slot", "1-64"), ParamDef("count", "0-63")]) for i in range(12)]
    schema = reply_schema(wide, strict_openai=True)
    assert strict_violation(schema) is None
    slot = schema["properties"]["reply"]["anyOf"][0]["properties"]["params"]["properties"]["slot"]
    assert slot == {"type": "integer", "minimum": 1, "maximum": 64}
    few = reply_schema(wide[:1], strict_openai=True)["properties"]["reply"]["properties"]["params"]["properties"]
    assert few["slot"]["enum"] == list(range(1, 65))


_LEAF = st.one_of(
    st.just({"type": "string", "minLength": 1, "maxLength": 9}),
    st.just({"type": "integer", "minimum": -2, "maximum": 2}),
    st.just({"type": "number", "maximum": 5, "default": 1}),
    st.just({"type": "boolean"}),
    st.just({"enum": ["a", 1, False]}),
    st.just({"const": True}),
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    objects = members.flatmap(
        lambda parts: st.builds(
            dict,
            type=st.just("object"),
            properties=st.just(parts),
            required=st.lists(st.sampled_from(sorted(parts)), unique=True) if parts else st.just([]),
        )
    )
    lists = st.builds(dict, type=st.just("array"), items=st.one_of(inner, st.booleans()), maxItems=st.integers(1, 3))
    pairs = st.builds(dict, type=st.just("array"), prefixItems=st.lists(inner, min_size=1, max_size=2), items=inner)
    return st.one_of(objects, lists, pairs)


SCHEMAS = st.recursive(_LEAF, _nested, max_leaves=5)


def values_of(schema: Any) -> st.SearchStrategy[Any]:
    """Draw values valid by a schema without the tested code."""
    if not isinstance(schema, dict):
        return st.text("xyz", max_size=3)
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    kind = schema["type"] if isinstance(schema["type"], str) else schema["type"][0]
    if kind == "object":
        parts = {name: values_of(part) for name, part in schema["properties"].items()}
        needed = {name: parts[name] for name in schema["required"]}
        return st.fixed_dictionaries(needed, optional={n: p for n, p in parts.items() if n not in needed})
    if kind == "array":
        first = [values_of(part) for part in schema.get("prefixItems", ())]
        rest = st.just([]) if schema["items"] is False else st.lists(values_of(schema["items"]), max_size=1)
        return st.tuples(st.tuples(*first), rest).map(lambda found: [*found[0], *found[1]])
    return {
        "string": st.text("xyz", min_size=1, max_size=9),
        "integer": st.integers(-2, 2),
        "number": st.integers(-5, 5),
        "boolean": st.booleans(),
    }[kind]


def with_nulls(value: Any, schema: Any) -> Any:
    """Return a value in strict mode, with null for omitted members."""
    if isinstance(value, dict):
        return {
            name: with_nulls(value[name], part) if name in value else None
            for name, part in schema["properties"].items()
        }
    if isinstance(value, list) and isinstance(schema, dict):
        first = schema.get("prefixItems", [])
        return [with_nulls(v, first[i] if i < len(first) else schema["items"]) for i, v in enumerate(value)]
    return value


@given(SCHEMAS.flatmap(lambda schema: st.tuples(st.just(schema), values_of(schema))))
@pytest.mark.slow
def test_whatever_fits_a_parameter_fits_its_schema_in_the_subset_and_is_read_back(found: tuple[Any, Any]) -> None:
    schema, value = found
    action = ActionDef("do", "", [ParamDef("it", schema=schema)])
    whole = reply_schema((action, ACTIONS[0]), strict_openai=True)
    assert strict_violation(whole) is None
    said = {"reply": {"action": "do", "params": {"it": with_nulls(value, schema)}, "reasoning": ""}}
    jsonschema.Draft202012Validator(whole).validate(said)
    read = read_reply(json.dumps(said), (action, ACTIONS[0]))
    assert isinstance(read, Understood)
    assert read.choice.parameters == {"it": value}


@given(SCHEMAS)
@pytest.mark.slow
def test_a_bounded_schema_stays_a_schema(schema: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(strict_schema(bounded(schema, 40)))


def test_an_agent_asks_within_the_subset_where_the_backend_wants_it() -> None:
    said = {"reply": {"action": "build", "params": {"where": {"x": 1, "note": None, "maybe": None}, "path": None}}}
    said["reply"]["reasoning"] = "here"
    backend = ScriptedBackend([json.dumps(said)], abilities=Abilities(json_schema=True, schema_subset=True))
    agent = LLMAgent(backend, LLMOptions(plan=False))

    async def turn() -> Action:
        await agent.initialize("A place.", ActionSpace(ACTIONS))
        return await agent.decide(Observation())

    action = asyncio.run(turn())
    assert (action.name, action.parameters) == ("build", {"where": {"x": 1, "maybe": None}})
    constraint = backend.requests[0].constraint
    assert isinstance(constraint, JsonConstraint)
    assert strict_violation(constraint.schema) is None
    assert agent.last_decision is not None
    assert not agent.last_decision.repaired
    assert not agent.last_decision.unconstrained
