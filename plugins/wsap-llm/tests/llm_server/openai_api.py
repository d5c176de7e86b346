"""OpenAI's API: `/v1/chat/completions` and `/v1/models`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from aiohttp import web

from llm_server.says import Plan, Say, encoded, plan, prompt_tokens

if TYPE_CHECKING:
    from llm_server.server import ModelServer

CREATED = 1_750_000_000
IDENTITY = "chatcmpl-0123456789"


def add_routes(app: web.Application, server: ModelServer) -> None:
    """Serve the API under `/v1`."""

    async def models(request: web.Request) -> web.StreamResponse:
        await server.receive(request)
        if refused := _unauthorized(request, server) or _loading(server):
            return refused
        rows = [
            {"id": name, "object": "model", "created": CREATED, "owned_by": "tests", "max_model_len": card.context}
            for name, card in server.models.items()
        ]
        return web.json_response({"object": "list", "data": rows})

    async def chat(request: web.Request) -> web.StreamResponse:
        body = await server.receive(request)
        refused = _unauthorized(request, server) or _refusal(body, server)
        if refused:
            return refused
        say = server.next_say(body)
        await server.before(say)
        if say.status != 200:
            kind = "server_error" if say.status >= 500 else "invalid_request_error"
            failed = error(say.status, say.error or "Something went wrong.", kind=kind, code=say.code)
            failed.headers.update(say.headers)
            return failed
        stop = body.get("stop") or []
        most = body.get("max_completion_tokens") or body.get("max_tokens")
        made = plan(say, body["messages"], stop=[stop] if isinstance(stop, str) else stop, most=most, think=True)
        if not body.get("stream") or say.unstreamed:
            if say.error_within:
                return web.json_response({"error": {"message": say.error_within, "code": 500}})
            return await server.send_whole(request, say, encoded(_dumps(whole(body["model"], say, made))))
        counted = bool((body.get("stream_options") or {}).get("include_usage"))
        values = [_dumps(value) for value in chunks(body["model"], say, made, counted=counted)]
        if say.half:
            values[-1 if not counted else -2] = values[2][: len(values[2]) // 2]
        if say.done:
            values.append("[DONE]")
        frames = [encoded(_framed(value, say.style)) for value in values]
        return await server.send_pieces(request, say, [say.raw] if say.raw else frames, "text/event-stream")

    async def completions(request: web.Request) -> web.StreamResponse:
        body = await server.receive(request)
        if server.complete is None:
            return error(404, "Not Found", kind="invalid_request_error", code=None)
        return web.json_response(server.complete(body))

    app.router.add_get("/v1/models", models)
    app.router.add_post("/v1/completions", completions)
    app.router.add_post("/v1/chat/completions", chat)


def whole(model: str, say: Say, made: Plan) -> dict[str, Any]:
    """Return a reply as one object."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(made.text), "refusal": None}
    if made.thinking:
        message["reasoning_content"] = "".join(made.thinking)
    if say.calls:
        message |= {"content": message["content"] or None, "tool_calls": calls(say)}
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": "tool_calls" if say.calls else made.finish,
        "stop_reason": made.stop,  # vLLM's
    }
    found = {"id": IDENTITY, "object": "chat.completion", "created": CREATED, "model": model, "choices": [choice]}
    return found | ({"usage": usage(made, say)} if say.usage else {})


def calls(say: Say) -> list[dict[str, Any]]:
    """Return function calls in the protocol's format."""
    return [
        {"id": f"abcdefgh{n}", "type": "function", "function": {"name": name, "arguments": _dumps(given)}}
        for n, (name, given) in enumerate(say.calls)
    ]


def chunks(model: str, say: Say, made: Plan, *, counted: bool) -> list[dict[str, Any]]:
    """Return a reply as the objects of a stream."""

    def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish, **more}
        base = {"id": IDENTITY, "object": "chat.completion.chunk", "created": CREATED, "model": model}
        return base | {"choices": [choice]} | ({"usage": None} if counted else {})

    found = [chunk({"role": "assistant", "content": ""})]
    found += [chunk({"reasoning_content": piece}) for piece in made.thinking]
    found += [chunk({"content": piece}) for piece in made.text]
    if say.error_within:
        return [*found[:2], {"error": {"message": say.error_within, "type": "server_error", "code": 500}}]
    for place, call in enumerate(calls(say)):
        arguments = call["function"]["arguments"]
        begun = call | {"index": place, "function": call["function"] | {"arguments": ""}}
        found.append(chunk({"tool_calls": [begun]}))
        for piece in (arguments[:5], arguments[5:]):
            found.append(chunk({"tool_calls": [{"index": place, "function": {"arguments": piece}}]}))
    if made.finish is not None:
        found.append(chunk({}, "tool_calls" if say.calls else made.finish, stop_reason=made.stop))
    if counted and say.usage:
        found.append({**chunk({}), "choices": [], "usage": usage(made, say)})
    return found


def usage(made: Plan, say: Say) -> dict[str, Any]:
    """Return the token counts."""
    total = made.prompt_tokens + made.completion_tokens
    return {
        "prompt_tokens": made.prompt_tokens,
        "completion_tokens": made.completion_tokens,
        "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": say.cached},
        "completion_tokens_details": {"reasoning_tokens": len(made.thinking)},
    }


def _loading(server: ModelServer) -> web.Response | None:
    if not server.loading:
        return None
    server.loading -= 1
    return error(503, "Loading model", kind="unavailable_error")


def error(
    status: int,
    message: str,
    *,
    kind: str = "invalid_request_error",
    code: str | None = None,
    param: str | None = None,
) -> web.Response:
    """Return an error in the protocol's format."""
    return web.json_response({"error": {"message": message, "type": kind, "param": param, "code": code}}, status=status)


def _unauthorized(request: web.Request, server: ModelServer) -> web.Response | None:
    if server.key is None:
        return None
    given = request.headers.get("Authorization", "")
    if not given:
        return error(401, "You didn't provide an API key.", code=None)
    if given != f"Bearer {server.key}":
        return error(401, f"Incorrect API key provided: {given.removeprefix('Bearer ')}.", code="invalid_api_key")
    return None


def _refusal(body: Any, server: ModelServer) -> web.Response | None:
    if not isinstance(body, dict):
        return error(400, "We could not parse the JSON body of your request.")
    if body.get("model") not in server.models:
        return error(404, f"The model `{body.get('model')}` does not exist.", code="model_not_found")
    if not isinstance(body.get("messages"), list) or not body["messages"]:
        return error(400, "Invalid 'messages': empty array.")
    if reason := _calls_fault(body):
        return error(400, reason)
    form = body.get("response_format") or {"type": "text"}
    if form.get("type") not in ("text", "json_object", "json_schema"):
        return error(400, f"Invalid value: '{form.get('type')}' for response_format.")
    if form["type"] == "json_schema" and not {"name", "schema"} <= form.get("json_schema", {}).keys():
        return error(400, "Missing required parameter: 'response_format.json_schema.name'.")
    card = server.models[body["model"]]
    if (refusal := card.refusal) is not None and (form["type"] != "text" or card.refusal.fields & body.keys()):
        kind = "server_error" if refusal.status >= 500 else "invalid_request_error"
        return error(refusal.status, refusal.words, kind=kind, code=refusal.code, param=refusal.param)
    if card.strict and form["type"] == "json_schema" and form["json_schema"].get("strict"):
        asked = form["json_schema"]
        reason = _not_strict(asked["schema"], ()) if asked["schema"].get("type") == "object" else _ROOT
        if reason is not None:
            words = f"Invalid schema for response_format '{asked['name']}': {reason}"
            return error(400, words, param="response_format")
    context = card.context
    most = body.get("max_completion_tokens") or body.get("max_tokens") or 0
    if prompt_tokens(body["messages"]) + most > context:
        return error(
            400,
            f"This model's maximum context length is {context} tokens. However, your messages resulted in "
            f"{prompt_tokens(body['messages'])} tokens.",
            code="context_length_exceeded",
        )
    return None


def _calls_fault(body: dict[str, Any]) -> str | None:
    """Return OpenAI's error for invalid functions or calls in the conversation; None if they are valid."""
    names = [tool["function"]["name"] for tool in body.get("tools") or ()]
    if wrong := next((name for name in names if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name)), None):
        return f"Invalid 'tools[0].function.name': {wrong!r} does not match pattern '^[a-zA-Z0-9_-]+$'."
    if "tool_choice" in body and not names:
        return "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
    waiting: list[str] = []
    for message in body["messages"]:
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in waiting:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return "An assistant message with 'tool_calls' must be followed by tool messages."
        else:
            waiting = [call["id"] for call in message.get("tool_calls") or ()]
    return None


_ROOT = "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"None\"'."
_TAKEN = {
    *("type", "properties", "required", "additionalProperties", "items", "minItems", "maxItems", "enum", "const"),
    *("anyOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "pattern", "format"),
    *("title", "description", "$ref", "$defs"),
}


def _not_strict(schema: dict[str, Any], where: tuple[str, ...]) -> str | None:
    """Return OpenAI's error for a schema outside its strict subset; None if it is inside."""
    for keyword in schema:
        if keyword not in _TAKEN:
            return f"In context={where}, '{keyword}' is not permitted."
    parts = {**schema.get("properties", {})}
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            return f"In context={where}, 'additionalProperties' is required to be supplied and to be false."
        if missing := [name for name in parts if name not in schema.get("required", ())]:
            return (
                f"In context={where}, 'required' is required to be supplied and to be an array including every key "
                f"in properties. Missing '{missing[0]}'."
            )
    elif "anyOf" not in schema and "type" not in schema:
        return f"In context={where}, schema must have a 'type' key."
    if schema.get("type") == "array":
        parts["items"] = schema.get("items") or {}
    parts |= {str(number): part for number, part in enumerate(schema.get("anyOf", ()))}
    found = (_not_strict(part, (*where, name)) for name, part in parts.items())
    return next((reason for reason in found if reason is not None), None)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _framed(value: str, style: str) -> str:
    if style == "lines" and value != "[DONE]":
        text = "".join(f"data: {line}\n" for line in json.dumps(json.loads(value), indent=1).splitlines()) + "\n"
    elif style == "bare":
        text = f"data:{value}\n\n"
    elif style == "comments":
        text = f": keep-alive\n\nevent: message\nid: 7\nretry: 10\ndata: {value}\n: more\n\n"
    else:
        text = f"data: {value}\n\n"
    if style == "crlf":
        return text.replace("\n", "\r\n")
    return text.replace("\n", "\r") if style == "cr" else text
