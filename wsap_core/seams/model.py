"""The protocol of model backends: requests, replies, abilities and prices."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, runtime_checkable

from wsap_core.protocol.base import LEFT_OUT, Frozen
from wsap_core.seams.agent import Usage
from wsap_core.seams.constraints import CallConstraint, ChooseConstraint, Constraint, JsonConstraint, RegexConstraint

__all__ = [
    "DEFAULT_SAMPLING", "Abilities", "Backend", "CallConstraint", "ChooseConstraint", "Constraint", "Draft", "Finish",
    "FinishReason", "FunctionCall", "ImagePart", "JsonConstraint", "Message", "OnText", "Part", "Price",
    "RegexConstraint", "Reply", "Request", "Role", "Sampling", "SpendingLimit", "TextPart",
]  # fmt: skip

Role = Literal["system", "user", "assistant", "observation"]
"""`observation` is a tool's result inside the assistant's turn (seed 002); backends without such a role use `user`."""


@dataclass(frozen=True)
class TextPart:
    """Text in a message."""

    text: str


@dataclass(frozen=True)
class ImagePart:
    """A picture in a message."""

    base64: str
    media_type: str = "image/png"
    alt: str = ""
    """Alternative text, sent instead to a model without vision."""

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of the picture's file, in hexadecimal, which identifies it in keys and records."""
        try:
            data = base64.b64decode(self.base64, validate=True)
        except (binascii.Error, ValueError):
            data = self.base64.encode("utf-8", "replace")  # a backend will refuse it
        return hashlib.sha256(data).hexdigest()


Part = TextPart | ImagePart


@dataclass(frozen=True)
class FunctionCall:
    """A call of a function that a request declares."""

    name: str
    arguments: Mapping[str, Any] | str
    """JSON; what the model wrote if that is not a JSON object."""


@dataclass(frozen=True)
class Message(Frozen):
    """One turn of the conversation."""

    role: Role
    content: Sequence[Part] | str
    calls: Sequence[FunctionCall] = field(default=(), metadata=LEFT_OUT)
    """The calls of a turn of the assistant, beside its text."""

    def text(self) -> str:
        """Return the text of the message, with pictures replaced by their alternative texts. A call is written as JSON,
        `{"name", "arguments", "content"?}`, several as a list of them."""
        content = self.content
        if not isinstance(content, str):
            content = "".join(p.text if isinstance(p, TextPart) else p.alt for p in content)
        if not self.calls:
            return content
        told: list[Any] = [{"name": call.name, "arguments": call.arguments} for call in self.calls]
        content = content.strip()
        one = told[0] | {"content": content} if content else told[0]
        return json.dumps(one if len(told) == 1 else told, ensure_ascii=False)


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters; None for the model's default."""

    max_tokens: int | None = 300
    """Most tokens of the reply, including thinking (300 as in the specification)."""
    temperature: float | None = 0.7
    top_p: float | None = 0.9
    repeat_penalty: float | None = None
    seed: int | None = None


DEFAULT_SAMPLING = Sampling()


@dataclass(frozen=True)
class Request:
    """A call to a model."""

    messages: Sequence[Message]
    prefill: str = ""
    """The start of the assistant's turn, which the model continues."""
    stop: Sequence[str] = ()
    """Texts that end the reply and are not part of it."""
    constraint: Constraint | None = None
    """None for free text."""
    sampling: Sampling = DEFAULT_SAMPLING
    thinking: bool | None = None
    """Whether the model thinks first; None for its default."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Provider options by backend name: `{"ollama": {"num_ctx": 4096}}`."""
    purpose: str = field(default="", compare=False)
    """Its purpose, for the log: "decide", "plan", "reflect"."""
    key: str = field(default="", compare=False)
    """The key of a world's call in its run: tick, phase, subject and attempt, as in `12/intent/anna/0`. The reply is
    stored under it, so that equal concurrent requests are not confused."""
    shortens: bool = field(default=False, compare=False)
    """Whether the sender shortens it and asks again if it exceeds the context; if so, the refusal is recorded, too."""


FinishReason = Literal["stop", "stop_sequence", "length", "content_filter", "invalid", "unknown"]


@dataclass(frozen=True)
class Finish:
    """How a reply ended, and what it took."""

    reason: FinishReason = "stop"
    stop_sequence: str | None = None
    """The stop text that ended the reply, if the backend reports it."""
    usage: Usage = field(default_factory=Usage)
    probabilities: Sequence[float] = ()
    """The probabilities of the options of a `ChooseConstraint`, in its order; their sum is 1."""
    served: str = ""
    """The model and fingerprint that the server reports, if any."""


@dataclass(frozen=True)
class Reply:
    """A whole reply."""

    text: str
    thinking: str = ""
    finish: Finish = field(default_factory=Finish)
    calls: tuple[FunctionCall, ...] = field(default=(), metadata=LEFT_OUT)
    """The calls of functions in it, each once, beside its text."""

    @property
    def usage(self) -> Usage:
        """The usage of the request."""
        return self.finish.usage

    @property
    def truncated(self) -> bool:
        """Whether it reached the token limit."""
        return self.finish.reason == "length"

    @property
    def message(self) -> Message:
        """The reply as a turn of the conversation, without its thinking."""
        return Message("assistant", self.text, self.calls)


@dataclass(frozen=True)
class Draft:
    """What has been written of a reply so far."""

    text: str = ""
    thinking: str = ""
    waiting: str = ""
    """Why the request is not with the server now, such as that it is in a queue; empty if it is."""


OnText = Callable[[Draft], None]
"""Is shown a reply while it is written: each draft replaces the one before, and an empty one withdraws it, as when a
request is sent again. It must not raise."""


@dataclass(frozen=True)
class Abilities:
    """The abilities of a backend with its model; unknown ones are not claimed."""

    json_schema: bool = False
    """Constrains replies by JSON Schema."""
    schema_subset: bool = False
    """Accepts only schemas within the subset of OpenAI's strict mode (`wsap_llm.schemas.strict_schema`)."""
    regex: bool = False
    """Constrains replies by regular expression."""
    choose: bool = False
    """Scores given replies and draws one (`ChooseConstraint`)."""
    calls: bool = False
    """Calls functions that a request declares (tool calling)."""
    parameters: int | None = None
    """Number of the model's parameters, if known."""
    dtype: str | None = None
    """Number format of its computations, such as `bfloat16`, which can affect replies; None if unknown."""
    prefill: bool = False
    """Continues a trailing assistant message."""
    resume: bool = False
    """Continues within its own reply with its key-value cache (in process)."""
    images: bool | None = False
    """Sees pictures; None if unknown: they are sent, and the server refuses them if it can't."""
    thinking: bool = False
    """Separates its thinking from its reply."""
    stop: bool = True
    """Supports stop texts."""
    context: int | None = None
    """The context window in tokens, if known."""


class SpendingLimit(Protocol):
    """A limit on the usage of models in some scope: a run, a day, a tournament."""

    def reserve(self, worst: Usage) -> None:
        """Reserve the most that a request may use, before it is sent; `BudgetReachedError` if the limit forbids it."""

    def settle(self, worst: Usage, actual: Usage) -> None:
        """Replace a reservation by the actual usage."""

    def belongs_to(self, run_id: str) -> None:
        """Set the recorded run to which the requests belong."""


@runtime_checkable
class Backend(Protocol):
    """A language model. Retries, limits, budgets and recording are middlewares around it."""

    @property
    def model(self) -> str:
        """The full address, such as `ollama/qwen3:8b`."""

    @property
    def abilities(self) -> Abilities:
        """What it can do."""

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the whole reply; a failure raises a subclass of `BackendError`. Cancelling it cancels the request and
        releases its resources. A backend that streams calls `on_text` in the caller's thread while the reply is
        written; others never do."""

    async def aclose(self) -> None:
        """Release connections and memory; the backend can't be used afterwards."""


@dataclass(frozen=True)
class Price:
    """The price of a model, in US dollars per million tokens."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Return the cost in US dollars."""
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / 1e6
