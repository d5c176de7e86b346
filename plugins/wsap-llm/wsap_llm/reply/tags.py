"""The tag style of seed 002: thinking, tool tags, and one final action tag.

    <thinking>
    Player 4 claims to be the doctor. I need to see that will.
    <check_will>Player 3</check_will>
    <observation>I am the Doctor. N2 heal Player 1.</observation>
    Player 4 is lying.
    </thinking>
    <speak>Player 4 is lying.</speak>

Generation stops at a tool's closing tag, the tool runs, and its observation is inserted; the model then continues the
same thinking. The text up to a tool's tag or to the final one is a leg. A pattern describes one leg with the tools and
final actions that are legal now; once no tool calls are left, the next leg gets a pattern without tools, so that
patterns stay small. The seed shows the thinking both closed and open around the observation; here the model continues
one assistant text whose thinking is open (`continue_text`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from wsap_core.protocol import Action, ActionDef, ParamDef, Tool
from wsap_core.protocol.values import JsonValue
from wsap_core.untrusted import sanitize
from wsap_core.worlds.legality import check_parameters
from wsap_llm.reply.candidates import NotUnderstood, Reading, ToolCall, Understood
from wsap_llm.reply.json_text.repair import bare_value, read_loose
from wsap_llm.reply.schema import MOST_DECLARED, bounded
from wsap_llm.reply.steps import repeatable, steps_in_tags, tag_steps, tags_pattern
from wsap_llm.schemas.patterns import either, integer_pattern, json_pattern, literal, longest_json, text_pattern

OPENING = "<thinking>\n"
"""The start of a turn. With it as prefill, the first leg has the pattern of a continuation."""
_THINKING = ("thinking", "think")
RESERVED = (*_THINKING, "observation")
"""Names that tools and actions must not have."""
_TAG_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]{0,62}")
_SPACE = r"[ \n]{0,2}"


@dataclass(frozen=True)
class TagLimits:
    """The limits in the constraint, lengths in characters."""

    thinking: int = 600
    """Maximum length of the thinking in one leg."""
    argument: int = 120
    """Maximum length of a tool's text parameter."""
    final: int = 400
    """Maximum length of a final action's text parameter."""
    calls: int = 3
    """Maximum number of tool calls in a turn."""


DEFAULT_LIMITS = TagLimits()


class TagTurn:
    """The tags that are legal in one turn."""

    def __init__(
        self, tools: Sequence[Tool], finals: Sequence[ActionDef], *, limits: TagLimits = DEFAULT_LIMITS, steps: int = 1
    ) -> None:
        """Define the tags of a turn.

        If `steps` is above 1, `<times>` and `<until>` may precede the final tag, unless a tool or action has one of
        these names. Raises ValueError if there is no final action, or a name is invalid or used twice.
        """
        self.limits = limits
        self.tools = {tool.name: ActionDef(tool.name, tool.description, tool.parameters) for tool in tools}
        self.finals = {action.name: action for action in finals}
        self.steps = tag_steps(steps, [*self.tools, *self.finals])
        """Maximum number of steps of a decision."""
        if not self.finals:
            raise ValueError("There is no final action to end the turn with.")
        seen: set[str] = set(RESERVED)
        for name in (*(tool.name for tool in tools), *(action.name for action in finals)):
            if not _TAG_NAME.fullmatch(name):
                raise ValueError(f"Invalid name of a tag {name!r}; use letters, digits, '_', '-' and '.'.")
            if name.lower() in seen:
                raise ValueError(f"The tag {name!r} is ambiguous; rename the tool or the action.")
            seen.add(name.lower())
        self._by_tag = {name.lower(): definition for name, definition in (self.tools | self.finals).items()}

    def find(self, tag: str) -> ActionDef | None:
        """Return the tool or final action of a tag, ignoring case."""
        return self._by_tag.get(tag.lower())

    def limit(self, name: str) -> int:
        """Return the maximum length of a text between a tag and its end in characters, by default or declaration."""
        definition = self.finals.get(name) or self.tools.get(name)
        declared = [p.json_schema().get("maxLength", 0) for p in definition.parameters] if definition else []
        usual = self.limits.final if name in self.finals else self.limits.argument
        return max(usual, min(MOST_DECLARED, max(declared, default=0)))

    def longest(self, definition: ActionDef) -> int:
        """Return the maximum length between a tag and its end in characters, by the pattern."""
        limit = self.limit(definition.name)
        if len(definition.parameters) != 1:
            return longest_json(bounded(definition.json_schema(), limit))
        schema = bounded(definition.parameters[0].json_schema(), limit)
        return max(limit, int(schema.get("maxLength", 0)) if schema.get("type") == "string" else longest_json(schema))

    def pattern(self, calls_left: int | None = None) -> str:
        """Return the expression for a turn's first leg, from `<thinking>` to the end of a tool's or the final tag.
        `calls_left` is the turn's limit by default; if it is 0, the leg ends with the final action."""
        return rf"<thinking>\n?{self.continuation_pattern(calls_left)}"

    def continuation_pattern(self, calls_left: int | None = None) -> str:
        """Return the expression for the text after `OPENING` or an observation, within the thinking."""
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
        """Return the parameters in a tag's content, in declared form, and the problem with them, if any."""
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
        # An enumeration in a declared schema is written as JSON.
        return content[1:-1] if parameter.schema and len(content) > 1 and content[0] == content[-1] == '"' else content
    return read_loose(content, content) if content.startswith(("{", "[", '"')) else bare_value(content)


# --- reading a leg ---

_TAG = re.compile(
    r"<\s{0,4}(?:(?P<close>/?)\s{0,4}(?P<name>[A-Za-z_][\w.\-]{0,62})\s{0,4}(?P<empty>/?)\s{0,4}>"
    r"|(?P<attributed>[A-Za-z_][\w.\-]{0,62})\s{1,4}[\w.\-]{1,40}\s{0,4}=)"
)
_THINKING_TAG = re.compile(r"<\s{0,3}(/?)\s{0,3}think(?:ing)?\s{0,3}>", re.IGNORECASE)


def read_leg(
    turn: TagTurn, text: str, *, inside_thinking: bool = False, calls_left: int | None = None
) -> tuple[Reading, str]:
    """Return the tool call or final action at the end of a leg, with its thinking as the reasoning, and the text up to
    its end; discard the rest.

    The text must be the model's alone, so that only its own tags count. A leg is `inside_thinking` after an observation
    or `OPENING`; `calls_left` is the turn's limit by default. A final action is `repaired` if the thinking was not
    closed before it.
    """
    left = turn.limits.calls if calls_left is None else calls_left
    reading, end = _Leg(turn, text, inside_thinking, left).ending()
    return reading, text[:end]


_Ending = tuple[Reading, int]


@dataclass
class _Leg:
    """One pass over the tags of a leg."""

    turn: TagTurn
    text: str
    thinking: bool
    calls_left: int
    open: tuple[ActionDef, re.Match[str]] | None = None
    """The tool or action of the open tag, and that tag."""
    early: list[_Ending] = field(default_factory=list)
    """Final actions within thinking."""
    remark: str = ""

    def ending(self) -> _Ending:
        for tag in _TAG.finditer(self.text):
            if (found := self._tag(tag)) is not None:
                return found
        return self._verdict()

    def _tag(self, tag: re.Match[str]) -> _Ending | None:
        definition = self.turn.find(tag["name"] or tag["attributed"])
        if tag["attributed"]:
            if definition is not None:
                refused = "takes no attributes; write what it needs between the tag and its end."
                self.remark = f"<{definition.name}> {refused}"
            return None
        name = tag["name"].lower()
        if self.open is not None:
            return self._inside(tag, *self.open, definition)
        if name in _THINKING:
            self.thinking = not tag["close"]
        elif definition is not None and tag["close"]:
            self.remark = f"</{definition.name}> closes a tag that was not opened."
        elif definition is not None and tag["empty"]:
            return self._complete(definition, "", tag.start(), tag.end())
        elif definition is not None:
            self.open = definition, tag
        return None

    def _inside(
        self, tag: re.Match[str], opened: ActionDef, opening: re.Match[str], definition: ActionDef | None
    ) -> _Ending | None:
        """Process a tag within another: its end, a nested one, or text that looks like one."""
        if definition is opened and tag["close"]:
            self.open = None
            return self._complete(opened, self.text[opening.end() : tag.start()], opening.start(), tag.end())
        name = tag["name"].lower()
        if definition is None and name not in RESERVED:
            return None
        return NotUnderstood(f"<{opened.name}> has another tag, <{tag['close']}{name}>, inside it."), tag.end()

    def _complete(self, definition: ActionDef, content: str, start: int, end: int) -> _Ending | None:
        parameters, reason = self.turn.read(definition, content)
        if reason:
            return None if self._only_named(definition, content) else (NotUnderstood(reason), end)
        thought = _THINKING_TAG.sub("", self.text[:start]).strip() or None
        if definition.name in self.turn.tools:
            if self.calls_left <= 0:
                return NotUnderstood("No tool calls are left in this turn; end it with a final action."), end
            return Understood(ToolCall(definition.name, parameters, thought), how="tags"), end
        final = Action(definition.name, parameters, thought)
        steps = steps_in_tags(self.text[:end], self.turn.steps)
        if not self.thinking:
            return Understood(final, how="tags", steps=steps), end
        # Within the thinking it may be just mentioned; at the very end it counts.
        self.early.append((Understood(final, repaired=True, how="tags", steps=steps), end))
        return None

    def _only_named(self, definition: ActionDef, content: str) -> bool:
        """Return whether thinking only mentions a tag: "I could use <check_will></check_will>"."""
        return self.thinking and not content.strip() and any(not p.optional for p in definition.parameters)

    def _verdict(self) -> _Ending:
        end = len(self.text)
        if self.open is not None:
            opened, tag = self.open
            most = self.turn.longest(opened)
            # Allows for spaces and an incomplete end tag.
            if end - tag.end() > most + 100:
                return NotUnderstood(f"<{opened.name}> was not closed within {most} characters."), end
            return NotUnderstood(f"<{opened.name}> was not closed."), end
        if len(self.early) == 1 and not self.text[self.early[0][1] :].strip():
            return self.early[0]
        finals = " or ".join(f"<{name}>" for name in self.turn.finals)
        if self.remark:
            return NotUnderstood(self.remark), end
        if self.thinking:
            return NotUnderstood(f"The turn ended inside <thinking>; close it and end with one of {finals}."), end
        return NotUnderstood(f"The turn has no final action; end it with one of {finals}."), end


# --- continuing after an observation ---


def continue_text(so_far: str, observation: str, *, limit: int = 2_000) -> str:
    """Return the assistant's text for continuation: up to a tool's closing tag, followed by the tool's observation,
    sanitized and cut to `limit` characters, with its thinking open."""
    first = next((tag for tag in _THINKING_TAG.finditer(so_far) if not tag[1]), None)
    before, opening, rest = so_far.partition(first[0]) if first else ("", OPENING, so_far)
    # Whether closed before the call, or after it as in the seed's second step, the thinking continues.
    text = _THINKING_TAG.sub("", before) + opening + _THINKING_TAG.sub("", rest)
    return f"{text.rstrip()}\n<observation>{sanitize(observation, limit)}</observation>\n"
