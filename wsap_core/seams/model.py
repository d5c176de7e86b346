"""What a language-model backend is: requests, replies, abilities and prices."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

from wsap_core.protocol.base import Frozen
from wsap_core.seams.agent import Usage
from wsap_core.seams.constraints import CallConstraint, ChooseConstraint, Constraint, JsonConstraint, RegexConstraint
from wsap_core.seams.model_errors import ServerFailedError

__all__ = [
    "DEFAULT_SAMPLING", "Abilities", "Backend", "CallConstraint", "ChooseConstraint", "Chunk", "Constraint", "Finish",
    "FinishReason", "ImagePart", "JsonConstraint", "Message", "Part", "Price", "RegexConstraint", "Reply", "Request",
    "Role", "Sampling", "SpendingLimit", "TextChunk", "TextPart", "ThinkingChunk", "collect", "collect_from",
]  # fmt: skip

Role = Literal["system", "user", "assistant", "observation"]
"""Who speaks. `observation` is a tool's result inside the assistant's turn (seed 002); backends that
know no such role say it as the user."""


@dataclass(frozen=True)
class TextPart:
    """Text in a message."""

    text: str


@dataclass(frozen=True)
class ImagePart:
    """A picture in a message, for models that see."""

    base64: str
    """The picture in base64."""
    media_type: str = "image/png"
    alt: str = ""
    """What it shows; sent in its place to a model that can't see."""

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the picture's file, in hexadecimal; what keys and records call it."""
        try:
            data = base64.b64decode(self.base64, validate=True)
        except (binascii.Error, ValueError):
            data = self.base64.encode("utf-8", "replace")  # no picture: a backend will refuse it
        return hashlib.sha256(data).hexdigest()


Part = TextPart | ImagePart


@dataclass(frozen=True)
class Message(Frozen):
    """One turn of the conversation."""

    role: Role
    content: Sequence[Part] | str
    """Text, or parts in order."""

    def text(self) -> str:
        """Return the text of the message; pictures are replaced by what they show."""
        if isinstance(self.content, str):
            return self.content
        return "".join(p.text if isinstance(p, TextPart) else p.alt for p in self.content)


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen; None leaves it to the model's own default."""

    max_tokens: int | None = 300
    """Most tokens in the reply, thinking included (the seed's 300)."""
    temperature: float | None = 0.7
    top_p: float | None = 0.9
    repeat_penalty: float | None = None
    seed: int | None = None


DEFAULT_SAMPLING = Sampling()


@dataclass(frozen=True)
class Request:
    """Everything that one call to a model depends on."""

    messages: Sequence[Message]
    prefill: str = ""
    """The beginning of the assistant's turn, which the model goes on with."""
    stop: Sequence[str] = ()
    """Texts that end the reply; the one that did is not part of it."""
    constraint: Constraint | None = None
    """What the reply must look like; None for free text."""
    sampling: Sampling = DEFAULT_SAMPLING
    thinking: bool | None = None
    """Whether the model is asked to think first; None for its default."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Provider options by backend name: `{"ollama": {"num_ctx": 4096}}`."""
    purpose: str = field(default="", compare=False)
    """What it is for, in the log: "decide", "plan", "reflect"; nothing that the reply depends on."""
    key: str = field(default="", compare=False)
    """Where a world's call stands in its run: tick, phase, subject and attempt, as in `12/intent/anna/0`. The reply is
    kept and found again under it, so that equal requests that are in flight together can't take each other's."""


@dataclass(frozen=True)
class TextChunk:
    """A piece of the reply."""

    text: str


@dataclass(frozen=True)
class ThinkingChunk:
    """A piece of what the model thinks before it replies; never part of the reply."""

    text: str


FinishReason = Literal["stop", "stop_sequence", "length", "content_filter", "unknown"]


@dataclass(frozen=True)
class Finish:
    """The end of a stream. Every stream that did not fail has exactly one, as its last chunk."""

    reason: FinishReason = "stop"
    stop_sequence: str | None = None
    """Which of the request's stop texts ended it, where the backend tells."""
    usage: Usage = field(default_factory=Usage)
    probabilities: Sequence[float] = ()
    """Of the options of a `ChooseConstraint`, in its order, the probability with which each was drawn; adds up to 1."""
    served: str = ""
    """What the server calls the model that replied, with its fingerprint; empty if it doesn't tell."""


Chunk = TextChunk | ThinkingChunk | Finish


@dataclass(frozen=True)
class Reply:
    """A whole reply."""

    text: str
    thinking: str = ""
    finish: Finish = field(default_factory=Finish)

    @property
    def usage(self) -> Usage:
        """What it took."""
        return self.finish.usage

    @property
    def truncated(self) -> bool:
        """Whether the model ran out of tokens before it was through."""
        return self.finish.reason == "length"


@dataclass(frozen=True)
class Abilities:
    """What a backend (with its model) can do; what is not known is not claimed."""

    json_schema: bool = False
    """Constrains replies by JSON Schema."""
    schema_subset: bool = False
    """Takes only schemas within the subset of OpenAI's strict mode (`wsap_llm.strict_schema`)."""
    regex: bool = False
    """Constrains replies by regular expression."""
    choose: bool = False
    """Scores given replies and draws one of them."""
    calls: bool = False
    """Makes calls of functions that a request declares (tool calling)."""
    parameters: int | None = None
    """How many parameters the model has; None where it is not known."""
    dtype: str | None = None
    """What numbers it computes with, such as `bfloat16`, of which replies depend in close cases; None where unknown."""
    prefill: bool = False
    """Goes on with a trailing assistant message."""
    resume: bool = False
    """Goes on inside its own reply with its key-value cache kept (in process)."""
    images: bool | None = False
    """Sees pictures; None where that is not known: they are sent then, and the server says if it can't."""
    thinking: bool = False
    """Tells its thinking apart from its reply."""
    stop: bool = True
    """Honours stop texts."""
    context: int | None = None
    """The context window in tokens; None where it is not known."""


class SpendingLimit(Protocol):
    """What may be spent on models in some scope: a run, a day, a tournament."""

    def reserve(self, worst: Usage) -> None:
        """Hold what a request may take at worst, before it is sent.

        Raises:
            BudgetReachedError: the limit could be passed; nothing is held.
        """

    def settle(self, worst: Usage, actual: Usage) -> None:
        """Put what a request really took in place of what was held for it."""

    def belongs_to(self, run_id: str) -> None:
        """Say for which recorded run requests are sent here."""


@runtime_checkable
class Backend(Protocol):
    """A language model that can be asked. Retries, limits, budgets and records are middlewares around it."""

    @property
    def model(self) -> str:
        """The full address, such as `ollama/qwen3:8b`."""

    @property
    def abilities(self) -> Abilities:
        """What it can do."""

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply as it comes; the last chunk is a `Finish`.

        Closing the iterator before its end ends the request and frees what it holds.

        Raises:
            BackendError: by class; raised while iterating.
        """

    async def aclose(self) -> None:
        """Give back connections and memory; nothing can be asked afterwards."""


async def collect(backend: Backend, request: Request) -> Reply:
    """Return the whole reply to a request.

    Raises:
        BackendError: whatever the backend raises; `ServerFailedError` where the stream ended without a `Finish`.
    """
    return await collect_from(backend.stream(request), backend.model)


async def collect_from(stream: AsyncGenerator[Chunk, None], model: str) -> Reply:
    """Return the whole reply that a stream gives, and close the stream; the model's address is for the error.

    Raises as `collect` does.
    """
    text: list[str] = []
    thinking: list[str] = []
    finish: Finish | None = None
    async with aclosing(stream) as chunks:
        async for chunk in chunks:
            match chunk:
                case TextChunk(piece):
                    text.append(piece)
                case ThinkingChunk(piece):
                    thinking.append(piece)
                case Finish():
                    finish = chunk
    if finish is None:
        raise ServerFailedError(f"The reply of {model} broke off before its end.")
    return Reply("".join(text), "".join(thinking), finish)


@dataclass(frozen=True)
class Price:
    """What a model costs, in US dollars for a million tokens."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost of so many tokens, in US dollars."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6
