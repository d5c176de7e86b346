"""The server's replies, its models, and the requests that it received."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

BAD = "\ue000"
"""Represents bytes that are not UTF-8 in a text to send; see `encoded`."""

Style = Literal["plain", "crlf", "cr", "comments", "lines", "bytes", "bare"]
"""Formats of server-sent events: the usual one; other line ends; comments and other fields between; each JSON value
over several `data` lines; byte by byte; no space after the colon."""


@dataclass(frozen=True)
class Say:
    """One response, well-behaved by default."""

    text: str = "Hello there."
    thinking: str = ""
    """The reasoning, separate from the text; sent only if the request allows it."""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """Function calls, each a name and arguments, in addition to the text; only of declared functions."""
    finish: str | None = "stop"
    status: int = 200
    error: str = ""
    """The message of an error, for an error status."""
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: bool = False
    """Send nothing before `ModelServer.release` is called."""
    latency: float = 0.0
    """Seconds before the first byte; for measurements only."""
    cut: int | None = None
    """Drop the connection after this number of pieces, or after half of a whole reply."""
    half: bool = False
    """Send truncated JSON but end the connection normally."""
    error_within: str = ""
    """End a stream with an error after its first piece."""
    done: bool = True
    """Mark the end of a stream."""
    unstreamed: bool = False
    """Send the reply as a whole although streaming was requested."""
    usage: bool = True
    cached: int = 0
    """The number of prompt tokens that came from a cache."""
    style: Style = "plain"
    raw: bytes | None = None
    """Send exactly these bytes as the body."""


DEAF = Say(wait=True)
"""Never responds unless `release` is called."""


@dataclass(frozen=True)
class Refusal:
    """A server's refusal of a constraint."""

    status: int
    words: str
    code: str | None = None
    param: str | None = None
    """The refused field in OpenAI's protocol."""
    within: bool = False
    """Start a stream with status 200, and refuse in its first piece."""
    fields: frozenset[str] = frozenset({"guided_regex", "structured_outputs"})
    """Refused fields of the request besides `response_format`: vLLM's fields for constraints."""


@dataclass(frozen=True)
class Card:
    """A model of the server."""

    context: int = 4096
    capabilities: tuple[str, ...] = ("completion", "tools")
    family: str = "qwen3"
    parameters: str = "8.2B"
    quantization: str = "Q4_K_M"
    strict: bool = False
    """Accept only OpenAI's subset of schemas if `strict` is true, and refuse others with its message."""
    refusal: Refusal | None = None
    """The refusal of constraints; None to apply them."""


@dataclass(frozen=True)
class Received:
    """A received request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    """Parsed JSON (Any); None without a body."""


@dataclass(frozen=True)
class Plan:
    """The response to one request: cut at stop texts and at the token limit."""

    thinking: Sequence[str]
    text: Sequence[str]
    finish: str | None
    stop: str | None
    prompt_tokens: int

    @property
    def completion_tokens(self) -> int:
        """Count tokens: words with the space after them."""
        return len(self.thinking) + len(self.text)


def words(text: str) -> list[str]:
    """Cut a text into pieces like a model's tokens."""
    return re.findall(r"\s*\S+\s*|\s+", text)


def plan(say: Say, messages: Sequence[Any], *, stop: Sequence[str], most: int | None, think: bool) -> Plan:
    """Return the response to a request."""
    text, stopped = say.text, None
    found = sorted((text.index(s), s) for s in stop if s and s in text)
    if found:
        text, stopped = text[: found[0][0]], found[0][1]
    thinking, pieces, finish = words(say.thinking) if think else [], words(text), say.finish
    if most is not None and most >= 0 and len(thinking) + len(pieces) > most:
        thinking, pieces = thinking[:most], pieces[: max(0, most - len(thinking))]
        finish, stopped = "length", None
    return Plan(thinking, pieces, finish, stopped, prompt_tokens(messages))


def prompt_tokens(messages: Sequence[Any]) -> int:
    """Count the words of messages."""
    total = 0
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else ""
        if isinstance(content, list):
            content = " ".join(str(p.get("text", "(picture)")) for p in content if isinstance(p, dict))
        total += 4 + len(words(str(content or "")))
    return total


def encoded(text: str) -> bytes:
    """Return the bytes of a text, with `BAD` replaced by invalid ones."""
    return text.encode().replace(BAD.encode(), b"\xff\xc3(")
