"""The tag style of seed 002: thinking, tool tags, and one final action tag.

    <thinking>
    Player 4 claims to be the doctor. I need to see that will.
    <check_will>Player 3</check_will>
    <observation>I am the Doctor. N2 heal Player 1.</observation>
    Player 4 is lying.
    </thinking>
    <speak>Player 4 is lying.</speak>

Generation stops at a tool's closing tag, the tool runs, and its observation is put in; the model
then goes on inside the same thinking. The stretch up to a tool's tag or to the final one is a leg.
A pattern describes one leg, made from the tools and final actions that are legal now: at most so
many tool calls a turn is then a matter of which pattern the next leg gets, and the expression
stays small. The seed shows the block both closed and open around the observation; here what the
model sees again is one continuous assistant text whose thinking is open (`continue_text`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wsap_core.protocol import ActionDef, ParamDef, Tool
from wsap_core.protocol.values import JsonValue
from wsap_core.untrusted import sanitize
from wsap_core.worlds.legality import check_parameters
from wsap_llm.patterns import either, integer_pattern, json_pattern, literal, longest_json, text_pattern
from wsap_llm.reply.repair import bare_value, read_loose
from wsap_llm.reply.schema import MOST_DECLARED, bounded
from wsap_llm.reply.steps import repeatable, tag_steps, tags_pattern

OPENING = "<thinking>\n"
"""The beginning of a turn. As a prefill it gives the first leg the pattern of a continuation."""
RESERVED = ("thinking", "think", "observation")
"""Tags that no tool or action may have."""
_TAG_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,62}")
_SPACE = r"[ \n]{0,2}"


@dataclass(frozen=True)
class TagLimits:
    """Bounds inside the constraint, in characters."""

    thinking: int = 600
    """Longest thinking in one leg."""
    argument: int = 120
    """Longest text of a tool's parameter."""
    final: int = 400
    """Longest text of a final action's parameter: what is said."""
    calls: int = 3
    """Most tool calls a turn."""
    arguments: Mapping[str, int] = field(default_factory=dict)
    """Longest text of individual tools or actions."""


DEFAULT_LIMITS = TagLimits()


class TagTurn:
    """The tags that are legal in one turn."""

    def __init__(
        self, tools: Sequence[Tool], finals: Sequence[ActionDef], *, limits: TagLimits = DEFAULT_LIMITS, steps: int = 1
    ) -> None:
        """Define the tags of a turn.

        With `steps` above 1, `<times>` and `<until>` may stand before the final tag, unless a tool or action is called
        so itself. Raises ValueError if there is no final action, or a name can't be a tag or is used twice.
        """
        self.limits = limits
        self.tools = {tool.name: ActionDef(tool.name, tool.description, tool.parameters) for tool in tools}
        self.finals = {action.name: action for action in finals}
        self.steps = tag_steps(steps, [*self.tools, *self.finals])
        """How many steps an action may be done for."""
        if not self.finals:
            raise ValueError("There is no final action to end the turn with.")
        seen: set[str] = set(RESERVED)
        for name in (*(tool.name for tool in tools), *(action.name for action in finals)):
            if not _TAG_NAME.fullmatch(name):
                raise ValueError(f"{name!r} can't be a tag; letters, digits, '_', '-' and '.' can.")
            if name.lower() in seen:
                raise ValueError(f"The tag {name!r} has two meanings; rename the tool or the action.")
            seen.add(name.lower())
        self._by_tag = {name.lower(): definition for name, definition in (self.tools | self.finals).items()}

    def find(self, tag: str) -> ActionDef | None:
        """Return the tool or final action of a tag, in any case of letters."""
        return self._by_tag.get(tag.lower())

    def limit(self, name: str) -> int:
        """Return the longest text between a tag and its end, in characters; a longer declared length counts."""
        if name in self.limits.arguments:
            return self.limits.arguments[name]
        definition = self.finals.get(name) or self.tools.get(name)
        declared = [p.json_schema().get("maxLength", 0) for p in definition.parameters] if definition else []
        usual = self.limits.final if name in self.finals else self.limits.argument
        return max(usual, min(MOST_DECLARED, max(declared, default=0)))

    def longest(self, definition: ActionDef) -> int:
        """Return the most characters that can stand between a tag and its end, by the pattern."""
        limit = self.limit(definition.name)
        if len(definition.parameters) != 1:
            return longest_json(bounded(definition.json_schema(), limit))
        schema = bounded(definition.parameters[0].json_schema(), limit)
        return max(limit, int(schema.get("maxLength", 0)) if schema.get("type") == "string" else longest_json(schema))

    def pattern(self, calls_left: int | None = None) -> str:
        """Return the expression for a turn's first leg, from `<thinking>` to the end of a tool's or the final tag.

        `calls_left` is the turn's limit for None; without any, the leg ends in the final action.
        """
        return rf"<thinking>\n?{self.continuation_pattern(calls_left)}"

    def continuation_pattern(self, calls_left: int | None = None) -> str:
        """Return the expression for what follows `OPENING` or an observation, inside the open thinking."""
        left = self.limits.calls if calls_left is None else calls_left
        closing = f"</thinking>{_SPACE}{self._final()}"
        if left > 0 and self.tools:
            closing = either([*(self._element(tool) for tool in self.tools.values()), closing])
        return text_pattern(self.limits.thinking) + closing

    def _final(self) -> str:
        several = [self._element(a) for a in self.finals.values() if self.steps > 1 and repeatable(a)]
        once = [self._element(a) for a in self.finals.values() if self.steps <= 1 or not repeatable(a)]
        return either([*([tags_pattern(self.steps, _SPACE) + either(several)] if several else []), *once])

    def _element(self, definition: ActionDef) -> str:
        tag = literal(definition.name)
        if not definition.parameters:
            return f"<{tag}(?:/>|></{tag}>)"
        return f"<{tag}>{self._content(definition)}</{tag}>"

    def _content(self, definition: ActionDef) -> str:
        limit = self.limit(definition.name)
        if len(definition.parameters) == 1:
            only = definition.parameters[0]
            value = _raw(only, limit)
            return f"(?:{value})?" if only.optional else value
        return json_pattern(bounded(definition.json_schema(), limit))

    def read(self, definition: ActionDef, content: str) -> tuple[dict[str, JsonValue], str]:
        """Return the parameters in a tag's content, in declared form, and what is wrong with them, if anything."""
        content = content.strip()
        if len(content) > (most := self.longest(definition)):
            return {}, f"<{definition.name}> has {len(content)} characters in it; at most {most} fit."
        if len(definition.parameters) == 1:
            only = definition.parameters[0]
            given = {only.name: _from_raw(only, content)} if content else {}
        elif not content:
            given = {}
        else:
            value = read_loose(content)
            if not isinstance(value, dict):
                wanted = ", ".join(p.name for p in definition.parameters)
                return {}, f"<{definition.name}> takes a JSON object with: {wanted or 'nothing'}."
            given = dict(value)
        return check_parameters(definition, given)


def _raw(parameter: ParamDef, limit: int) -> str:
    if (choices := parameter.choices()) is not None:
        return either([literal(choice) for choice in choices])
    if (bounds := parameter.integer_range()) is not None:
        return integer_pattern(*bounds)
    schema = bounded(parameter.json_schema(), limit)
    if schema.get("type") == "string" and "enum" not in schema and "const" not in schema:
        return text_pattern(schema["maxLength"], least=max(1, schema.get("minLength", 1)))
    return json_pattern(schema)


def _from_raw(parameter: ParamDef, content: str) -> JsonValue:
    kinds = parameter.json_schema().get("type", "string")
    if kinds == "string":
        # An enumeration in a schema of its own is written as JSON.
        return content[1:-1] if parameter.schema and len(content) > 1 and content[0] == content[-1] == '"' else content
    return read_loose(content, content) if content.startswith(("{", "[", '"')) else bare_value(content)


_THINKING_TAG = re.compile(r"<\s{0,3}(/?)\s{0,3}think(?:ing)?\s{0,3}>", re.IGNORECASE)


def continue_text(so_far: str, observation: str, *, limit: int = 2_000) -> str:
    """Return the assistant's text, up to and including a tool's closing tag, with the tool's observation in it, made
    harmless and cut at `limit` characters, and its thinking open, ready to be continued."""
    tags = list(_THINKING_TAG.finditer(so_far))
    if not tags or not any(not tag[1] for tag in tags):
        so_far = OPENING + so_far
    # Closed before the call, or after it as in the seed's second step: either way it goes on.
    text = "".join(_reopened(so_far))
    return f"{text.rstrip()}\n<observation>{sanitize(observation, limit)}</observation>\n"


def _reopened(text: str) -> list[str]:
    """Return the text with one opening tag, the first, and no closing one."""
    pieces: list[str] = []
    at, opened = 0, False
    for tag in _THINKING_TAG.finditer(text):
        pieces.append(text[at : tag.start()])
        at = tag.end()
        if not tag[1] and not opened:
            pieces.append(tag[0])
            opened = True
    return [*pieces, text[at:]]
