"""Calls of functions (tool calling) as backends give them back: one JSON text, `{"name", "arguments", "content"?}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.seams.constraints import FunctionDef
from wsap_core.seams.model import CallConstraint, Chunk, Message, Request, TextChunk, ThinkingChunk

# Any, in this module: JSON, as it goes over the wire.


@dataclass(frozen=True)
class Called:
    """A call that stands in a reply."""

    name: str
    arguments: Mapping[str, Any]
    content: str = ""
    """What the model wrote beside it."""

    def text(self) -> str:
        """Return it as the text of a reply."""
        return text_of_calls([(self.name, dict(self.arguments))], self.content)


def text_of_calls(calls: Iterable[tuple[str, Any]], content: str = "") -> str:
    """Return calls, each a name and its arguments as JSON or as text, and what was written beside them as the text of a
    reply: the call, a list of several that differ, or what was written where there is none."""
    read = [{"name": name, "arguments": _arguments(given)} for name, given in calls]
    found = [call for place, call in enumerate(read) if call not in read[:place]]
    if not found:
        return content
    if len(found) > 1:
        return json.dumps(found, ensure_ascii=False)
    return json.dumps(found[0] | ({"content": content.strip()} if content.strip() else {}), ensure_ascii=False)


def _arguments(given: Any) -> Any:
    """Return arguments as JSON; a text that is none as it is, for whoever reads replies with tolerance."""
    if not isinstance(given, str):
        return given or {}
    try:
        return json.loads(given) if given.strip() else {}
    except (ValueError, RecursionError):
        return given


class Written:
    """What a model writes: in the reply to a request for a call it is part of the call's text, and so held back to the
    end; in any other it is passed on."""

    def __init__(self, request: Request) -> None:
        self.held = isinstance(request.constraint, CallConstraint)
        """Whether it is held back."""
        self._pieces: list[str] = []

    def keep(self, chunks: Iterable[TextChunk | ThinkingChunk]) -> Iterator[Chunk]:
        """Give the chunks that are not held back."""
        for chunk in chunks:
            if self.held and isinstance(chunk, TextChunk):
                self._pieces.append(chunk.text)
            else:
                yield chunk

    def rest(self, calls: Iterable[tuple[str, Any]]) -> Iterator[Chunk]:
        """Give the calls of the reply, with what was held back."""
        if text := text_of_calls(calls, "".join(self._pieces)):
            yield TextChunk(text)


def call_in(text: str) -> Called | None:
    """Return the call that a reply's text is; None if it is anything else."""
    if not text.startswith('{"name"'):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    name, arguments, content = found["name"], found.get("arguments"), found.get("content", "")
    if not isinstance(name, str) or not isinstance(arguments, dict) or not isinstance(content, str):
        return None
    return Called(name, arguments, content) if found.keys() <= {"name", "arguments", "content"} else None


def linked(messages: Sequence[Message]) -> Iterator[tuple[Message, Called | None, str]]:
    """Give each message with the call that it is, if it is one, and the identity of the call: of its own, or of the one
    just before, which it answers; empty for neither. Nine letters and digits, as Mistral's templates want it."""
    before = ""
    for place, message in enumerate(messages):
        call = call_in(message.text()) if message.role == "assistant" else None
        yield message, call, f"call{place:05d}" if call else before
        before = f"call{place:05d}" if call else ""


def declared(function: FunctionDef) -> dict[str, Any]:
    """Return a function as requests declare it."""
    told = {"name": function.name, "description": function.description, "parameters": dict(function.parameters)}
    return {"type": "function", "function": told}
