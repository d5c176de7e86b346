"""Function calls (tool calling) as backends return them: one JSON text, `{"name", "arguments", "content"?}`."""

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
    """A call in a reply."""

    name: str
    arguments: Mapping[str, Any]
    content: str = ""
    """The text that the model wrote with it."""

    def text(self) -> str:
        """Return the call as the text of a reply."""
        return text_of_calls([(self.name, dict(self.arguments))], self.content)


def text_of_calls(calls: Iterable[tuple[str, Any]], content: str = "") -> str:
    """Return the text of a reply: the call with the content, a list of several different calls, or just the content.
    A call is a name and its arguments as JSON or as text."""
    read = [{"name": name, "arguments": _arguments(given)} for name, given in calls]
    found = [call for place, call in enumerate(read) if call not in read[:place]]
    if not found:
        return content
    if len(found) > 1:
        return json.dumps(found, ensure_ascii=False)
    return json.dumps(found[0] | ({"content": content.strip()} if content.strip() else {}), ensure_ascii=False)


def _arguments(given: Any) -> Any:
    """Return arguments as JSON; invalid JSON unchanged, for lenient parsing."""
    if not isinstance(given, str):
        return given or {}
    try:
        return json.loads(given) if given.strip() else {}
    except (ValueError, RecursionError):
        return given


class Written:
    """The text of a reply: passed on at once, or held back if the request is for a call, which will include it."""

    def __init__(self, request: Request) -> None:
        self.held = isinstance(request.constraint, CallConstraint)
        """Whether the text is held back."""
        self._pieces: list[str] = []

    def keep(self, chunks: Iterable[TextChunk | ThinkingChunk]) -> Iterator[Chunk]:
        """Yield the chunks that are not held back."""
        for chunk in chunks:
            if self.held and isinstance(chunk, TextChunk):
                self._pieces.append(chunk.text)
            else:
                yield chunk

    def rest(self, calls: Iterable[tuple[str, Any]]) -> Iterator[Chunk]:
        """Yield the calls of the reply, with the text that was held back."""
        if text := text_of_calls(calls, "".join(self._pieces)):
            yield TextChunk(text)


def call_in(text: str) -> Called | None:
    """Parse a reply's text as a call; None if it is anything else."""
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
    """Yield each message with its call, if it is one, and the id of its call or of the call that it answers, empty for
    other messages. Ids are nine letters and digits, as Mistral's templates require."""
    before = ""
    for place, message in enumerate(messages):
        call = call_in(message.text()) if message.role == "assistant" else None
        yield message, call, f"call{place:05d}" if call else before
        before = f"call{place:05d}" if call else ""


def declared(function: FunctionDef) -> dict[str, Any]:
    """Return the declaration of a function for requests."""
    told = {"name": function.name, "description": function.description, "parameters": dict(function.parameters)}
    return {"type": "function", "function": told}
