"""Checks that a JSON Schema stays within the subset that `wsap_core.protocol.values` supports."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any

from wsap_core.protocol.values import child_name, is_number, shown

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
"""The values of `type`."""

ANNOTATIONS = frozenset({"$comment", "default", "description", "examples", "title"})
"""Keywords without effect on validation."""


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_limit(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _is_type(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return isinstance(value, list | tuple) and bool(value) and all(v in TYPES for v in value)


_KEYWORDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_type, "one of " + ", ".join(TYPES) + ", or a list of them"),
    "enum": (lambda v: isinstance(v, list | tuple) and bool(v), "a list of at least one value"),
    "const": (lambda v: True, "anything"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), (_is_limit, "a number")),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), (_is_count, "a whole number of at least 0")),
    "items": (lambda v: isinstance(v, Mapping | bool), "a schema"),
    "prefixItems": (lambda v: isinstance(v, list | tuple) and bool(v), "a list of at least one schema"),
    "properties": (lambda v: isinstance(v, Mapping), "an object of schemas"),
    "required": (lambda v: isinstance(v, list | tuple) and all(isinstance(n, str) for n in v), "a list of names"),
    "additionalProperties": (lambda v: isinstance(v, Mapping | bool), "a schema"),
}

KEYWORDS = frozenset(_KEYWORDS)
"""Keywords that restrict values."""


def check_schema(schema: Any, name: str = "schema", *, only: str = "") -> str | None:
    """Return why a schema is outside the subset that `validate_value` supports, or None if it is within it; `only` is
    the one keyword to look at."""
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, Mapping):
        return f"{name} must be an object, not {shown(schema)}."
    for keyword, value in schema.items():
        if keyword in ANNOTATIONS or (only and keyword != only):
            continue
        if keyword not in _KEYWORDS:
            close = difflib.get_close_matches(str(keyword), sorted(_KEYWORDS), n=1)
            hint = f"did you mean {close[0]!r}?" if close else "it is outside the subset of JSON Schema in use."
            return f"{name} has the keyword {shown(keyword)}; {hint}"
        fits, wanted = _KEYWORDS[keyword]
        if not fits(value):
            return f"{name}.{keyword} must be {wanted}, not {shown(value)}."
    return _check_parts(schema, name, only)


def _check_parts(schema: Mapping[str, Any], name: str, only: str) -> str | None:
    parts = [(f"{name}.{k}", schema[k]) for k in ("items", "additionalProperties") if k in schema]
    parts += [(f"{name}.prefixItems[{i}]", part) for i, part in enumerate(schema.get("prefixItems", ()))]
    parts += [(child_name(f"{name}.properties", str(k)), part) for k, part in schema.get("properties", {}).items()]
    return next((reason for where, part in parts if (reason := check_schema(part, where, only=only))), None)
