"""What a decision offers: the lists in the prompt and the constraint of the reply are made from the same actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from wsap_core.protocol import Action, ActionAvailability, ActionDef, ActionSpace, Observation, ParamDef, Tool
from wsap_core.protocol.availability import render_availability
from wsap_core.protocol.lines import bullets
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.untrusted import single_line
from wsap_llm.tools.lookup import is_lookup, split

_SHOWN_ANYWAY = "avatar"
"""The category of the protocol's look-ups, whose answers stand in every observation."""
MOST_WORDS = 300
"""Maximum length of what is told of one parameter of a tool, in characters; its choices are told whole."""


def offerable(space: ActionSpace) -> ActionSpace:
    """Return the actions that are ever offered to a model: without unlisted look-ups, which no prompt would name, and
    without the protocol's `look` and `inspect_self`, which repeat the observation."""
    kept = [a for a in space.actions if not is_lookup(a) or not (a.unlisted or a.category == _SHOWN_ANYWAY)]
    return ActionSpace(kept) if kept else space


def without_free_options(legal: Sequence[ActionDef]) -> tuple[ActionDef, ...]:
    """Return actions without optional parameters that take any text, for small models: these fill them with anything,
    and the action is refused for it."""
    return tuple(
        replace(action, parameters=tuple(p for p in action.parameters if not (p.optional and _is_free(p))))
        if any(p.optional and _is_free(p) for p in action.parameters)
        else action
        for action in legal
    )


def _is_free(parameter: ParamDef) -> bool:
    schema = parameter.json_schema()
    return schema.get("type") == "string" and not {"enum", "const"} & schema.keys()


def possible_now(space: ActionSpace, legal: Sequence[ActionDef], observation: Observation, words: Words) -> str:
    """Return the section of the prompt that names the legal actions with their values; with a line for each that the
    system message does not list."""
    told = {each.name: each for each in observation.available_actions or () if each.available}
    section = render_availability([told.get(a.name) or ActionAvailability(a.name) for a in legal], words)[1]
    if not section[1]:
        return ""
    unlisted = {action.name for action in space.actions if action.unlisted}
    new = ActionSpace([action for action in legal if action.name in unlisted])
    return "\n".join(filter(None, (f"{section[0]}:\n{section[1]}", new.to_text(words))))


def only_refusals(observation: Observation) -> Observation:
    """Return an observation whose text names the actions that are not possible, and leaves the others to
    `possible_now`."""
    if not observation.available_actions:
        return observation
    return replace(observation, available_actions=[a for a in observation.available_actions if not a.available])


def brief_of(observation: Observation) -> str:
    """Return an observation as a short text. If a game tells what it adds only in its own long text, that is returned:
    the general short text would leave out what the game is about."""
    tells, shortens = (_definer(type(observation), name) for name in ("to_text", "to_brief"))
    own = not tells.__module__.startswith("wsap_core.") and tells is not shortens
    return observation.to_text() if own and issubclass(tells, shortens) else observation.to_brief()


def _definer(kind: type, name: str) -> type:
    return next(each for each in kind.__mro__ if name in vars(each))


def phrased(legal: Sequence[ActionDef], phrases: Mapping[str, str], options: Mapping[str, Action], words: Words) -> str:
    """Return the list of options, or if there are none of the legal actions that end a turn, in the game's phrases."""
    listed = options or [_named(action, phrases) for action in split(legal)[0]]
    return f"{words.say('POSSIBLE NOW')}:\n{bullets(listed)}"


def not_looked_up(space: ActionSpace, legal: Sequence[ActionDef], words: Words = ENGLISH) -> str:
    """Return the line that names the look-ups of the system message which are not possible now; empty if all are."""
    now = {action.name for action in legal}
    missing = [a.name for a in split(space.listed().actions)[1] if a.name not in now]
    return words.say(f"Not to be looked up now: {', '.join(missing)}.") if missing else ""


def tool_lines(tools: Sequence[Tool], words: Words = ENGLISH) -> str:
    """Return one line for each of the agent's own tools, with its parameters."""
    return "\n".join(_tool_line(tool, words) for tool in tools)


def _tool_line(tool: Tool, words: Words) -> str:
    signature = "; ".join(_parameter(parameter, words) for parameter in tool.parameters)
    return f"- {tool.name}" + (f"({signature})" if signature else "") + f": {single_line(tool.description)}"


def _parameter(parameter: ParamDef, words: Words) -> str:
    kind = parameter.spec if parameter.schema is None else _kind(parameter.schema)
    meaning = single_line(words.say(parameter.description))[:MOST_WORDS]
    told = ", ".join(filter(None, (single_line(kind), meaning)))
    return parameter.name + ("?" if parameter.optional else "") + (f": {told}" if told else "")


def _kind(schema: Mapping[str, JsonValue]) -> str:
    """Return a JSON Schema in a few words, with all values to choose from: "a|b", "integer 1-9", "list of string"."""
    if "enum" in schema or "const" in schema:
        return "|".join(map(str, schema.get("enum", [schema.get("const")])))
    kinds = schema.get("type", "")
    kind = kinds if isinstance(kinds, str) else " or ".join(map(str, kinds))
    if kind == "array":
        items = schema.get("items")
        of = _kind(items) if isinstance(items, Mapping) else ""
        return f"list of {of}" if of else "list"
    if kind == "object" and isinstance(parts := schema.get("properties"), Mapping) and parts:
        needed = set(schema.get("required", ()))
        inner = (
            name + ("" if name in needed else "?") + (f": {_kind(part)}" if isinstance(part, Mapping) else "")
            for name, part in parts.items()
        )
        return f"{{{', '.join(inner)}}}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and high is None:
        return kind
    if low is None or high is None:
        return f"{kind} {f'to {high}' if low is None else f'from {low}'}".strip()
    return f"{kind} {low}-{high}".strip()


def _named(action: ActionDef, phrases: Mapping[str, str]) -> str:
    given = "; ".join(_short(parameter) for parameter in action.parameters)
    name = f"{action.name}({given})" if given else action.name
    phrase = phrases.get(action.name, "")
    new = set(phrase.split()) - {*action.name.split("_"), "a", "an", "the"}
    return f"{name}: {phrase}" if new else name


def _short(parameter: ParamDef) -> str:
    schema = parameter.schema
    kind = _kind(schema) if schema is not None and ("enum" in schema or not parameter.spec) else parameter.spec
    return parameter.name + ("?" if parameter.optional else "") + (f": {kind}" if kind else "")
