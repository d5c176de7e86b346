"""The protocol's messages as JSON Schema (draft 2020-12), for implementations in other languages.

They describe what the kernel reads: fields with a default may be left out, and unknown fields are allowed, because
a newer minor version may add some. `$type` names a subclass; the protocol's own (`EmbodiedObservation`, `Possible`)
have schemas, those of plugins do not. `wsap schema --output` writes the files in `docs/reference/schemas`.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from wsap_core import protocol
from wsap_core.errors import UnknownNameError
from wsap_core.protocol.base import TYPE_TAG, Part, wire_type
from wsap_core.version import PROTOCOL_VERSION

DIALECT = "https://json-schema.org/draft/2020-12/schema"

# Any: a JSON Schema has every kind of value.
JsonSchema = dict[str, Any]

MESSAGES: Mapping[str, type] = {
    name: found for name, found in sorted(vars(protocol).items()) if isinstance(found, type) and is_dataclass(found)
}
"""Name, as in an envelope's `type`, -> class of every message."""


@dataclass(frozen=True)
class Envelope:
    """A message with its name and the version of the protocol."""

    protocol_version: str
    """The sender's protocol version (SemVer); readers with the same major version understand it."""
    type: str
    """The name of the message; for a subclass, `$type` in the body names that."""
    body: Any
    """The message. Any: it is one of the protocol's types, or one that a plugin derived from them."""


_TAG_TEXT = "The name of the subclass whose fields are present, too; left out otherwise."
_DROPPED = ("extras",)
"""Fields that are not sent."""


def names() -> tuple[str, ...]:
    """Return the names of all messages, sorted."""
    return tuple(sorted([*MESSAGES, Envelope.__name__]))


def message_schema(name: str) -> JsonSchema:
    """Return the self-contained schema of one message; UnknownNameError if the protocol has no such message."""
    if name not in names():
        raise UnknownNameError("message", name, names(), hint="`wsap schema --list` names them all.")
    definitions = _definitions()
    needed = _closure(name, definitions)
    return {
        "$schema": DIALECT,
        "$comment": f"WSAP protocol {PROTOCOL_VERSION}",
        "$ref": f"#/$defs/{name}",
        "$defs": {key: copy.deepcopy(definitions[key]) for key in sorted(needed)},
    }


def all_schemas() -> JsonSchema:
    """Return the schema of an envelope, with those of all messages in its `$defs`."""
    return message_schema(Envelope.__name__)


def to_json(schema: JsonSchema) -> str:
    """Return a schema as the text of its file: sorted keys, indented by two spaces."""
    return json.dumps(schema, indent=2, sort_keys=True) + "\n"


@functools.cache
def _definitions() -> dict[str, JsonSchema]:
    from pydantic import TypeAdapter  # deferred for weight: only who exports schemas needs it

    inputs: list[Any] = [(name, "validation", TypeAdapter(cls)) for name, cls in MESSAGES.items()]
    _, document = TypeAdapter.json_schemas(inputs)
    definitions: dict[str, JsonSchema] = {key: without_titles(value) for key, value in document["$defs"].items()}
    for name, cls in MESSAGES.items():
        _describe(definitions[name], cls)
    _narrow_subclasses(definitions)
    definitions[Envelope.__name__] = _envelope()
    return definitions


def without_titles(node: Any) -> Any:
    """Return a schema without the titles that pydantic derives from field names."""
    if isinstance(node, list):
        return [without_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {k: without_titles(v) for k, v in node.items() if not (k == "title" and isinstance(v, str))}


def _describe(schema: JsonSchema, cls: type) -> None:
    texts = field_texts(cls)
    properties = schema.setdefault("properties", {})
    for name in _DROPPED:
        properties.pop(name, None)
    for name, text in texts.items():
        if name in properties:
            properties[name]["description"] = text
    if issubclass(cls, Part):
        properties[TYPE_TAG] = {"type": "string", "description": _TAG_TEXT}
    elif "kind" in properties:
        schema["required"] = sorted({*schema.get("required", ()), "kind"})


def _narrow_subclasses(definitions: dict[str, JsonSchema]) -> None:
    """Require of a message whose `$type` names a subclass in the protocol that it matches that schema, too."""
    for name, cls in MESSAGES.items():
        for base in cls.__mro__[1:]:
            if MESSAGES.get(base.__name__) is base and (tag := wire_type(cls)):
                when = {"properties": {TYPE_TAG: {"const": tag}}, "required": [TYPE_TAG]}
                rule = {"if": when, "then": {"$ref": f"#/$defs/{name}"}}
                definitions[base.__name__].setdefault("allOf", []).append(rule)


def _envelope() -> JsonSchema:
    texts = field_texts(Envelope)
    return {
        "type": "object",
        "description": inspect.getdoc(Envelope),
        "properties": {
            "protocol_version": {
                "type": "string",
                "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+$",
                "description": texts["protocol_version"],
            },
            "type": {"type": "string", "description": texts["type"]},
            "body": {"description": "The message."},
        },
        "required": ["body", "protocol_version", "type"],
        "allOf": [
            {
                "if": {"properties": {"type": {"const": name}}, "required": ["type"]},
                "then": {"properties": {"body": {"$ref": f"#/$defs/{name}"}}},
            }
            for name in sorted(MESSAGES)
        ],
    }


def _closure(name: str, definitions: dict[str, JsonSchema]) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        here = waiting.pop()
        if here not in found:
            found.add(here)
            waiting += _references(definitions[here])
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str):
            yield reference.removeprefix("#/$defs/")
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for item in node:
            yield from _references(item)


def field_texts(cls: type) -> dict[str, str]:
    """Return field -> docstring of a dataclass, inherited fields included."""
    texts: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not is_dataclass(base):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        assert isinstance(body, ast.ClassDef)
        for statement, following in zip(body.body, body.body[1:], strict=False):
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                match following:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        texts[statement.target.id] = " ".join(inspect.cleandoc(text).split())
    own = {f.name for f in fields(cls)}
    return {name: text for name, text in texts.items() if name in own}
