"""The object that a reply gives to a JSON Schema, among whatever else the reply has in braces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wsap_core.protocol.values import JsonValue
from wsap_llm.reply.json_text.repair import find_values
from wsap_llm.text.thinking import split_thinking

# Any: a JSON Schema.

_INSIDE = 3
"""Levels of objects and lists in which an object is looked for: some models wrap their answer."""


def find_object(text: str, schema: Mapping[str, Any]) -> dict[str, JsonValue] | None:
    """Return the object in a reply that fits a schema best, and the last of several equal ones; None without objects.

    Echoes of the requested form, notes in braces and drafts in the thinking fit worse than the answer, since what
    counts is the content for the schema's properties. Repairs what `find_values` repairs.
    """
    first: dict[str, JsonValue] | None = None
    # Text in the answer can look like a tag of thinking, and an answer can be within the thinking.
    for part in dict.fromkeys((split_thinking(text).said, text)):
        objects = [one for found in find_values(part) for one in _within(found.value)]
        first = next(iter(objects), None) if first is None else first
        if fitting := [one for one in objects if _fit(one, schema)]:
            return max(reversed(fitting), key=lambda one: _fit(one, schema))
    return first


def _within(value: JsonValue, depth: int = 0) -> Iterator[dict[str, JsonValue]]:
    if isinstance(value, dict):
        yield value
    if depth < _INSIDE and isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _within(inner, depth + 1)


def _fit(value: JsonValue, schema: Mapping[str, Any]) -> int:
    """The number of values in an object that are content for a schema."""
    if not isinstance(value, dict):
        return 0
    properties: Mapping[str, Any] = schema.get("properties") or {}
    return sum(_content(value[key], properties[key]) for key in properties.keys() & value.keys())


def _content(value: JsonValue, schema: Mapping[str, Any]) -> int:
    """The number of filled values, of the schema's kind where their kinds are the same."""
    if isinstance(value, dict):
        own = _fit(value, schema) if schema.get("type") == "object" else 0
        return own or sum(_content(inner, {}) for inner in value.values())
    if isinstance(value, list):
        items = schema.get("items") or {}
        return sum(_content(inner, items) for inner in value)
    if isinstance(value, str):
        return int(value in schema["enum"] if "enum" in schema else any(map(str.isalnum, value)))
    return int(value is not None)
