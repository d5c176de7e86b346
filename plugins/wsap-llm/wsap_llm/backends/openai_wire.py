"""Requests and replies of OpenAI's chat completions, as data: nothing here does any input or output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from wsap_core.errors import ConfigError
from wsap_core.protocol.wire import dumps
from wsap_core.seams.agent import Usage
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import (
    Chunk,
    Finish,
    FinishReason,
    JsonConstraint,
    Message,
    Request,
    TextChunk,
    TextPart,
    ThinkingChunk,
)
from wsap_core.seams.model_errors import BadRequestError, ConstraintError, ServerFailedError
from wsap_llm.backends.deltas import Deltas
from wsap_llm.backends.dialects import Dialect
from wsap_llm.backends.failures import Asked, error_in_stream
from wsap_llm.strict_schema import strict_violation
from wsap_llm.thinking import ThinkSplitter
from wsap_llm.tokens import estimate_request

# Any, in this module: JSON, as it goes over the wire.

_REASONS: Mapping[str, FinishReason] = {
    "stop": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop_sequence",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}

_OWN = frozenset({"model", "messages", "stream", "stream_options"})
"""Fields that provider options can't take the place of."""


def request_body(
    model: str,
    request: Request,
    dialect: Dialect,
    *,
    images: bool,
    stream: bool,
    options: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the body of a request to `/chat/completions`.

    Args:
        model: the model's name at the server.
        request: what is asked.
        dialect: what kind of server it goes to.
        images: whether pictures are sent; else what they show.
        stream: whether the reply is to come in pieces.
        options: provider options, put in as they are.

    Raises:
        ConstraintError: the server can't be asked for such a constraint.
        BadRequestError: the server can't go on with a begun reply.
        ConfigError: an option would take the place of what the request itself says.
    """
    sampling = request.sampling
    body: dict[str, Any] = {"model": model, "messages": [_message(m, images=images) for m in request.messages]}
    settings = [
        (dialect.max_tokens, sampling.max_tokens),
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
    for more in (dialect.extra, options):
        if taken := sorted(_OWN & more.keys()):
            raise ConfigError(f"The option {taken[0]!r} of the backend openai is set by the request itself.")
        body.update(more)
    return body


def request_bytes(
    model: str, request: Request, dialect: Dialect, *, images: bool, stream: bool, options: Mapping[str, Any]
) -> bytes:
    """Return the body of a request as it is sent; takes and raises what `request_body` does."""
    body = request_body(model, replace(request, messages=()), dialect, images=images, stream=stream, options=options)
    texts = [_message_text(message, images=images) for message in request.messages]
    texts += map(_json, body.pop("messages"))
    form = ""
    if isinstance(request.constraint, JsonConstraint) and "response_format" not in {**dialect.extra, **options}:
        form = f',"response_format":{_form_text(request.constraint, body.pop("response_format"))}'
    return f'{_json(body)[:-1]}{form},"messages":[{",".join(texts)}]}}'.encode("utf-8", "replace")


def _form_text(constraint: JsonConstraint, form: Mapping[str, Any]) -> str:
    # Kept with the constraint, which is the same object as long as the same is legal.
    key = f"_form_{form['json_schema']['strict']}"
    known: str | None = constraint.__dict__.get(key)
    if known is None:
        known = _json(form)
        object.__setattr__(constraint, key, known)
    return known


def _message_text(message: Message, *, images: bool) -> str:
    content = message.content
    if isinstance(content, str) and content.isascii() and message.role != "observation":
        # Its canonical JSON is what belongs here, and is kept with it: most messages are sent many times.
        return dumps(message)
    return _json(_message(message, images=images))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _message(message: Message, *, images: bool) -> dict[str, Any]:
    role = "user" if message.role == "observation" else message.role
    if isinstance(message.content, str) or not images:
        return {"role": role, "content": message.text()}
    parts = [
        {"type": "text", "text": part.text}
        if isinstance(part, TextPart)
        else {"type": "image_url", "image_url": {"url": f"data:{part.media_type};base64,{part.base64}"}}
        for part in message.content
    ]
    return {"role": role, "content": parts}


def _constrain(body: dict[str, Any], request: Request, dialect: Dialect) -> None:
    constraint = request.constraint
    if constraint is None:
        return
    if isinstance(constraint, JsonConstraint):
        if dialect.subset and (reason := strict_violation(constraint.schema)) is not None:
            raise ConstraintError(f"OpenAI's strict mode can't bind a reply to this schema. {reason}")
        name = re.sub(r"[^A-Za-z0-9_-]", "_", constraint.name)[:64] or "reply"
        schema = {"name": name, "schema": dict(constraint.schema), "strict": dialect.strict_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif dialect.regex == "structured_outputs":
        body["structured_outputs"] = {"regex": constraint.pattern}
    elif dialect.regex == "guided_regex":
        body["guided_regex"] = constraint.pattern
    else:
        raise ConstraintError(
            "This server can't be asked for replies by regular expression; if it is vLLM, set the option server=vllm."
        )


def _prefill(body: dict[str, Any], request: Request, dialect: Dialect) -> None:
    if not request.prefill:
        return
    if dialect.prefill is None:
        raise BadRequestError(
            "This server can't be asked to go on with a begun reply; if it is vLLM or llama.cpp, say so with the "
            "option server."
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


class ReplyReader:
    """Makes chunks of what a server sends, whole or in pieces.

    Args:
        request: what was asked; for the tokens of servers that don't count them.
        asked: for messages.
        opened: the chat template begins the reply inside a `<think>` block.
    """

    def __init__(self, request: Request, asked: Asked, *, opened: bool = False) -> None:
        self._request = request
        self._asked = asked
        self._splitter = ThinkSplitter(opened=opened)
        self._reason: str | None = None
        self._stop: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self._said: list[str] = []  # a piece is about a token, where the server doesn't count them
        self._deltas = Deltas()
        self.done = False
        """Whether the server has said that this was all."""

    def whole(self, body: bytes) -> Iterator[Chunk]:
        """Give the chunks of a reply that came in one.

        Raises:
            ServerFailedError: it can't be read.
            BackendError: it reports an error.
        """
        choice = self._choice(self._parsed(body))
        if choice is None:
            raise ServerFailedError(f"{self._asked.place} answered without a reply in it.")
        yield from self._take(choice.get("message"), choice)
        self.done = True
        yield from self.close()

    def event(self, data: str) -> Iterator[Chunk]:
        """Give the chunks of one event of a stream; raises what `whole` does."""
        if data.strip() == "[DONE]":
            self.done = True
            return
        text = self._deltas.text(data)
        if text is not None:
            yield from self._say(text)
            return
        found = self._parsed(data)
        self._deltas.learn(data, found)
        choice = self._choice(found)
        if choice is not None:
            yield from self._take(choice.get("delta"), choice)

    def events(self, several: Iterable[str]) -> list[Chunk]:
        """Return the chunks of several events of a stream, neighbours of a kind joined; raises what `whole` does."""
        chunks: list[Chunk] = []
        texts: list[str] = []
        for data in several:
            text = self._deltas.text(data) if self._splitter.saying else None
            if text is not None:
                self._said.append(text)
                texts.append(text)
                continue
            for chunk in self.event(data):
                if isinstance(chunk, TextChunk):
                    texts.append(chunk.text)
                    continue
                if texts:
                    chunks.append(TextChunk("".join(texts)))
                    texts.clear()
                chunks.append(chunk)
            if self.done:
                break
        if texts:
            chunks.append(TextChunk("".join(texts)))
        return chunks

    def close(self) -> Iterator[Chunk]:
        """Give what was kept back, and the finish.

        Raises:
            ServerFailedError: the stream ended before the reply did.
        """
        if not self.done and self._reason is None:
            raise ServerFailedError(f"{self._asked.place} broke off in the middle of a reply of {self._asked.model}.")
        yield from self._splitter.close()
        reason: FinishReason = (
            "stop_sequence" if self._stop is not None else _REASONS.get(self._reason or "", "unknown")
        )
        yield Finish(reason, self._stop, self._counted())

    def _parsed(self, body: bytes | str) -> Mapping[str, Any]:
        try:
            # Decoded here, because json guesses an encoding from bytes.
            found = json.loads(body.decode() if isinstance(body, bytes) else body)
        except (ValueError, RecursionError) as error:
            what = "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else "broken JSON"
            raise ServerFailedError(f"{self._asked.place} answered for {self._asked.model} with {what}.") from error
        if not isinstance(found, dict):
            raise ServerFailedError(f"{self._asked.place} answered with JSON that is no object.")
        if found.get("error"):
            raise error_in_stream(found["error"], self._asked)
        return found

    def _choice(self, found: Mapping[str, Any]) -> Mapping[str, Any] | None:
        usage = found.get("usage")
        if isinstance(usage, dict):
            self._usage = usage
        choices = found.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return None
        return choices[0]

    def _take(self, message: Any, choice: Mapping[str, Any]) -> Iterator[Chunk]:
        if isinstance(message, dict):
            thought = message.get("reasoning_content") or message.get("reasoning")
            if isinstance(thought, str) and thought:
                self._said.append(thought)
                yield ThinkingChunk(thought)
            text = message.get("content")
            if not text and isinstance(message.get("refusal"), str):
                text = message["refusal"]
            if isinstance(text, str) and text:
                yield from self._say(text)
        if isinstance(choice.get("finish_reason"), str):
            self._reason = choice["finish_reason"]
        # vLLM tells which stop text it was.
        if isinstance(choice.get("stop_reason"), str) and choice["stop_reason"] in self._request.stop:
            self._stop = choice["stop_reason"]

    def _say(self, text: str) -> Iterator[Chunk]:
        self._said.append(text)
        return self._splitter.feed(text)

    def _counted(self) -> Usage:
        """Return the usage as the server counts, or as it can be estimated; never nothing."""
        usage = self._usage or {}
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if not isinstance(prompt, int):
            prompt = estimate_request(self._request)
        if not isinstance(completion, int):
            completion = sum(map(estimate_tokens, self._said))
        cost = usage.get("cost")  # OpenRouter's, in US dollars
        return Usage(1, prompt, completion, float(cost) if isinstance(cost, int | float) else None)
