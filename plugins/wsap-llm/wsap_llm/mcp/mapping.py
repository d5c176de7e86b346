"""Converts a server's tools and results, all untrusted, to this protocol's tools and to texts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wsap_core.protocol import ParamDef, Tool
from wsap_core.protocol.subset import ANNOTATIONS, KEYWORDS, TYPES, check_schema
from wsap_core.untrusted import single_line, strip_control

if TYPE_CHECKING:
    from mcp.types import CallToolResult

MOST_TOOLS, MOST_PARAMETERS = 64, 32
"""Maximum number of tools of a server, and of parameters of a tool."""
DESCRIPTION = 500
"""Maximum length of a description in characters."""
_DEEPEST = 6
_SCHEMA_SIZE = 4000
_PARAMETER = re.compile(r"[A-Za-z_][\w.-]{0,63}", re.ASCII)


class UnusableToolError(Exception):
    """The tool can't be offered; the message gives the reason."""


def tool_of(name: str, description: str | None, schema: Mapping[str, Any], *, prefix: str = "") -> Tool:
    """Return a server's tool, with each property of its JSON Schema as a parameter.

    Characters of its name that are invalid in a tag become underscores; the description is put on one line and cut.
    Raises UnusableToolError if it has too many parameters, or a required one has an unusable name.
    """
    wanted = re.sub(r"[^A-Za-z0-9_-]", "_", f"{prefix}_{name}" if prefix else name)[:64]
    if not re.match(r"[A-Za-z]", wanted):
        wanted = f"t_{wanted}"[:64]
    return Tool(wanted, single_line(description or name)[:DESCRIPTION], parameters_of(schema))


def parameters_of(schema: Mapping[str, Any]) -> list[ParamDef]:
    """Return each property of a foreign JSON Schema as a parameter; UnusableToolError if that can't be done."""
    properties = schema.get("properties")
    listed = schema.get("required")
    required = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    if properties is None:
        properties = {}
    if not isinstance(properties, Mapping) or required - properties.keys():
        raise UnusableToolError("its parameters are not described")
    found = []
    for name, part in properties.items():
        if not isinstance(name, str) or not _PARAMETER.fullmatch(name):
            if name in required:
                raise UnusableToolError("one of its parameters has an unusable name")
            continue
        says = part.get("description") if isinstance(part, Mapping) else None
        meaning = single_line(says)[:DESCRIPTION] if isinstance(says, str) else ""
        found.append(ParamDef(name, "", name not in required, subset(part, schema), meaning))
    if len(found) > MOST_PARAMETERS:
        raise UnusableToolError(f"it has more than {MOST_PARAMETERS} parameters")
    return found


def subset(schema: Any, root: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a JSON Schema that the protocol's subset can express; the server checks the rest.

    References within `root` are resolved, alternatives of plain types become a list of types, and keywords outside the
    subset are left out. Every value valid by the given schema is valid by the returned one.
    """
    made = _subset(schema, root, 0)
    if check_schema(made) is not None or len(json.dumps(made, default=str)) > _SCHEMA_SIZE:
        return {}
    return made


def _subset(schema: Any, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return {}
    if isinstance(reference := schema.get("$ref"), str):
        return _subset(_followed(reference, root), root, depth + 1)
    made: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in ("items", "additionalProperties") and isinstance(value, Mapping):
            made[keyword] = _subset(value, root, depth + 1)
        elif keyword == "prefixItems" and isinstance(value, list) and value:
            made[keyword] = [_subset(part, root, depth + 1) for part in value]
        elif keyword == "properties" and isinstance(value, Mapping):
            made[keyword] = {str(name): _subset(part, root, depth + 1) for name, part in value.items()}
        elif keyword in KEYWORDS and check_schema({keyword: value}) is None:
            made[keyword] = value
    for keyword in ("anyOf", "oneOf"):
        types = _plain_types(schema.get(keyword), root, depth)
        if types and "type" not in made:
            made["type"] = types if len(types) > 1 else types[0]
    if "patternProperties" in schema:
        made.pop("additionalProperties", None)  # it excludes what patterns match, and they are left out
    return {keyword: value for keyword, value in made.items() if keyword not in ANNOTATIONS}


def _plain_types(choices: Any, root: Mapping[str, Any], depth: int) -> list[str]:
    if not isinstance(choices, list):
        return []
    found: list[str] = []
    for choice in choices:
        kinds = _subset(choice, root, depth + 1).get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not kinds:
            return []
        found += [kind for kind in kinds if kind not in found]
    return [kind for kind in TYPES if kind in found]


def _followed(reference: str, root: Mapping[str, Any]) -> Any:
    if not reference.startswith("#/"):
        return {}  # external references are ignored
    found: Any = root
    for part in reference[2:].split("/"):
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def text_of(result: CallToolResult, longest: int) -> str:
    """Return a result as text for the model, without control characters and cut to `longest` characters."""
    parts = [_content(block) for block in result.content]
    if not parts and result.structured_content is not None:
        parts = [json.dumps(result.structured_content, ensure_ascii=False, default=str)]
    text = capped("\n".join(parts), longest)
    if result.is_error:
        return f"The tool says that it failed: {text or 'no reason given'}"
    return text or "(no result)"


def capped(text: str, longest: int) -> str:
    """Return text without control characters, cut after `longest` characters with a note."""
    # Cut first, so that only the rest is cleaned.
    more = len(text) - longest
    return strip_control(text[:longest]).strip() + (f"\n(cut off: {more} more characters)" if more > 0 else "")


def _content(block: Any) -> str:
    # Any: blocks of several classes, distinguished by their `type`.
    match block.type:
        case "text":
            return str(block.text)
        case "image" | "audio" as kind:
            return f"({kind}, {single_line(block.mime_type)[:40]}, not shown)"
        case "resource":
            return str(getattr(block.resource, "text", "(a file that is no text, not shown)"))
        case "resource_link":
            return f"(link: {single_line(block.uri)[:200]})"
        case kind:
            return f"({single_line(kind)[:40]}, not shown)"
