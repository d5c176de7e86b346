"""The OpenAPI document: FastAPI's routes and models, with the protocol's schemas for its messages."""

from __future__ import annotations

import json

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from wsap_core.protocol.values import JsonValue
from wsap_nexus.schemas import message_schema, names, without_titles
from wsap_nexus.server.bodies import responses

PREFIX = "/nexus"
"""The prefix of the wire API's paths; the document omits others, such as the dashboard's."""
_SCHEMAS = "#/components/schemas/"
DESCRIPTION = """\
The nexus, where agents are between worlds, as JSON over HTTP. An agent in any language registers, observes, acts,
enters worlds and leaves them. On this machine, reading public data needs no token; private data and changes do.

Every refusal has the form `ErrorAnswer` with a stable code; `retry` says whether the same request can succeed later:
wait 100 ms, double that each time up to 5 s, and give up after five retries. With an `Idempotency-Key`, a request takes
effect once.
"""


def install(app: FastAPI) -> None:
    """Make an application build its document once, at the first request for it."""

    def document() -> dict[str, JsonValue]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's documented way to replace the document


def _document(app: FastAPI) -> dict[str, JsonValue]:
    document: dict[str, JsonValue] = get_openapi(
        title=app.title, version=app.version, description=DESCRIPTION, routes=app.routes
    )
    document["paths"] = {path: found for path, found in document["paths"].items() if path.startswith(PREFIX)}
    components = document.setdefault("components", {}).setdefault("schemas", {})
    for model in (responses.ErrorAnswer, responses.ErrorShape):
        schema = model.model_json_schema(ref_template=_SCHEMAS + "{model}")
        schema.pop("$defs", None)
        components[model.__name__] = schema
    for operations in document["paths"].values():
        for operation in operations.values():
            _drop_undeclared(operation)
            _document_refusals(operation)
    components.pop("HTTPValidationError", None)
    components.pop("ValidationError", None)
    document = _linked(document, components)
    # `_linked` has added the schemas of messages to the components.
    schemas = {**components, **document["components"]["schemas"]}
    document["components"]["schemas"] = {key: without_titles(schemas[key]) for key in sorted(schemas)}
    return document


def _drop_undeclared(operation: dict[str, JsonValue]) -> None:
    # FastAPI documents a 200 with any content for a route that declares none.
    given = operation["responses"].get("200", {}).get("content", {}).get("application/json")
    if given is not None and not given.get("schema"):
        del operation["responses"]["200"]


def _document_refusals(operation: dict[str, JsonValue]) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    content = {"application/json": {"schema": {"$ref": _SCHEMAS + "ErrorAnswer"}}}
    responses["default"] = {"description": "A refusal or an error, with a stable code.", "content": content}


def _linked(node: JsonValue, components: dict[str, JsonValue]) -> JsonValue:
    # Replaces the marks of `responses.part` by references and adds their schemas to the components.
    if isinstance(node, list):
        return [_linked(item, components) for item in node]
    if not isinstance(node, dict):
        return node
    if responses.PART in node:
        _add(node[responses.PART], components)
        rest = {k: v for k, v in node.items() if k not in (responses.PART, "title")}
        return {"$ref": _SCHEMAS + node[responses.PART], **rest}
    return {k: _linked(v, components) for k, v in list(node.items())}


def _add(name: str, components: dict[str, JsonValue]) -> None:
    assert name in names()
    if name not in components:
        for key, schema in message_schema(name)["$defs"].items():
            components.setdefault(key, json.loads(json.dumps(schema).replace("#/$defs/", _SCHEMAS)))
