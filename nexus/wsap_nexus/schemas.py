"""The protocol's messages as JSON Schema (draft 2020-12), for those who write in other languages.

They describe what the kernel reads: a field with a default may be left out, and fields that are not
named here are allowed, because a newer minor version may add some. `$type` names a subclass; the
protocol's own (`EmbodiedObservation`, `Possible`) are held to their own schemas, and those of plugins are open.
The files in `docs/reference/schemas` are what `wsap schema --output` writes; a test compares them.
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
"""Every message of the protocol by its name, which is also what an envelope's `type` says."""


@dataclass(frozen=True)
class Envelope:
    """A message with what a reader must know before reading it."""

    protocol_version: str
    """The version that the sender follows (SemVer); a reader of the same major number understands it."""
    type: str
    """The name of the message; what a world adds to it is told apart by the body's `$type`."""
    body: Any
    """The message. Any: it is one of the protocol's types, or one that a plugin derived from them."""


_TAG_TEXT = "The name of a subclass whose fields are here, too; left out where it is just this."
_DROPPED = ("extras",)
"""Fields of a message on this side of the wire only."""


def names() -> tuple[str, ...]:
    """Return the names of all messages, sorted."""
    return tuple(sorted([*MESSAGES, Envelope.__name__]))


def message_schema(name: str) -> JsonSchema:
    """Return the schema of one message, complete in itself; UnknownNameError if the protocol has no such message."""
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
    """Return one document that holds the schema of every message in its `$defs`; it fits an envelope."""
    return message_schema(Envelope.__name__)


def to_json(schema: JsonSchema) -> str:
    """Return a schema as the text that is kept in files: keys in order, two spaces, one newline at the end."""
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
    """Drop the titles that pydantic makes of field names; they say nothing that the names don't."""
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
    """Hold a message whose `$type` names a subclass in the protocol to that subclass's schema."""
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
    """Return what the docstring below each field of a dataclass says, base classes included."""
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
