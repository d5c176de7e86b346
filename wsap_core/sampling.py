"""Random parameter values that fit the schemas that games declare."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

_WORDS = ("north", "south", "east", "west", "hello", "me")


def sample(schema: Mapping[str, Any] | bool, generator: random.Random) -> Any:
    """Return a random value that fits a parameter's JSON Schema; `exclusiveMinimum` and `exclusiveMaximum` are exact
    for integers only."""
    if isinstance(schema, bool):
        return None
    if "enum" in schema:
        return schema["enum"][generator.randrange(len(schema["enum"]))]
    if "const" in schema:
        return schema["const"]
    kind = schema.get("type", "string")
    if not isinstance(kind, str):
        kind = kind[generator.randrange(len(kind))]
    if kind == "integer":
        return generator.randint(*_integer_bounds(schema))
    if kind == "number":
        low_f = float(schema.get("minimum", schema.get("exclusiveMinimum", 0.0)))
        return generator.uniform(low_f, float(schema.get("maximum", schema.get("exclusiveMaximum", low_f + 1.0))))
    if kind == "boolean":
        return generator.random() < 0.5
    if kind == "null":
        return None
    if kind == "array":
        return _sample_list(schema, generator)
    if kind == "object":
        return {name: sample(part, generator) for name, part in schema.get("properties", {}).items()}
    word = _WORDS[generator.randrange(len(_WORDS))][: int(schema.get("maxLength", 100))]
    return word.ljust(int(schema.get("minLength", 0)), "o")


def _integer_bounds(schema: Mapping[str, Any]) -> tuple[int, int]:
    low = int(schema["exclusiveMinimum"]) + 1 if "exclusiveMinimum" in schema else int(schema.get("minimum", 0))
    if "exclusiveMaximum" in schema:
        return low, int(schema["exclusiveMaximum"]) - 1
    return low, int(schema.get("maximum", low + 10))


def _sample_list(schema: Mapping[str, Any], generator: random.Random) -> list[Any]:
    prefix = [sample(part, generator) for part in schema.get("prefixItems", ())]
    items = schema.get("items", {})
    low = max(len(prefix), int(schema.get("minItems", 0 if prefix else 1)))
    high = int(schema.get("maxItems", low))
    count = generator.randint(low, max(low, high)) if items is not False else len(prefix)
    return prefix + [sample(items, generator) for _ in range(count - len(prefix))]
