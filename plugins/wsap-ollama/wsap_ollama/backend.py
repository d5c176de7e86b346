"""The backend `ollama/<model>` for models of a local Ollama server, by its own API.

Its requests differ from OpenAI's, so that the context, the penalty for repetition and the thinking can be set; the
connection, the reading of replies and the handling of failures are those of every server.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from wsap_core.errors import ConfigError
from wsap_core.seams.context import Context
from wsap_core.seams.model import (
    Abilities,
    CallConstraint,
    ChooseConstraint,
    ImagePart,
    JsonConstraint,
    Message,
    OnText,
    RegexConstraint,
    Reply,
    Request,
)
from wsap_core.seams.model_errors import BadRequestError, ConstraintError, ContextTooSmallError, ServerFailedError
from wsap_llm.kit import Advice, LineReader, ReplyReader, ServerClient, declared, estimate_request, linked
from wsap_ollama.options import OllamaOptions, options_of

# Any, in this module: JSON, as it goes over the wire.

CLOUD = ("-cloud", ":cloud")
"""Endings of the names of models in Ollama's cloud."""

ADVICE = Advice(
    absent="Ollama does not answer at {place}; start it with: ollama serve",
    no_model="{place} is not an Ollama server, or has no model {name}",
    not_pulled="{name} is not pulled at {place}; get it with: ollama pull {name}",
    address="OLLAMA_HOST",
)


@dataclass(frozen=True)
class ModelCard:
    """Ollama's information about a model."""

    capabilities: tuple[str, ...] = ()
    """ "completion", "tools", "thinking", "vision" and others."""
    context: int | None = None
    """The model's context window in tokens."""
    context_bytes: int | None = None
    """Bytes of memory per token of context, if known."""


class OllamaReader(ReplyReader):
    """Reads Ollama's answers, one or in lines, as those of OpenAI's chat completions."""

    @override
    def event(self, data: str) -> None:
        found = self._parsed(data)
        choice = self._choice(found)
        if choice is not None:
            self._take(choice["delta"], choice)
        self.done = self.done or found.get("done") is True

    @override
    def _parsed(self, body: bytes | str) -> Mapping[str, Any]:
        found = super()._parsed(body)
        message = found.get("message")
        if not isinstance(message, dict):
            return found
        said = {**message, "reasoning_content": message.get("thinking")}
        counted = {"prompt_tokens": "prompt_eval_count", "completion_tokens": "eval_count"}
        usage = {name: found[own] for name, own in counted.items() if found.get(own) is not None}
        choice = {"delta": said, "message": said, "finish_reason": found.get("done_reason")}
        return {**found, "choices": [choice], "usage": usage}


class OllamaBackend(ServerClient[OllamaOptions]):
    """A model of a local Ollama server, by Ollama's name, such as `qwen3:8b`."""

    protocol = "ollama"
    path = "api/chat"
    events = LineReader
    reader = OllamaReader
    advice = ADVICE

    def __init__(self, name: str, options: OllamaOptions | None = None) -> None:
        super().__init__(name, options or OllamaOptions())
        self._card: ModelCard | None = None

    @property
    def abilities(self) -> Abilities:
        """The abilities of Ollama, and after `prepare` or the first request those of the model."""
        card = self._card or ModelCard()
        return Abilities(
            # Ollama's cloud accepts a schema but does not apply it (ollama/ollama#12362).
            json_schema=not self._name.endswith(CLOUD),
            calls="tools" in card.capabilities,
            prefill=True,
            images=self._sees(),
            thinking="thinking" in card.capabilities,
            context=min(self.options.num_ctx, card.context or self.options.num_ctx),
        )

    def _sees(self) -> bool | None:
        """Return whether the model sees; None if the server is too old to list capabilities."""
        if self._card is None or self._card.capabilities:
            return self._card is not None and "vision" in self._card.capabilities
        return None

    async def prepare(self) -> ModelCard:
        """Return Ollama's information about the model, fetched once.

        Raises:
            NoServerError: Ollama does not answer.
            ModelNotFoundError: the model is not pulled.
        """
        if self._card is None:
            self._card = await self.card(self._name)
        return self._card

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply, streamed as the option `stream` of the backend or the request says; see `Backend`."""
        await self.prepare()
        return (await self._reply(request, on_text))[0]

    # --- what the server has -------------------------------------------------------------------

    async def card(self, name: str) -> ModelCard:
        """Return Ollama's information about a model; BackendError if it can't be had."""
        return card_of(await self._json("api/show", {"model": name}))

    async def models(self) -> list[dict[str, Any]]:
        """Return the entries of the list of pulled models; BackendError if it can't be had."""
        rows = (await self._json("api/tags")).get("models")
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []

    async def _json(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        content = await self._fetched(path, None if body is None else _encoded(body))
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise ServerFailedError(f"{self.options.place}/{path} did not answer with a JSON object.")
        return found

    # --- requests ----------------------------------------------------------------------------

    @override
    def _body(self, request: Request, given: Mapping[str, Any], *, stream: bool) -> bytes:
        if isinstance(request.constraint, RegexConstraint | ChooseConstraint):
            raise ConstraintError("Ollama constrains replies only by JSON Schema or to function calls.")
        card = self._card or ModelCard()
        functions = request.constraint.functions if isinstance(request.constraint, CallConstraint) else ()
        think = self._think(request, card)
        reserve = self.options.think_tokens if think is not False and "thinking" in card.capabilities else 0
        self._check_fit(request)
        messages = list(_messages(request, images=self._sees() is not False))
        if request.prefill:
            messages.append({"role": "assistant", "content": request.prefill})
        sampling = request.sampling
        penalty = self.options.repeat_penalty if sampling.repeat_penalty is None else sampling.repeat_penalty
        settings = {
            "num_predict": None if sampling.max_tokens is None else sampling.max_tokens + reserve,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "repeat_penalty": penalty,
            "num_ctx": self.options.num_ctx + reserve,
            "seed": sampling.seed,
            "stop": list(request.stop) or None,
        }
        chosen = {name: value for name, value in settings.items() if value is not None}
        body = {
            "model": self._name,
            "stream": stream,
            "messages": messages,
            "think": think,
            "tools": [declared(function) for function in functions],
            "format": dict(request.constraint.schema) if isinstance(request.constraint, JsonConstraint) else None,
            "options": {**chosen, **self.options.extra, **given},
            "keep_alive": self.options.keep_alive,
        }
        return _encoded({name: value for name, value in body.items() if value is not None})

    def _think(self, request: Request, card: ModelCard) -> bool | None:
        """Return the parameter `think`; None for a model without thinking, for which it would be an error."""
        if "thinking" not in card.capabilities:
            return None
        return self.options.think if request.thinking is None else request.thinking

    def _check_fit(self, request: Request) -> None:
        context = self.abilities.context or self.options.num_ctx
        prompt, reply = estimate_request(request), request.sampling.max_tokens or 0
        if prompt + reply > context:
            raise ContextTooSmallError(
                f"The prompt of about {prompt} tokens and {reply} for the reply exceed the context of {context} that "
                f"{self.model} runs with; Ollama would silently cut off the beginning of the prompt. Give it "
                f"more with --model-option num_ctx={_next_size(prompt + reply)}, or shorten the prompts."
            )


def _next_size(tokens: int) -> int:
    """Return the usual size of a context that holds so many tokens."""
    return int(2 ** max(12, (tokens - 1).bit_length()))


def _encoded(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _messages(request: Request, *, images: bool) -> Iterator[dict[str, Any]]:
    if not isinstance(request.constraint, CallConstraint):
        yield from (_message(message, images=images) for message in request.messages)
        return
    for message, call, identity in linked(request.messages):
        made = _message(message, images=images)
        if call is not None:
            given = call.arguments if isinstance(call.arguments, Mapping) else {}  # Ollama takes nothing else
            function = {"name": call.name, "arguments": given}
            yield made | {"content": message.content, "tool_calls": [{"function": function}]}
        else:
            yield made | {"role": "tool"} if identity else made


def _message(message: Message, *, images: bool) -> dict[str, Any]:
    role = "user" if message.role == "observation" else message.role
    if isinstance(message.content, str) or not images:
        return {"role": role, "content": message.text()}
    text = "".join("" if isinstance(part, ImagePart) else part.text for part in message.content)
    pictures = [_checked(part) for part in message.content if isinstance(part, ImagePart)]
    return {"role": role, "content": text, "images": pictures}


def _checked(part: ImagePart) -> str:
    try:
        base64.b64decode(part.base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequestError("A picture in the request is not base64.") from error
    return part.base64


def card_of(shown: Mapping[str, Any]) -> ModelCard:
    """Return the card from the answer of `/api/show`."""
    information, capabilities = shown.get("model_info"), shown.get("capabilities")
    known = information if isinstance(information, dict) else {}
    lengths = [v for k, v in known.items() if k.endswith(".context_length") and isinstance(v, int)]
    able = tuple(map(str, capabilities)) if isinstance(capabilities, list) else ()
    return ModelCard(able, lengths[0] if lengths else None, _context_bytes(known))


def _context_bytes(information: Mapping[str, Any]) -> int | None:
    """Return the bytes of a token's keys and values in 16 bits, over all layers (an upper bound if layers see only a
    part of the context); None if the shape is unknown."""

    def told(name: str) -> int | None:
        found = [v for k, v in information.items() if k.endswith(f".{name}") and isinstance(v, int) and v > 0]
        return found[0] if found else None

    layers, heads = told("block_count"), told("attention.head_count")
    shared, width = told("attention.head_count_kv") or heads, told("embedding_length")
    usual = width // heads if width and heads else None
    key, value = told("attention.key_length") or usual, told("attention.value_length") or usual
    if not (layers and shared and key and value):
        return None
    return layers * shared * (key + value) * 2


def create(context: Context) -> OllamaBackend:
    """Return the backend for `ollama/<model>`; `ConfigError` if there is no model, or an option is invalid."""
    name = str(context.config.get("model") or "")
    if not name:
        raise ConfigError("Name a model of Ollama, for example ollama/qwen3:8b.")
    return OllamaBackend(name, options_of(context.config))
