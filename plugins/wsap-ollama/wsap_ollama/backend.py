"""The backend `ollama/<model>` for models of a local Ollama server, based on Ollama's client."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import httpx
import ollama

from wsap_core.errors import ConfigError
from wsap_core.seams.agent import Usage
from wsap_core.seams.context import Context
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import (
    Abilities,
    CallConstraint,
    ChooseConstraint,
    Chunk,
    Finish,
    FinishReason,
    ImagePart,
    JsonConstraint,
    Message,
    RegexConstraint,
    Request,
    ThinkingChunk,
)
from wsap_core.seams.model_errors import (
    BackendError,
    BadRequestError,
    ConstraintError,
    ContextTooSmallError,
    ServerFailedError,
)
from wsap_core.untrusted import single_line
from wsap_llm.kit import ThinkSplitter, Written, declared, estimate_request, has_pictures, linked
from wsap_ollama.failures import error_of
from wsap_ollama.options import OllamaOptions, options_of
from wsap_ollama.transport import Guard

# Any, in this module: wire data, and the client's loosely typed answers.

CLOUD = ("-cloud", ":cloud")
"""Endings of the names of models in Ollama's cloud."""
_REASONS: Mapping[str, FinishReason] = {"stop": "stop", "length": "length", "load": "unknown", "unload": "unknown"}


@dataclass(frozen=True)
class ModelCard:
    """Ollama's information about a model."""

    capabilities: tuple[str, ...] = ()
    """ "completion", "tools", "thinking", "vision" and others."""
    context: int | None = None
    """The model's context window in tokens."""
    context_bytes: int | None = None
    """Bytes of memory per token of context, if known."""


class OllamaBackend:
    """A model of a local Ollama server, by Ollama's name, such as `qwen3:8b`. It does not retry; the middleware `Retry`
    does."""

    def __init__(self, name: str, options: OllamaOptions | None = None) -> None:
        self.options = options or OllamaOptions()
        self._name = name
        self._client: Any = None  # an ollama.AsyncClient, whose methods are overloaded by literals
        self._loop: asyncio.AbstractEventLoop | None = None
        self._card: ModelCard | None = None
        self._closed = False

    @property
    def model(self) -> str:
        """The address, `ollama/NAME`."""
        return f"ollama/{self._name}"

    @property
    def place(self) -> str:
        """The server's address, for messages."""
        return place_of(self.options)

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
            try:
                async with asyncio.timeout(self.options.timeout):
                    shown = await self._open().show(self._name)
            except Exception as error:
                raise error_of(error, self.model, self.place, self.options.timeout) from error
            self._card = card_of(shown)
        return self._card

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Yield the reply, in pieces if the option `stream` of the backend or the request is set; see `Backend`."""
        card = await self.prepare()
        given = dict(request.options.get("ollama", {}))
        pieces = bool(given.pop("stream", self.options.stream))
        arguments = self._arguments(request, card, given)
        end = asyncio.get_running_loop().time() + self.options.timeout
        reader = _Reader(request)
        try:
            async with asyncio.timeout_at(end):
                answer = await self._open().chat(**arguments, stream=pieces)
            if not pieces:
                for chunk in reader.part(answer):
                    yield chunk
            else:
                async with aclosing(answer):
                    async for part in _until(answer, end):
                        for chunk in reader.part(part):
                            yield chunk
            finish = reader.finish()
        except (BackendError, asyncio.CancelledError, GeneratorExit):
            raise
        except Exception as error:
            raise error_of(
                error,
                self.model,
                self.place,
                self.options.timeout,
                pictured=has_pictures(request),
                constrained=request.constraint is not None,
            ) from error
        if finish is None:
            raise ServerFailedError(f"Ollama at {self.place} broke off in the middle of a reply of {self.model}.")
        for chunk in reader.rest():
            yield chunk
        yield finish

    async def aclose(self) -> None:
        """Close the connections; the backend can't be used afterwards."""
        self._closed = True
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    # --- requests ----------------------------------------------------------------------------

    def _arguments(self, request: Request, card: ModelCard, given: Mapping[str, Any]) -> dict[str, Any]:
        if isinstance(request.constraint, RegexConstraint | ChooseConstraint):
            raise ConstraintError("Ollama constrains replies only by JSON Schema or to function calls.")
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
        return {
            "model": self._name,
            "messages": messages,
            "think": think,
            "tools": [declared(function) for function in functions] or None,
            "format": dict(request.constraint.schema) if isinstance(request.constraint, JsonConstraint) else None,
            "options": {**chosen, **self.options.extra, **given},
            "keep_alive": self.options.keep_alive,
        }

    def _think(self, request: Request, card: ModelCard) -> bool | None:
        """Return the parameter `think`; None for a model without thinking, for which it would be an error."""
        if "thinking" not in card.capabilities:
            return None
        return self.options.think if request.thinking is None else request.thinking

    def _check_fit(self, request: Request) -> None:
        context = self.options.num_ctx
        prompt, reply = estimate_request(request), request.sampling.max_tokens or 0
        if prompt + reply > context:
            raise ContextTooSmallError(
                f"The prompt of about {prompt} tokens and {reply} for the reply exceed the context of {context} that "
                f"{self.model} runs with; Ollama would silently cut off the beginning of the prompt. Increase the "
                "option num_ctx, or shorten the history."
            )

    def _open(self) -> Any:
        if self._closed:
            raise BadRequestError(f"{self.model} was closed and can't be used.")
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = client_of(self.options), loop
        return self._client


class _Reader:
    """Converts Ollama's answers to chunks; estimates tokens that the server does not count."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._splitter = ThinkSplitter()  # older servers leave the thinking in the text
        self._last: Any = None
        self._tokens = 0
        self._calls: list[tuple[str, Any]] = []
        self._written = Written(request)

    def part(self, part: Any) -> Iterator[Chunk]:
        """Yield the chunks of one answer."""
        message = part.message
        if message.thinking:
            self._tokens += estimate_tokens(message.thinking)
            yield ThinkingChunk(message.thinking)
        if message.content:
            self._tokens += estimate_tokens(message.content)
            yield from self._written.keep(self._splitter.feed(message.content))
        for call in message.tool_calls or ():
            self._tokens += estimate_tokens(str(call.function.arguments)) + 1
            self._calls.append((call.function.name, dict(call.function.arguments)))
        if part.done:
            self._last = part

    def rest(self) -> Iterator[Chunk]:
        """Yield the chunks that were held back."""
        yield from self._written.keep(self._splitter.close())
        yield from self._written.rest(self._calls)

    def finish(self) -> Finish | None:
        """Return the finish, or None if the server did not complete the reply."""
        last = self._last
        if last is None:
            return None
        prompt = last.prompt_eval_count if last.prompt_eval_count is not None else estimate_request(self._request)
        completion = last.eval_count if last.eval_count is not None else self._tokens
        # The cost of running a model locally is unknown, not zero.
        usage = Usage(1, prompt, completion, None)
        return Finish(
            _REASONS.get(last.done_reason or "", "unknown"), None, usage, served=single_line(last.model)[:200]
        )


async def _until(parts: AsyncGenerator[Any, None], end: float) -> AsyncIterator[Any]:
    """Yield parts until a deadline, which never spans a `yield`."""
    while True:
        try:
            async with asyncio.timeout_at(end):
                part = await anext(parts)
        except StopAsyncIteration:
            return
        yield part


def _messages(request: Request, *, images: bool) -> Iterator[dict[str, Any]]:
    if not isinstance(request.constraint, CallConstraint):
        yield from (_message(message, images=images) for message in request.messages)
        return
    for message, call, identity in linked(request.messages):
        made = _message(message, images=images)
        if call is not None:
            function = {"name": call.name, "arguments": dict(call.arguments)}
            yield made | {"content": call.content, "tool_calls": [{"function": function}]}
        else:
            yield made | {"role": "tool"} if identity else made


def _message(message: Message, *, images: bool) -> dict[str, Any]:
    role = "user" if message.role == "observation" else message.role
    if isinstance(message.content, str) or not images:
        return {"role": role, "content": message.text()}
    text = "".join("" if isinstance(part, ImagePart) else part.text for part in message.content)
    pictures = [_bytes(part) for part in message.content if isinstance(part, ImagePart)]
    return {"role": role, "content": text, "images": pictures}


def _bytes(part: ImagePart) -> bytes:
    """Return a picture's bytes; the client would take a text for the name of a file."""
    try:
        return base64.b64decode(part.base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadRequestError("A picture in the request is not base64.") from error


def card_of(shown: Any) -> ModelCard:
    """Return the card from the answer of `/api/show`."""
    information = shown.modelinfo or {}
    lengths = [v for k, v in information.items() if k.endswith(".context_length") and isinstance(v, int)]
    return ModelCard(tuple(shown.capabilities or ()), lengths[0] if lengths else None, _context_bytes(information))


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


def place_of(options: OllamaOptions) -> str:
    """Return the server's address, for messages."""
    return options.host or os.environ.get("OLLAMA_HOST", "").strip() or "http://127.0.0.1:11434"


def client_of(options: OllamaOptions) -> ollama.AsyncClient:
    """Return a client without a limit on connections, and with one on the size of answers."""
    return ollama.AsyncClient(
        host=options.host,
        timeout=httpx.Timeout(None, connect=options.connect_timeout),
        transport=Guard(options.max_bytes),
        headers={"Accept-Encoding": "identity"},
        follow_redirects=False,
    )


def create(context: Context) -> OllamaBackend:
    """Return the backend for `ollama/<model>`; `ConfigError` if there is no model, or an option is invalid."""
    name = str(context.config.get("model") or "")
    if not name:
        raise ConfigError("Name a model of Ollama, for example ollama/qwen3:8b.")
    return OllamaBackend(name, options_of(context.config))
