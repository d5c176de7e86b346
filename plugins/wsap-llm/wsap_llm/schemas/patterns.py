"""Regular expressions for constrained decoding: JSON values, whole numbers in a range, bounded text.

They use only what every engine supports (outlines-core, vLLM, llguidance, `re`): no lookaround, backreferences, lazy or
possessive repetition or flags. Every repetition has an upper bound, so that decoding ends. Spaces in JSON are those of
`json.dumps`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from wsap_core.protocol.values import JsonValue

FORBIDDEN = r"\x00-\x08\x0b-\x1f\x7f"
"""Control characters that models don't need, as part of a character class."""
_SPECIAL = re.compile(r"([.^$*+?{}\[\]\\|()/\-])")
_JSON_CHARACTER = r"""[^"\\<\x00-\x1f\x7f]"""
_JSON_ESCAPE = r"""\\["\\/n]"""


def literal(text: str) -> str:
    """Return the expression that matches a literal text."""
    return _SPECIAL.sub(r"\\\1", text).replace("\n", r"\n").replace("\t", r"\t")


def text_pattern(limit: int, *, least: int = 0) -> str:
    """Return the expression for `least` to `limit` characters without `<`, so that they contain no tag; if it can't be
    empty, the first is not a space."""
    if least < 1:
        return f"[^<{FORBIDDEN}]{{0,{limit}}}"
    return rf"[^<\s{FORBIDDEN}][^<{FORBIDDEN}]{{{least - 1},{max(limit, least) - 1}}}"


def integer_pattern(low: int, high: int) -> str:
    """Return the expression for the whole numbers from low to high, without leading zeros."""
    if low > high:
        raise ValueError(f"There is no whole number from {low} to {high}.")
    parts: list[str] = []
    if low < 0:
        parts += ["-" + part for part in _positive(max(1, -high), -low)]
    if high >= 0:
        parts += _positive(max(0, low), high)
    return either(parts)


def _positive(low: int, high: int) -> list[str]:
    """Return expressions for low to high, one for each block of numbers that differ in their last digits."""
    parts: list[str] = []
    while low <= high:
        digits = 0
        # The largest block that starts here: low's last digits are all 0, and it does not exceed high.
        while low % 10 ** (digits + 1) == 0 and low and low + 10 ** (digits + 1) - 1 <= high:
            digits += 1
        size = 10**digits
        count = 1
        while (low // size) % 10 + count <= 9 and low + size * (count + 1) - 1 <= high:
            count += 1
        head = str(low // size)
        first, last = int(head[-1]), int(head[-1]) + count - 1
        step = str(first) if first == last else f"[{first}-{last}]"
        parts.append(head[:-1] + step + ("" if not digits else "[0-9]" if digits == 1 else f"[0-9]{{{digits}}}"))
        low += size * count
    return parts


def json_pattern(schema: Mapping[str, JsonValue]) -> str:
    """Return the expression for the JSON values of a schema in the format of `json.dumps`.

    The schema is within the subset of `wsap_core.protocol.values` plus `anyOf`, with bounded texts and lists (see
    `wsap_llm.reply.schema.bounded`). Fractions have at most four decimals, and those next to a fractional bound may be
    left out. Texts do not contain `<`, so that a value can be put between tags. Raises ValueError if no value is valid,
    or a bound is missing.
    """
    if "anyOf" in schema:
        return _either_of(schema["anyOf"])
    if "const" in schema:
        return _value(schema["const"])
    if "enum" in schema:
        return either([_value(value) for value in schema["enum"]])
    kinds = schema.get("type", "string")
    return either([_kind(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)])


def longest_json(schema: Mapping[str, JsonValue]) -> int:
    """Return the maximum length in characters of a value that `json_pattern` matches, or slightly more."""
    if "anyOf" in schema:
        return max(map(longest_json, schema["anyOf"]))
    if "const" in schema or "enum" in schema:
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return max(len(json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")) for value in values)
    kinds = schema.get("type", "string")
    return max(_longest(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _longest(kind: str, schema: Mapping[str, JsonValue]) -> int:
    match kind:
        case "string":
            return 2 + 2 * int(schema["maxLength"])  # every character escaped
        case "integer" | "number":
            return max(len(str(math.floor(bound))) for bound in _bounds(schema)) + (20 if kind == "number" else 0)
        case "array":
            items = [*schema.get("prefixItems", ()), schema.get("items")]
            widest = max((longest_json(item) for item in items if isinstance(item, Mapping)), default=0)
            return 2 + int(schema.get("maxItems", len(items))) * (widest + 2)
        case "object":
            parts = schema.get("properties", {}).items()
            return 2 + sum(len(json.dumps(key, ensure_ascii=False)) + 4 + longest_json(part) for key, part in parts)
    return 5


def either(parts: Sequence[str]) -> str:
    """Return the expression for any of several."""
    return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"


def _value(value: JsonValue) -> str:
    return literal(json.dumps(value, ensure_ascii=False).replace("<", "\\u003c"))


def _kind(kind: str, schema: Mapping[str, JsonValue]) -> str:
    if kind not in _KINDS:
        raise ValueError(f"There is no pattern for values of type {kind!r}.")
    return _KINDS[kind](schema)


def _string(schema: Mapping[str, JsonValue]) -> str:
    if "maxLength" not in schema:
        raise ValueError("A text without maxLength is unbounded; see wsap_llm.reply.schema.bounded.")
    return f'"(?:{_JSON_CHARACTER}|{_JSON_ESCAPE}){{{schema.get("minLength", 0)},{schema["maxLength"]}}}"'


def _bounds(schema: Mapping[str, JsonValue]) -> tuple[Fraction, Fraction]:
    low = max(Fraction(schema.get("minimum", -(10**9))), Fraction(schema.get("exclusiveMinimum", -(10**9))))
    high = min(Fraction(schema.get("maximum", 10**9)), Fraction(schema.get("exclusiveMaximum", 10**9)))
    return low, high


def _whole_bounds(schema: Mapping[str, JsonValue]) -> tuple[int, int]:
    low, high = (math.ceil(_bounds(schema)[0]), math.floor(_bounds(schema)[1]))
    return low + (low == schema.get("exclusiveMinimum")), high - (high == schema.get("exclusiveMaximum"))


def _number(schema: Mapping[str, JsonValue]) -> str:
    low, high = _whole_bounds(schema)
    if low > high or high - low < 1:
        return _few_numbers(schema)
    parts = [integer_pattern(low, high)]
    # n.d is between n and n + 1, and -n.d between -n - 1 and -n.
    if high > 0 and high - 1 >= max(low, 0):
        parts.append(integer_pattern(max(low, 0), high - 1) + r"\.[0-9]{1,4}")
    if low < 0 and -low - 1 >= max(-high, 0):
        parts.append("-" + integer_pattern(max(-high, 0), -low - 1) + r"\.[0-9]{1,4}")
    return either(parts)


def _few_numbers(schema: Mapping[str, JsonValue]) -> str:
    """Return hundredths of a range that contains less than two whole numbers."""
    low, high = _bounds(schema)
    excluded = {Fraction(schema[k]) for k in ("exclusiveMinimum", "exclusiveMaximum") if k in schema}
    values = [low + (high - low) * i / 100 for i in range(101)] if low < high else [low]
    # Through float and back, because the float is what is compared with the bounds.
    fit = dict.fromkeys(float(v) for v in values if v not in excluded and low <= Fraction(float(v)) <= high)
    if not fit:
        raise ValueError("No number fits the schema.")
    return either([literal(json.dumps(v)) for v in fit])


def _array(schema: Mapping[str, JsonValue]) -> str:
    if "maxItems" not in schema:
        raise ValueError("A list without maxItems is unbounded; see wsap_llm.reply.schema.bounded.")
    least, most = schema.get("minItems", 0), schema["maxItems"]
    prefix = [json_pattern(part) for part in schema.get("prefixItems", ())]
    rest = schema.get("items", True)
    if rest is False:
        most = min(most, len(prefix))
    item = "" if rest is False else json_pattern(rest if isinstance(rest, Mapping) else {"type": "null"})
    # Built from the end: what may follow the items so far.
    tail = ""
    if most > len(prefix):
        more = most - len(prefix)
        tail = f"(?:, {item}){{{max(0, least - len(prefix))},{more}}}" if prefix else ""
        if not prefix:
            inner = f"{item}(?:, {item}){{{max(0, least - 1)},{more - 1}}}"
            return rf"\[{inner}\]" if least else rf"\[(?:{inner})?\]"
    for index in range(min(len(prefix), most) - 1, -1, -1):
        here = (", " if index else "") + prefix[index] + tail
        tail = here if index < least else f"(?:{here})?"
    return rf"\[{tail}\]"


def _object(schema: Mapping[str, JsonValue]) -> str:
    return rf"\{{{_members(_described(schema))}\}}"


def _described(schema: Mapping[str, JsonValue]) -> list[tuple[str, bool]]:
    required = set(schema.get("required", ()))
    return [
        (f"{_value(key)}: {json_pattern(part)}", key in required) for key, part in schema.get("properties", {}).items()
    ]


def _either_of(schemas: Sequence[Mapping[str, JsonValue]]) -> str:
    """Return the expression for one of several schemas; objects with the same last property share its expression, so
    that an automaton does not copy the states of the reasoning for each action."""
    groups: dict[str, list[str]] = {}
    alone: list[str] = []
    for schema in schemas:
        names = list(schema.get("properties", {}))
        needed = set(schema.get("required", ()))
        if schema.get("type") != "object" or len(names) < 2 or not {names[0], names[-1]} <= needed:
            alone.append(json_pattern(schema))
            continue
        *heads, (last, _) = _described(schema)
        groups.setdefault(last, []).append(_members(heads))
    shared = [rf"\{{{either(heads)}, {last}\}}" for last, heads in groups.items()]
    return either([*shared, *alone])


def _members(members: Sequence[tuple[str, bool]]) -> str:
    first = next((i for i, (_, needed) in enumerate(members) if needed), None)
    starts: list[str] = []
    for index in range(len(members) if first is None else first + 1):
        rest = "".join(f", {m}" if needed else f"(?:, {m})?" for m, needed in members[index + 1 :])
        starts.append(members[index][0] + rest)
    if not starts:
        return ""
    return either(starts) if first is not None else f"(?:{'|'.join(starts)})?"


_KINDS: Mapping[str, Callable[[Mapping[str, JsonValue]], str]] = {
    "null": lambda schema: "null",
    "boolean": lambda schema: "(?:true|false)",
    "string": _string,
    "integer": lambda schema: integer_pattern(*_whole_bounds(schema)),
    "number": _number,
    "array": _array,
    "object": _object,
}
