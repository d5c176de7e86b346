"""The JSON style: the JSON Schema of a reply for the legal actions.

By default the keys have the seed's order, action, params, reasoning, so that a truncated reply already has its action.
`reasoning_first` lets a model without thinking reason before it chooses; constraints enforce the order.

Every length in an action is bounded, so that a verbose model does not run out of tokens within an object. A tool's own
schema is left as it is: it belongs to somebody else, such as a server of tools, and what fits it there must fit here.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from wsap_core.protocol import ActionDef, ActionSpace, Observation, ParamDef, Tool
from wsap_core.protocol.availability import choices_of
from wsap_core.protocol.subset import ANNOTATIONS
from wsap_core.protocol.values import JsonValue
from wsap_core.seams.constraints import FunctionDef
from wsap_core.worlds.legality import narrowed
from wsap_llm.reply.steps import json_members, repeatable
from wsap_llm.schemas.strict_schema import or_text, wrapped

JsonSchema = dict[str, JsonValue]

MOST_ITEMS = 16
"""Maximum number of items of a list if not declared."""
MOST_LISTED = 64
"""Maximum number of whole numbers in a range that is listed rather than bounded."""
TEXT_LIMIT = 400
"""Maximum length of a text parameter in characters, unless it declares more."""
LARGEST = 10**9
"""Maximum magnitude of a number if not declared."""


def legal_actions(space: ActionSpace, observation: Observation) -> tuple[ActionDef, ...]:
    """Return the legal actions of an observation, in the order of declaration.

    A declared action that is not in `available_actions`, or all if that is None, is legal unless it is `unlisted`.
    Parameters with choices in the observation accept only those.
    """
    told = {a.name: a for a in observation.available_actions or ()}
    return tuple(
        narrowed(action, choices_of(told[action.name])) if action.name in told else action
        for action in space.actions
        if (told[action.name].available if action.name in told else not action.unlisted)
    )


def reply_schema(
    actions: Sequence[ActionDef],
    tools: Sequence[Tool] = (),
    *,
    reasoning_limit: int | None = None,
    text_limit: int = TEXT_LIMIT,
    reasoning_first: bool = False,
    strict_openai: bool = False,
    steps: int = 1,
) -> JsonSchema:
    """Return the JSON Schema of a reply: `{"action", "params", "reasoning"}` or `{"tool", "params"}`.

    It has a branch for each action with parameters, one for all actions without parameters, and one for each tool.

    Args:
        actions: the legal actions, at least one.
        tools: the tools that may be called now.
        reasoning_limit: maximum length of the reasoning in characters; if None, 120 before the action, 300 after it.
        text_limit: maximum length of a text parameter of an action in characters, unless it declares more, up to
            `MOST_DECLARED`; also of a tool's parameter without a schema.
        reasoning_first: whether the reasoning precedes the action.
        strict_openai: use the subset of OpenAI's strict mode (see `wsap_llm.schemas.strict_schema`): the root is an
            object with the branches under `reply`, optional properties are required but may be null, texts are
            unbounded, and the reasoning never comes first, because the first property must distinguish the branches.
        steps: the maximum number of steps of a decision; above 1, repeatable actions have the optional members `times`
            and `until` (see `wsap_llm.reply.steps`).

    Raises:
        ValueError: `actions` is empty.
    """
    if not actions:
        raise ValueError("There is no legal action to choose from.")
    most = reasoning_limit or (120 if reasoning_first else 300)
    reasons: JsonSchema = {"reasoning": {"type": "string", "maxLength": most}}
    before, after = (reasons, {}) if reasoning_first and not strict_openai else ({}, reasons)
    groups: dict[str | bool, list[ActionDef]] = {}  # one branch for all that take no parameters
    for action in actions:
        several = steps > 1 and repeatable(action)
        groups.setdefault(action.name if action.parameters else several, []).append(action)
    branches = []
    for group in groups.values():
        beside = json_members(steps) if steps > 1 and repeatable(group[0]) else {}
        named = _named("action", [action.name for action in group], group[0].parameters, text_limit)
        branches.append(_object({**before, **named, **beside, **after}, optional=beside))
    for tool in tools:
        named = {
            "tool": {"type": "string", "const": tool.name},
            "params": _tool_parameters(tool, text_limit, strict_openai),
        }
        branches.append(_object(named))
    schema = branches[0] if len(branches) == 1 else {"anyOf": branches}
    return wrapped(schema) if strict_openai else schema


def reply_functions(actions: Sequence[ActionDef], tools: Sequence[Tool] = (), *, steps: int = 1) -> list[FunctionDef]:
    """Return the functions for replies by function calls, one for each action and tool, or the first of equal names.
    If `steps` is above 1, those of repeatable actions also have the parameters `times` and `until`."""
    made: dict[str, FunctionDef] = {}
    all_of_them: list[ActionDef | Tool] = [*actions, *tools]
    for offered in all_of_them:
        if isinstance(offered, Tool):
            params = _tool_parameters(offered, TEXT_LIMIT)
        else:
            params = _parameters(offered.parameters, TEXT_LIMIT)
        if steps > 1 and isinstance(offered, ActionDef) and repeatable(offered):
            params = {**params, "properties": {**json_members(steps), **params["properties"]}}
        made.setdefault(offered.name, FunctionDef(offered.name, offered.description, params))
    return list(made.values())


def _named(kind: str, names: list[str], parameters: Sequence[ParamDef], text_limit: int) -> JsonSchema:
    name: JsonSchema = {"const": names[0]} if len(names) == 1 else {"enum": names}
    return {kind: {"type": "string", **name}, "params": _parameters(parameters, text_limit)}


def _object(properties: Mapping[str, JsonSchema], optional: Container[str] = ()) -> JsonSchema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def _parameters(parameters: Sequence[ParamDef], text_limit: int) -> JsonSchema:
    schemas = {}
    for p in parameters:
        schema = p.json_schema()
        declared = min(MOST_DECLARED, schema.get("maxLength", 0))
        schemas[p.name] = bounded(schema, max(text_limit, declared))
    return _object(schemas, optional=[p.name for p in parameters if p.optional])


def _tool_parameters(tool: Tool, text_limit: int, strict_openai: bool = False) -> JsonSchema:
    schemas = {p.name: _plain(p.schema) for p in tool.parameters if p.schema is not None}
    if strict_openai:  # which a reader takes as the value, as it does with every JSON in a text
        schemas = {name: or_text(schema) for name, schema in schemas.items()}
    made = _parameters([p for p in tool.parameters if p.schema is None], text_limit)["properties"] | schemas
    return _object(
        {p.name: made[p.name] for p in tool.parameters}, optional=[p.name for p in tool.parameters if p.optional]
    )


def _plain(schema: Mapping[str, JsonValue]) -> JsonSchema:
    """Return a schema without what only explains it."""
    made = {key: value for key, value in schema.items() if key not in ANNOTATIONS}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), Mapping):
            made[key] = _plain(made[key])
    if "prefixItems" in made:
        made["prefixItems"] = [_plain(part) if isinstance(part, Mapping) else part for part in made["prefixItems"]]
    if "properties" in made:
        parts = made["properties"].items()
        made["properties"] = {name: _plain(part) if isinstance(part, Mapping) else part for name, part in parts}
    if made.get("type") == "integer" and (few := _few(made)):
        return {"type": "integer", "enum": few}
    return made


MOST_DECLARED = 2000
"""Maximum length of a text parameter by its own declaration, in characters."""


def bounded(schema: Mapping[str, JsonValue], text_limit: int) -> JsonSchema:
    """Return a parameter's schema with a limit on every length: `text_limit` characters unless it declares less."""
    made = {key: value for key, value in schema.items() if key not in ("description", "title", "examples", "$comment")}
    if "enum" in made or "const" in made:
        return made
    kinds = made.get("type", "string")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    made["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "string" in kinds:
        made["maxLength"] = min(made.get("maxLength", text_limit), max(text_limit, made.get("minLength", 0)))
    if kinds == ["integer"] and (few := _few(made)):
        # Every engine enforces an enumeration; several ignore the bounds of numbers (outlines-core).
        return {"type": "integer", "enum": few}
    if "integer" in kinds or "number" in kinds:
        if "exclusiveMinimum" not in made:
            made.setdefault("minimum", -LARGEST)
        if "exclusiveMaximum" not in made:
            made.setdefault("maximum", LARGEST)
    if "array" in kinds:
        made["prefixItems"] = [_inner(item, text_limit) for item in made.get("prefixItems", ())]
        if not made["prefixItems"]:
            del made["prefixItems"]
        made["items"] = _inner(made.get("items", True), text_limit)
        made["maxItems"] = min(made.get("maxItems", MOST_ITEMS), max(MOST_ITEMS, made.get("minItems", 0)))
    if "object" in kinds:
        made["properties"] = {key: _inner(part, text_limit) for key, part in made.get("properties", {}).items()}
        made["additionalProperties"] = False
        made.setdefault("required", [])
    return made


def _few(schema: Mapping[str, JsonValue]) -> list[int]:
    if not all(isinstance(schema.get(bound), int) for bound in ("minimum", "maximum")) or "exclusiveMinimum" in schema:
        return []
    if "exclusiveMaximum" in schema or not 0 <= schema["maximum"] - schema["minimum"] < MOST_LISTED:
        return []
    return list(range(schema["minimum"], schema["maximum"] + 1))


def _inner(schema: JsonValue, text_limit: int) -> JsonValue:
    if schema is True:
        return {"type": "string", "maxLength": text_limit}
    return bounded(schema, text_limit) if isinstance(schema, Mapping) else schema
