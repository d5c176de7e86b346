"""How a model asks for several steps at once, in both styles, inside the constraint and out of a reply.

In JSON two members may stand beside the action, `{"action": "move_west", "params": {}, "times": 6,
"until": "hurt", "reasoning": "..."}`; in tags two elements may stand before the final one,
`</thinking><times>6</times><until>hurt</until><move_west/>`. Both may be left out, so that the
seed's reply stays what it is. `times` without `until` ends at any news, `until` without `times`
goes on for as long as is allowed. An action that says something in free words is done once: nobody
wants to hear the same sentence six times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from wsap_core.protocol import ActionDef
from wsap_core.protocol.values import JsonValue

Condition = Literal["blocked", "hurt", "change"]
"""What ends a decision of several steps, from the rarest to the most frequent."""
CONDITIONS: tuple[Condition, ...] = ("blocked", "hurt", "change")
"""The conditions; each includes those before it."""
KEYS = ("times", "until")
"""Members of a JSON reply, and tags, that are about steps."""
_ONCE = ("jack_out",)
_DEEPEST = 3
_STEMS: Mapping[str, Condition] = {"block": "blocked", "hurt": "hurt", "chang": "change"}
_TAGS = re.compile(
    r"</\s{0,3}think(?:ing)?\s{0,3}>((?:\s{0,20}<\s{0,3}(?:times|until)\s{0,3}>[^<]{0,40}</[^<>]{0,20}>){1,4})", re.I
)
_TAG = re.compile(r"<\s{0,3}(times|until)\s{0,3}>([^<]{0,40})<", re.IGNORECASE)


@dataclass(frozen=True)
class Steps:
    """How many steps a decision is for."""

    times: int | None = None
    """Steps; None if the model did not say."""
    until: Condition = "change"
    """What ends them earlier."""

    def told(self) -> dict[str, JsonValue]:
        """Return it as members of a reply: empty for one step, or if the model did not say."""
        if self.times is None or self.times <= 1:
            return {}
        return {"times": self.times} | ({"until": self.until} if self.until != "change" else {})


NOTHING_SAID = Steps()
"""The model did not say."""


def repeatable(action: ActionDef) -> bool:
    """Return whether it makes sense to do an action several times in a row without looking.

    Not so for what says something in free words, for looking things up, and for leaving the world.
    """
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
    """Return how many steps can be asked for in tags: 1 where a tool or an action has the name of one of them."""
    return 1 if {name.lower() for name in names} & set(KEYS) else most


def json_members(most: int) -> dict[str, dict[str, JsonValue]]:
    """Return the schemas of the members that a reply may have besides, for at most so many steps.

    The numbers are listed: every engine keeps to an enumeration, several leave bounds out.
    """
    return {
        "times": {"type": "integer", "enum": list(range(1, most + 1))},
        "until": {"type": "string", "enum": list(CONDITIONS)},
    }


def take_steps(values: Iterable[JsonValue], most: int, actions: Sequence[ActionDef]) -> Steps:
    """Return what the JSON values of a reply say about steps, `most` at the most, with these members removed from them.

    Read with tolerance: numbers as text, any number above the most for the most, and what makes no sense for nothing
    said. Of several objects that name an action the last one counts. Where a legal action has a parameter of its own
    called `times` or `until`, the member counts only beside `params`.
    """
    own = {p.name for action in actions for p in action.parameters}
    told: dict[str, JsonValue] = {}
    for value in values:
        taken: dict[str, JsonValue] = {}
        if _take(value, own, taken):
            told = taken
    return _steps(told.get("times"), told.get("until"), most)


def steps_in_tags(text: str, most: int) -> Steps:
    """Return what stands about steps, at most `most`, between the end of the thinking and the final tag of a leg."""
    places = list(_TAGS.finditer(text))
    if most <= 1 or not places:
        return NOTHING_SAID
    told = {tag[1].lower(): tag[2].strip() for tag in _TAG.finditer(places[-1][1])}
    return _steps(told.get("times"), told.get("until"), most)


def tags_pattern(most: int, space: str) -> str:
    """Return the expression for what may stand before a final tag, each part at most once and before a `space`."""
    numbers = "|".join(map(str, range(most, 0, -1)))
    return f"(?:<times>(?:{numbers})</times>{space})?(?:<until>(?:{'|'.join(CONDITIONS)})</until>{space})?"


def _take(value: JsonValue, own: set[str], taken: dict[str, JsonValue], depth: int = 0) -> bool:
    """Move the members about steps out of a value to `taken`, and return whether it names an action."""
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
