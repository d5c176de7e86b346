"""The OpenAPI document: routes and shapes as FastAPI finds them, messages of the protocol by their own schemas."""

from __future__ import annotations

import copy
import json
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from wsap_core.protocol.schema import message_schema, names
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.server import shapes

# Any, in this module: JSON Schema.

PREFIX = "/nexus"
"""What the wire API's paths begin with; the dashboard's are its own affair."""
VERSION = PROTOCOL_VERSION
"""The document's version."""
_SCHEMAS = "#/components/schemas/"
DESCRIPTION = """\
Where agents live between worlds, as JSON over HTTP. An agent in any language registers, looks at what it sees, acts,
enters worlds and leaves them. Reading needs no token on this machine alone; private things and changes do.

Every refusal has one form, `ErrorAnswer`, with a stable code; `retry` says whether the same request can succeed later:
wait 100 ms, double it each time up to 5 s, and give up after five tries. With an `Idempotency-Key`, nothing is
done twice.
"""


def install(app: FastAPI) -> None:
    """Have an app's document put together once, when it is first asked for."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's way to have a document of one's own


def to_text(document: dict[str, Any]) -> str:
    """Return a document as the text that is kept in `docs/reference/openapi.json`."""
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _document(app: FastAPI) -> dict[str, Any]:
    document: dict[str, Any] = get_openapi(
        title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes
    )
    document["paths"] = {path: found for path, found in document["paths"].items() if path.startswith(PREFIX)}
    components = document.setdefault("components", {}).setdefault("schemas", {})
    for model in (shapes.ErrorAnswer, shapes.ErrorShape):
        schema = model.model_json_schema(ref_template=_SCHEMAS + "{model}")
        schema.pop("$defs", None)
        components[model.__name__] = schema
    for operations in document["paths"].values():
        for operation in operations.values():
            _never_given(operation)
            _refusals(operation)
    components.pop("HTTPValidationError", None)
    components.pop("ValidationError", None)
    document = _linked(document, components)
    # Messages that were added on the way refer to each other, and hold no marks.
    schemas = {**components, **document["components"]["schemas"]}
    document["components"]["schemas"] = {key: _untitled(schemas[key]) for key in sorted(schemas)}
    return document


def _never_given(operation: dict[str, Any]) -> None:
    """Take out the 200 of anything at all that FastAPI adds where a route says nothing of one."""
    given = operation["responses"].get("200", {}).get("content", {}).get("application/json")
    if given is not None and not given.get("schema"):
        del operation["responses"]["200"]


def _refusals(operation: dict[str, Any]) -> None:
    """Say of an operation that it answers every refusal in the one form."""
    responses = operation["responses"]
    responses.pop("422", None)
    content = {"application/json": {"schema": {"$ref": _SCHEMAS + "ErrorAnswer"}}}
    responses["default"] = {"description": "A refusal, or an error, with its stable code.", "content": content}


def _linked(node: Any, components: dict[str, Any]) -> Any:
    """Put references where `shapes.part` left marks, and the schemas that they mean among the components."""
    if isinstance(node, list):
        return [_linked(item, components) for item in node]
    if not isinstance(node, dict):
        return node
    if shapes.PART in node:
        _add(node[shapes.PART], components)
        rest = {k: v for k, v in node.items() if k not in (shapes.PART, "title")}
        return {"$ref": _SCHEMAS + node[shapes.PART], **rest}
    return {k: _linked(v, components) for k, v in list(node.items())}


def _add(name: str, components: dict[str, Any]) -> None:
    assert name in names()  # a slip of the pen in this package
    if name not in components:
        for key, schema in message_schema(name)["$defs"].items():
            components.setdefault(key, _moved(copy.deepcopy(schema)))


def _moved(node: Any) -> Any:
    if isinstance(node, list):
        return [_moved(item) for item in node]
    if not isinstance(node, dict):
        return node
    moved = {k: _moved(v) for k, v in node.items()}
    if isinstance(reference := moved.get("$ref"), str):
        moved["$ref"] = reference.replace("#/$defs/", _SCHEMAS)
    return moved


def _untitled(node: Any) -> Any:
    """Drop the titles that pydantic makes of field names; they say nothing that the names don't."""
    if isinstance(node, list):
        return [_untitled(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {k: _untitled(v) for k, v in node.items() if not (k == "title" and isinstance(v, str))}
