"""Ollama's API: `/api/chat`, `/api/generate`, `/api/tags`, `/api/show`, `/api/version`."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from aiohttp import web

from llm_server.says import Card, Plan, Say, encoded, plan

if TYPE_CHECKING:
    from llm_server.server import ModelServer

CREATED = "2025-06-15T15:06:40.123456789Z"


def add_routes(app: web.Application, server: ModelServer) -> None:
    """Serve the API under `/api`."""

    async def root(request: web.Request) -> web.Response:
        return web.Response(text="Ollama is running")

    async def version(request: web.Request) -> web.Response:
        await server.receive(request)
        return web.json_response({"version": "0.12.6"})

    async def tags(request: web.Request) -> web.Response:
        await server.receive(request)
        return web.json_response({"models": [_tag(name, card) for name, card in server.models.items()]})

    async def show(request: web.Request) -> web.Response:
        body = await server.receive(request)
        card = server.models.get(_full(body.get("model") or body.get("name"))) if isinstance(body, dict) else None
        if card is None:
            return _error(404, f"model '{body.get('model')}' not found")
        information = {
            "general.architecture": card.family,
            "general.parameter_count": 8_190_735_360,
            f"{card.family}.context_length": card.context,
            f"{card.family}.embedding_length": 4096,
            f"{card.family}.block_count": 36,
            f"{card.family}.attention.head_count": 32,
            f"{card.family}.attention.head_count_kv": 8,
            f"{card.family}.attention.key_length": 128,
            f"{card.family}.attention.value_length": 128,
        }
        found = {"modelfile": "FROM model", "template": "{{ .Prompt }}", "details": _details(card)}
        return web.json_response(
            found | {"model_info": information, "capabilities": list(card.capabilities), "modified_at": CREATED}
        )

    async def chat(request: web.Request) -> web.StreamResponse:
        return await _answer(request, server, chat=True)

    async def generate(request: web.Request) -> web.StreamResponse:
        return await _answer(request, server, chat=False)

    app.router.add_get("/", root)
    app.router.add_get("/api/version", version)
    app.router.add_get("/api/tags", tags)
    app.router.add_post("/api/show", show)
    app.router.add_post("/api/chat", chat)
    app.router.add_post("/api/generate", generate)


async def _answer(request: web.Request, server: ModelServer, *, chat: bool) -> web.StreamResponse:
    body = await server.receive(request)
    refused = _refusal(body, server)
    if refused:
        return refused
    card = server.models[_full(body["model"])]
    messages = body.get("messages") or [] if chat else [{"content": body["prompt"]}] if body.get("prompt") else []
    if not messages:
        return web.json_response(
            {"model": body["model"], "created_at": CREATED, "done": True, "done_reason": "load"}
            | ({"message": {"role": "assistant", "content": ""}} if chat else {"response": ""})
        )
    say = server.next_say(body)
    await server.before(say)
    if say.status != 200:
        failed = _error(say.status, say.error or "something went wrong")
        failed.headers.update(say.headers)
        return failed
    options = body.get("options") or {}
    think = "thinking" in card.capabilities and body.get("think") is not False
    most = options.get("num_predict")
    made = plan(say, messages, stop=options.get("stop") or [], most=most if most != -1 else None, think=think)
    if body.get("stream") is False:
        if say.error_within:
            return _error(500, say.error_within)
        return await server.send_whole(request, say, encoded(_dumps(_whole(body["model"], say, made, chat=chat))))
    values = [_dumps(value) for value in _parts(body["model"], say, made, chat=chat)]
    if say.half:
        values[-1] = values[-1][: len(values[-1]) // 2]
    pieces = [encoded(value + "\n") for value in values]
    return await server.send_pieces(request, say, [say.raw] if say.raw else pieces, "application/x-ndjson")


def _parts(model: str, say: Say, made: Plan, *, chat: bool) -> list[dict[str, Any]]:
    base = {"model": model, "created_at": CREATED}

    def part(text: str, thinking: str = "") -> dict[str, Any]:
        more = {"thinking": thinking} if thinking else {}
        if chat:
            return base | {"message": {"role": "assistant", "content": text, **more}, "done": False}
        return base | {"response": text, **more, "done": False}

    found = [part("", piece) for piece in made.thinking] + [part(piece) for piece in made.text]
    if say.error_within:
        return [*found[:1], {"error": say.error_within}]
    if say.calls:
        found.append(base | {"message": {"role": "assistant", "content": "", **_calls(say)}, "done": False})
    if say.done:
        found.append(part("") | {"done": True} | _end(say, made))
    return found


def _whole(model: str, say: Say, made: Plan, *, chat: bool) -> dict[str, Any]:
    more = {"thinking": "".join(made.thinking)} if made.thinking else {}
    more |= _calls(say)
    base = {"model": model, "created_at": CREATED}
    text = "".join(made.text)
    said = {"message": {"role": "assistant", "content": text, **more}} if chat else {"response": text, **more}
    return base | said | ({"done": True} | _end(say, made) if say.done else {"done": False})


def _calls(say: Say) -> dict[str, Any]:
    calls = [{"function": {"name": name, "arguments": dict(given)}} for name, given in say.calls]
    return {"tool_calls": calls} if calls else {}


def _end(say: Say, made: Plan) -> dict[str, Any]:
    """Durations are in nanoseconds."""
    counts = {"prompt_eval_count": made.prompt_tokens, "eval_count": made.completion_tokens} if say.usage else {}
    found: dict[str, Any] = {} if made.finish is None else {"done_reason": made.finish}
    times = {"total_duration": 5_000_000, "load_duration": 1_000_000}
    return found | times | counts | {"prompt_eval_duration": 1_000_000, "eval_duration": 3_000_000}


def _refusal(body: Any, server: ModelServer) -> web.Response | None:
    if not isinstance(body, dict):
        return _error(400, "invalid character in the request's body")
    if not body.get("model"):
        return _error(400, "model is required")
    card = server.models.get(_full(body["model"]))
    if card is None:
        return _error(404, f"model '{body['model']}' not found")
    if body.get("think") and "thinking" not in card.capabilities:
        return _error(400, f'"{body["model"]}" does not support thinking')
    if body.get("tools") and "tools" not in card.capabilities:
        return _error(400, f"registry.ollama.ai/library/{body['model']} does not support tools")
    form = body.get("format")
    if form is not None and form not in ("", "json") and not isinstance(form, dict):
        return _error(400, f'invalid format: {json.dumps(form)}; expected "json" or a valid JSON Schema object')
    if form and card.refusal is not None:
        if card.refusal.within and body.get("stream") is not False:
            line = _dumps({"error": card.refusal.words}) + "\n"
            return web.Response(text=line, content_type="application/x-ndjson")
        return _error(card.refusal.status, card.refusal.words)
    return None


def _full(name: Any) -> str:
    """Resolve a name without tag to the tag `latest`."""
    return str(name) if ":" in str(name) else f"{name}:latest"


def _tag(name: str, card: Card) -> dict[str, Any]:
    digest = hashlib.sha256(name.encode()).hexdigest()
    base = {"name": name, "model": name, "modified_at": "2025-06-15T15:06:40.123456+02:00", "size": 5_225_388_164}
    return base | {"digest": digest, "details": _details(card)}


def _details(card: Card) -> dict[str, Any]:
    return {
        "parent_model": "",
        "format": "gguf",
        "family": card.family,
        "families": [card.family],
        "parameter_size": card.parameters,
        "quantization_level": card.quantization,
    }


def _error(status: int, words: str) -> web.Response:
    return web.json_response({"error": words}, status=status)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
