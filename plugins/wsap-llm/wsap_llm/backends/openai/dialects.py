"""Requests of OpenAI's chat completions: the differences between servers, as data, and request bodies."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from wsap_core.errors import ConfigError
from wsap_core.protocol.wire import dumps
from wsap_core.seams.model import CallConstraint, JsonConstraint, Message, RegexConstraint, Request, TextPart
from wsap_core.seams.model_errors import BadRequestError, ConstraintError
from wsap_llm.backends.gbnf import grammar_of
from wsap_llm.calling import declared, linked
from wsap_llm.schemas.strict_schema import strict_violation

# Any, in this module: JSON, as it goes over the wire.

Regex = Literal["structured_outputs", "guided_regex", "grammar"]
"""The field for a regular expression: vLLM since 0.11, and before; llama.cpp takes a grammar instead."""

Prefill = Literal["trailing", "continue_final_message"]
"""How a reply is prefilled: a trailing assistant message, or the same with vLLM's flags."""

Thinking = Literal["enable_thinking", "reasoning_effort"]
"""How thinking is switched: by an argument of the chat template (Qwen3 and others), or by OpenAI's effort."""


@dataclass(frozen=True)
class Dialect:
    """The variable parts of the protocol for one kind of server; None for fields that it does not support."""

    max_tokens: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    schema: Literal["json_schema", "json_object"] = "json_schema"
    """The kind of `response_format` that carries a JSON Schema."""
    strict_schema: bool = True
    """Whether requests set `strict` for a JSON Schema."""
    subset: bool = False
    """Whether it accepts only OpenAI's subset of JSON Schema (`wsap_llm.schemas.strict_schema`)."""
    regex: Regex | None = None
    prefill: Prefill | None = None
    thinking: Thinking | None = None
    calls: bool = False
    """Whether every model of the server supports function calls."""
    repeat_penalty: Literal["repetition_penalty", "repeat_penalty"] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields sent with every request (Any: JSON)."""


DIALECTS: Mapping[str, Dialect] = {
    # If a server refuses the field, later requests leave it out.
    "generic": Dialect(thinking="enable_thinking"),
    "openai": Dialect(max_tokens="max_completion_tokens", subset=True, thinking="reasoning_effort", calls=True),
    "vllm": Dialect(
        regex="structured_outputs",
        prefill="continue_final_message",
        thinking="enable_thinking",
        repeat_penalty="repetition_penalty",
    ),
    # llama.cpp's server accepts both forms, that of its Python package only this one.
    "llama.cpp": Dialect(
        schema="json_object",
        regex="grammar",
        prefill="trailing",
        thinking="enable_thinking",
        repeat_penalty="repeat_penalty",
    ),
}
"""Dialects by the value of the option `server`."""

GO_ON = "Your reply was interrupted. Go on exactly where it stops, without repeating any of it."
"""Asks a model to continue its last turn."""

OPENAI_HOSTS = ("api.openai.com", "openai.azure.com")
"""Hosts of OpenAI's models; regions and customers have subdomains of these."""


def dialect_name(host: str) -> str:
    """Return the default dialect of a host."""
    return "openai" if any(host == name or host.endswith(f".{name}") for name in OPENAI_HOSTS) else "generic"


# --- the body of a request ----------------------------------------------------------------------

LONGEST_LENGTH = 1500
"""Lengths of texts and lists from which llama.cpp, whose limit is 2,000 repetitions, gets a schema without them."""
_LENGTHS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_OWN = frozenset({"model", "messages", "stream", "stream_options"})
"""Fields that provider options can't override."""


def request_body(
    model: str,
    request: Request,
    dialect: Dialect,
    *,
    images: bool,
    stream: bool,
    options: Mapping[str, Any],
    reserve: int = 0,
    left_out: Collection[str] = (),
) -> dict[str, Any]:
    """Return the body of a request to `/chat/completions`; without `images`, pictures are replaced by words.

    `reserve` is the number of tokens added for thinking; `left_out` names fields to omit. Raises ConstraintError if the
    server does not support the constraint, BadRequestError if it does not support prefill, and ConfigError if an option
    would override a field of the request.
    """
    sampling = request.sampling
    body: dict[str, Any] = {"model": model, "messages": _messages(request, images)}
    settings = [
        (dialect.max_tokens, sampling.max_tokens and sampling.max_tokens + reserve),
        ("temperature", sampling.temperature),
        ("top_p", sampling.top_p),
        ("seed", sampling.seed),
        (dialect.repeat_penalty, sampling.repeat_penalty),
        ("stop", list(request.stop) or None),
    ]
    body |= {name: value for name, value in settings if name is not None and value is not None}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    _constrain(body, request, dialect)
    _prefill(body, request, dialect)
    _thinking(body, request, dialect)
    body = {name: value for name, value in body.items() if name not in left_out}
    for more in (dialect.extra, options):
        if taken := sorted(_OWN & more.keys()):
            raise ConfigError(f"The option {taken[0]!r} of the backend openai is set by the request itself.")
        body.update(more)
    return body


def request_bytes(
    model: str, request: Request, dialect: Dialect, *, images: bool, options: Mapping[str, Any], **more: Any
) -> bytes:
    """Return the encoded body of a request; arguments and errors as for `request_body`."""
    if isinstance(request.constraint, CallConstraint):
        return _json(request_body(model, request, dialect, images=images, options=options, **more)).encode(
            "utf-8", "replace"
        )
    body = request_body(model, replace(request, messages=()), dialect, images=images, options=options, **more)
    texts = [_message_text(message, images=images) for message in request.messages]
    texts += map(_json, body.pop("messages"))
    form = ""
    if isinstance(request.constraint, JsonConstraint) and "response_format" not in {**dialect.extra, **options}:
        form = f',"response_format":{_form_text(request.constraint, body.pop("response_format"))}'
    return f'{_json(body)[:-1]}{form},"messages":[{",".join(texts)}]}}'.encode("utf-8", "replace")


def without_system(messages: Sequence[Message]) -> Sequence[Message]:
    """Return messages for a server without system messages: their text is put before the first user message."""
    told = "\n\n".join(m.text() for m in messages if m.role == "system")
    rest = [m for m in messages if m.role != "system"]
    if not told or not rest or rest[0].role != "user":
        return [Message("user", told), *rest] if told else rest
    first = rest[0].content
    content = f"{told}\n\n{first}" if isinstance(first, str) else (TextPart(f"{told}\n\n"), *first)
    return [Message("user", content), *rest[1:]]


def without_prefill(request: Request) -> Request:
    """Return a request for a server that does not continue a reply: what is to be continued is a turn of its own, and a
    message asks to go on."""
    if not request.prefill:
        return request
    turns = (Message("assistant", request.prefill), Message("user", GO_ON))
    return replace(request, prefill="", messages=(*request.messages, *turns))


def _form_text(constraint: JsonConstraint, form: Mapping[str, Any]) -> str:
    # Cached on the constraint, which is the same object as long as the legal actions are the same.
    key = f"_form_{form.get('json_schema', {}).get('strict')}"
    known: str | None = constraint.__dict__.get(key)
    if known is None:
        known = _json(form)
        object.__setattr__(constraint, key, known)
    return known


def _message_text(message: Message, *, images: bool) -> str:
    content = message.content
    if isinstance(content, str) and content.isascii() and message.role != "observation" and not message.calls:
        # The cached canonical JSON of the message is valid here; most messages are sent many times.
        return dumps(message)
    return _json(_message(message, images=images))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _message(message: Message, *, images: bool) -> dict[str, Any]:
    role = "user" if message.role == "observation" else message.role
    if isinstance(message.content, str) or message.calls or not images:
        return {"role": role, "content": message.text()}
    parts = [
        {"type": "text", "text": part.text}
        if isinstance(part, TextPart)
        else {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.base64}"}}
        for part in message.content
    ]
    return {"role": role, "content": parts}


def _messages(request: Request, images: bool) -> list[dict[str, Any]]:
    if not isinstance(request.constraint, CallConstraint):
        return [_message(message, images=images) for message in request.messages]
    made: list[dict[str, Any]] = []
    for message, call, identity in linked(request.messages):
        if call is not None:
            function = {"name": call.name, "arguments": _json(call.arguments)}
            calls = [{"id": identity, "type": "function", "function": function}]
            made.append({"role": "assistant", "content": message.content, "tool_calls": calls})
            continue
        plain = _message(message, images=images)
        if identity:  # the answer to a call can only be text
            told = plain["content"] if isinstance(plain["content"], str) else "It was done."
            made.append({"role": "tool", "tool_call_id": identity, "content": told})
        if not identity or not isinstance(plain["content"], str):
            made.append(plain)
    return made


def _constrain(body: dict[str, Any], request: Request, dialect: Dialect) -> None:
    constraint = request.constraint
    if constraint is None:
        return
    if isinstance(constraint, JsonConstraint):
        if dialect.subset and (reason := strict_violation(constraint.schema)) is not None:
            raise ConstraintError(f"OpenAI's strict mode does not support this schema. {reason}")
        if dialect.schema == "json_object":
            body["response_format"] = {"type": "json_object", "schema": _without_long(dict(constraint.schema))}
            return
        name = re.sub(r"[^A-Za-z0-9_-]", "_", constraint.name)[:64] or "reply"
        schema = {"name": name, "schema": dict(constraint.schema), "strict": dialect.strict_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif isinstance(constraint, CallConstraint):
        body |= {"tools": [declared(function) for function in constraint.functions], "tool_choice": "required"}
        body["parallel_tool_calls"] = False
    elif not isinstance(constraint, RegexConstraint):
        raise ConstraintError("This backend does not support this kind of constraint.")
    elif dialect.regex == "structured_outputs":
        body["structured_outputs"] = {"regex": constraint.pattern}
    elif dialect.regex == "guided_regex":
        body["guided_regex"] = constraint.pattern
    elif dialect.regex == "grammar":
        try:
            body["grammar"] = grammar_of(constraint.pattern)
        except ValueError as error:
            raise ConstraintError(f"llama.cpp can't constrain replies by this regular expression: {error}") from error
    else:
        raise ConstraintError(
            "This server can't constrain replies by regular expression; for vLLM or llama.cpp, set the option server."
        )


def _without_long(schema: Any) -> Any:
    """Return a schema without the lengths that llama.cpp does not accept; who reads the reply checks them."""
    if isinstance(schema, Mapping):
        return {
            key: _without_long(value)
            for key, value in schema.items()
            if key not in _LENGTHS or not isinstance(value, int) or value < LONGEST_LENGTH
        }
    return [_without_long(value) for value in schema] if isinstance(schema, list | tuple) else schema


def _prefill(body: dict[str, Any], request: Request, dialect: Dialect) -> None:
    if not request.prefill:
        return
    if dialect.prefill is None:
        raise BadRequestError(
            "This server can't continue a prefilled reply; if it is vLLM or llama.cpp, set the option server."
        )
    body["messages"].append({"role": "assistant", "content": request.prefill})
    if dialect.prefill == "continue_final_message":
        body |= {"continue_final_message": True, "add_generation_prompt": False}


def _thinking(body: dict[str, Any], request: Request, dialect: Dialect) -> None:
    if request.thinking is None or dialect.thinking is None:
        return
    if dialect.thinking == "enable_thinking":
        body["chat_template_kwargs"] = {"enable_thinking": request.thinking}
    else:
        body["reasoning_effort"] = "medium" if request.thinking else "none"
