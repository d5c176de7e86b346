"""Decisions of several steps in replies, for both styles, in constraints and parsing.

In JSON they are two optional members beside the action, `{"action": "move_west", "params": {}, "times": 6,
"until": "hurt", "reasoning": "..."}`, in tags two optional elements before the final one,
`</thinking><times>6</times><until>hurt</until><move_west/>`. `times` without `until` ends at any change, `until`
without `times` continues for the maximum number of steps. An action with free text is not repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from wsap_core.protocol import ActionDef
from wsap_core.protocol.values import JsonValue

Condition = Literal["blocked", "hurt", "change"]
"""The condition that ends a decision of several steps."""
CONDITIONS: tuple[Condition, ...] = ("blocked", "hurt", "change")
"""The conditions; each includes those before it."""
KEYS = ("times", "until")
"""The members of a JSON reply, and tags, for steps."""
_ONCE = ("jack_out",)
_DEEPEST = 3
_STEMS: Mapping[str, Condition] = {"block": "blocked", "hurt": "hurt", "chang": "change"}
_TAGS = re.compile(
    r"</\s{0,3}think(?:ing)?\s{0,3}>((?:\s{0,20}<\s{0,3}(?:times|until)\s{0,3}>[^<]{0,40}</[^<>]{0,20}>){1,4})", re.I
)
_TAG = re.compile(r"<\s{0,3}(times|until)\s{0,3}>([^<]{0,40})<", re.IGNORECASE)


@dataclass(frozen=True)
class Steps:
    """The steps of a decision."""

    times: int | None = None
    """The number of steps; None if the model gave none."""
    until: Condition = "change"
    """What ends them early."""

    def told(self) -> dict[str, JsonValue]:
        """Return the members of a reply, empty for one step or no number."""
        if self.times is None or self.times <= 1:
            return {}
        return {"times": self.times} | ({"until": self.until} if self.until != "change" else {})


NOTHING_SAID = Steps()
"""The model gave no number of steps."""


def repeatable(action: ActionDef) -> bool:
    """Return whether an action may be repeated without asking the model: not with free text, not lookups, and not
    leaving the world."""
    if action.category == "meta" or action.is_tool or action.name in _ONCE:
        return False
    return not any(_is_free(p.json_schema()) for p in action.parameters)


def _is_free(schema: JsonValue) -> bool:
    if not isinstance(schema, Mapping):
        return schema is not False
    if "enum" in schema or "const" in schema:
        return False
    kinds = schema.get("type", "string")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "string" in kinds:
        return True
    inner = [*schema.get("prefixItems", ()), *schema.get("properties", {}).values()]
    if "array" in kinds and not (schema.get("prefixItems") and schema.get("items") is False):
        inner.append(schema.get("items", True))
    return any(map(_is_free, inner))


def tag_steps(most: int, names: Sequence[str]) -> int:
    """Return the maximum number of steps in tags: 1 if a tool or an action is named like one of the tags."""
    return 1 if {name.lower() for name in names} & set(KEYS) else most


def json_members(most: int) -> dict[str, dict[str, JsonValue]]:
    """Return the schemas of the optional members for at most `most` steps, as enumerations, which every engine
    enforces."""
    return {
        "times": {"type": "integer", "enum": list(range(1, most + 1))},
        "until": {"type": "string", "enum": list(CONDITIONS)},
    }


def take_steps(values: Iterable[JsonValue], most: int, actions: Sequence[ActionDef]) -> Steps:
    """Remove the members for steps from the JSON values of a reply, and return them, with at most `most` steps.

    Parsing is lenient: numbers may be text, larger ones are reduced to `most`, and invalid ones ignored. Of several
    objects with an action the last one counts. If a legal action has a parameter named `times` or `until`, the member
    counts only beside `params`.
    """
    own = {p.name for action in actions for p in action.parameters}
    told: dict[str, JsonValue] = {}
    for value in values:
        taken: dict[str, JsonValue] = {}
        if _take(value, own, taken):
            told = taken
    return _steps(told.get("times"), told.get("until"), most)


def steps_in_tags(text: str, most: int) -> Steps:
    """Return the steps, at most `most`, in the tags between the thinking and the final tag of a leg."""
    places = list(_TAGS.finditer(text))
    if most <= 1 or not places:
        return NOTHING_SAID
    told = {tag[1].lower(): tag[2].strip() for tag in _TAG.finditer(places[-1][1])}
    return _steps(told.get("times"), told.get("until"), most)


def tags_pattern(most: int, space: str) -> str:
    """Return the expression for the optional tags before a final tag, each followed by `space`."""
    numbers = "|".join(map(str, range(most, 0, -1)))
    return f"(?:<times>(?:{numbers})</times>{space})?(?:<until>(?:{'|'.join(CONDITIONS)})</until>{space})?"


def _take(value: JsonValue, own: set[str], taken: dict[str, JsonValue], depth: int = 0) -> bool:
    """Move the members for steps from a value to `taken`, and return whether it names an action."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return False
    names = {key.lower() for key in value}
    is_action = bool(names & {"action", "name", "tool"})
    with_params = bool(names & {"params", "parameters", "args", "arguments"})
    for key in list(value):
        name = key.lower()
        if name in KEYS and (with_params or name not in own) and not isinstance(value[key], dict | list):
            taken[name] = value.pop(key)
        elif not name.startswith(("param", "arg")):
            is_action |= _take(value[key], own, taken, depth + 1)
    return is_action


def _steps(times: JsonValue, until: JsonValue, most: int) -> Steps:
    number = _whole(times)
    condition = next((c for stem, c in _STEMS.items() if isinstance(until, str) and stem in until.lower()), None)
    if number is None and condition is not None:
        number = most
    return Steps(None if number is None else min(max(number, 1), most), condition or "change")


def _whole(value: JsonValue) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, int):
        return value
    match = re.fullmatch(r"\s{0,5}(\d{1,4})\s{0,3}(?:x|times|steps?)?\s{0,3}", str(value), re.IGNORECASE)
    return int(match[1]) if match else None
