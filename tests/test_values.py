"""Parameter values against schemas: the reference is the jsonschema package."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core import ActionDef, ParamDef
from wsap_core.protocol.subset import ANNOTATIONS, KEYWORDS, TYPES, check_schema
from wsap_core.protocol.values import same_json, validate_value

NAMES = st.sampled_from(["a", "b", "left", "right", "x"])
NUMBERS = st.integers(-4, 4) | st.sampled_from([-1.5, 0.0, 1.0, 2.5])
SCALARS = st.none() | st.booleans() | NUMBERS | NAMES | st.sampled_from(["", "ab", "äöü", "\U0001f600"])
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(NAMES, v, max_size=3), max_leaves=8)
COUNTS = st.integers(0, 4)


def schemas() -> st.SearchStrategy[Any]:
    def deeper(part: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(TYPES) | st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True),
                "enum": st.lists(VALUES, min_size=1, max_size=3),
                "const": VALUES,
                **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS),
                **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), COUNTS),
                "items": part,
                "prefixItems": st.lists(part, min_size=1, max_size=3),
                "properties": st.dictionaries(NAMES, part, max_size=3),
                "required": st.lists(NAMES, max_size=2, unique=True),
                "additionalProperties": part,
                "description": st.just("says something"),
            },
        )

    return st.recursive(st.booleans() | deeper(st.booleans()), deeper, max_leaves=4)


@given(VALUES, schemas())
@pytest.mark.slow
def test_a_value_fits_exactly_when_the_jsonschema_package_says_so(value: Any, schema: Any) -> None:
    reference = jsonschema.Draft202012Validator(schema).is_valid(value)
    reason = validate_value(value, schema)
    assert (reason is None) == reference, reason


@given(schemas())
@pytest.mark.slow
def test_every_schema_made_of_the_subset_is_in_the_subset(schema: Any) -> None:
    assert check_schema(schema) is None


@given(VALUES, VALUES)
def test_equality_is_that_of_json_schema(one: Any, other: Any) -> None:
    assert same_json(one, other) == jsonschema.Draft202012Validator({"const": one}).is_valid(other)


def test_the_subset_is_made_of_keywords_that_json_schema_has() -> None:
    parts = jsonschema.Draft202012Validator.META_SCHEMA["allOf"]
    registry = jsonschema.Draft202012Validator({})._resolver  # the vocabularies lie in the validator's own registry
    known = set()
    for part in parts:
        resolved = registry.lookup("https://json-schema.org/draft/2020-12/" + part["$ref"])
        known |= resolved.contents.get("properties", {}).keys()
    assert known >= KEYWORDS | ANNOTATIONS


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "strin"}, "schema.type must be one of"),
        ({"pattern": "(a+)+"}, "outside the subset"),
        ({"minumum": 1}, "did you mean 'minimum'?"),
        ({"minimum": True}, "schema.minimum must be a number"),
        ({"minimum": float("nan")}, "schema.minimum must be a number"),
        ({"minLength": -1}, "schema.minLength"),
        ({"enum": []}, "schema.enum"),
        ({"required": "a"}, "schema.required"),
        ({"properties": {"x": {"items": {"$ref": "#"}}}}, "schema.properties.x.items has the keyword '$ref'"),
        ({"prefixItems": [True, {"oneOf": []}]}, "schema.prefixItems[1]"),
        ([], "schema must be an object"),
    ],
)
def test_a_schema_outside_the_subset_is_named_with_its_place(schema: Any, words: str) -> None:
    assert words in str(check_schema(schema))


MOVE = ActionDef(
    "move", "Move.", [ParamDef("direction", "left|right"), ParamDef("slot", "1-10", optional=True)]
).json_schema()


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({}, "direction is missing."),
        ({"directon": "left"}, "directon is not known; did you mean 'direction'?"),
        ({"direction": "lef"}, "direction must be one of 'left', 'right', not 'lef'; did you mean 'left'?"),
        ({"direction": "left", "slot": "three"}, "slot must be a whole number from 1 to 10, not 'three'."),
        ({"direction": "left", "slot": 11}, "slot must be a number from 1 to 10, not 11."),
        ({"direction": None}, "direction must be one of 'left', 'right', not null."),
        ([], "It must be an object, not a list of 0."),
    ],
)
def test_a_reason_tells_a_model_how_to_do_better(value: Any, sentence: str) -> None:
    assert validate_value(value, MOVE, "") == sentence


@pytest.mark.parametrize(
    "value",
    [10**5000, -(10**5000), float("nan"), float("inf"), "x" * 10**6, "\x1b[2J\u202e"],
    ids=["huge", "minus huge", "nan", "infinity", "long", "controls"],
)
def test_a_reason_is_short_and_safe_whatever_the_value(value: Any) -> None:
    reason = validate_value({"direction": value}, MOVE, "")
    assert reason is not None
    assert len(reason) < 200
    assert reason.isprintable()


def test_an_unknown_key_with_control_characters_is_shown_harmlessly() -> None:
    reason = validate_value({"direction": "left", "\x1b[2J": 1}, MOVE, "")
    assert reason is not None
    assert reason.isprintable()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_json_does_not_have_fit_no_numeric_type(value: float) -> None:
    assert validate_value(value, {"type": "number"})
    assert validate_value(value, {"type": "integer"})


def test_tuples_count_as_lists_and_true_is_no_number() -> None:
    assert validate_value((1, 2), {"type": "array", "items": {"type": "integer"}}) is None
    assert validate_value(True, {"type": "integer"})
    assert validate_value(3.0, {"type": "integer"}) is None
