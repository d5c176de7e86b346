"""What the server is told to say, what it has, and what it was asked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

BAD = "\ue000"
"""Stands for bytes that are not UTF-8 in a text that is to be sent; see `encoded`."""

Style = Literal["plain", "crlf", "cr", "comments", "lines", "bytes", "bare"]
"""How server-sent events are written: as usual; with other line ends; with comments and other fields
between; with each JSON value over several `data` lines; byte by byte; without a space after the colon."""


@dataclass(frozen=True)
class Say:
    """One answer, well-behaved unless told otherwise."""

    text: str = "Hello there."
    thinking: str = ""
    """What is sent as reasoning, apart from the text; only where the request allows it."""
    calls: Sequence[tuple[str, Mapping[str, Any]]] = ()
    """Calls of functions, each a name and arguments, beside the text; made only of functions that are declared."""
    finish: str | None = "stop"
    status: int = 200
    error: str = ""
    """The words of an error, with a status that is one."""
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: bool = False
    """Send nothing before `ModelServer.release` is called."""
    latency: float = 0.0
    """Seconds before the first byte; for measurements, not for tests."""
    cut: int | None = None
    """Drop the connection after so many pieces; of a reply in one piece, half is sent then."""
    half: bool = False
    """Send JSON that stops in its middle, while the connection ends as it should."""
    error_within: str = ""
    """Break a stream off with an error after its first piece."""
    done: bool = True
    """Say at the end of a stream that it is the end."""
    unstreamed: bool = False
    """Send the reply in one piece although it was to be streamed."""
    usage: bool = True
    style: Style = "plain"
    raw: bytes | None = None
    """Send just these bytes as the body."""


DEAF = Say(wait=True)
"""Never answers, as long as nobody calls `release`."""


@dataclass(frozen=True)
class Refusal:
    """How a server says that it can't bind a reply to a form."""

    status: int
    words: str
    code: str | None = None
    param: str | None = None
    """The field of the request that it is about, where OpenAI's protocol tells it."""
    within: bool = False
    """Begin a stream with status 200, and refuse in its first piece."""
    fields: frozenset[str] = frozenset({"guided_regex", "structured_outputs"})
    """Fields of the request, besides `response_format`, that are refused: vLLM's for replies of some form."""


@dataclass(frozen=True)
class Card:
    """A model that the server has."""

    context: int = 4096
    capabilities: tuple[str, ...] = ("completion", "tools")
    family: str = "qwen3"
    parameters: str = "8.2B"
    quantization: str = "Q4_K_M"
    strict: bool = False
    """Take only the schemas that OpenAI takes where `strict` is true, and refuse others in its words."""
    refusal: Refusal | None = None
    """How it answers whoever asks for a reply of some form; it does what is asked when None."""


@dataclass(frozen=True)
class Received:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    """Parsed JSON (Any); None where there was none."""


@dataclass(frozen=True)
class Plan:
    """What an answer comes to for one request: cut at stop texts and at the most tokens allowed."""

    thinking: Sequence[str]
    text: Sequence[str]
    finish: str | None
    stop: str | None
    prompt_tokens: int

    @property
    def completion_tokens(self) -> int:
        """A token is a word with the space after it."""
        return len(self.thinking) + len(self.text)


def words(text: str) -> list[str]:
    """Cut a text into pieces, as a model's tokens would come."""
    return re.findall(r"\s*\S+\s*|\s+", text)


def plan(say: Say, messages: Sequence[Any], *, stop: Sequence[str], most: int | None, think: bool) -> Plan:
    """Return what is sent for a request."""
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
    """Return the bytes of a text, those that `BAD` stands for spoiled."""
    return text.encode().replace(BAD.encode(), b"\xff\xc3(")
