"""Function calls (tool calling) in requests and replies."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from wsap_core.seams.constraints import FunctionDef
from wsap_core.seams.model import CallConstraint, FunctionCall, Message, Request

# Any, in this module: JSON, as it goes over the wire.


def calls_of(given: Iterable[tuple[str, Any]]) -> tuple[FunctionCall, ...]:
    """Return the calls of a reply, each once, from names and arguments as JSON or as text."""
    calls: list[FunctionCall] = []
    for name, arguments in given:
        call = FunctionCall(name, _arguments(arguments))
        if call not in calls:
            calls.append(call)
    return tuple(calls)


def _arguments(given: Any) -> Mapping[str, Any] | str:
    """Return arguments as JSON; what is not a JSON object as text, for lenient parsing."""
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, str):
        return json.dumps(given) if given else {}
    try:
        found = json.loads(given) if given.strip() else {}
    except (ValueError, RecursionError):
        return given
    return found if isinstance(found, dict) else given


def said_and_called(
    request: Request, text: str, given: Iterable[tuple[str, Any]]
) -> tuple[str, tuple[FunctionCall, ...]]:
    """Return text and calls of a reply. If the request declares no functions, calls that come without a text are the
    text: some servers convert replies in JSON to calls."""
    text, written = _harmony(text)
    calls = calls_of([*given, *written])
    if isinstance(request.constraint, CallConstraint):
        return text.strip() if calls else text, calls
    return (text if text.strip() else Message("assistant", text, calls).text()), ()


_HARMONY = re.compile(
    r"<\|(?:start|channel)\|>[^<]{0,80}to=functions\.(?P<name>[\w.-]{1,64})[^<]{0,40}"
    r"(?:<\|channel\|>[^<]{0,40})?(?:<\|constrain\|>[^<]{0,20})?<\|message\|>(?P<given>.*?)(?:<\|call\|>|<\|end\|>|\Z)",
    re.DOTALL,
)
"""A call in the format of gpt-oss that a server passed on as text."""


def _harmony(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a text without the calls that it holds in the format of gpt-oss, and these calls."""
    if "to=functions." not in text:
        return text, []
    found = [(match["name"], match["given"]) for match in _HARMONY.finditer(text)]
    if not found:
        return text, []
    rest = _HARMONY.sub("", text)
    return re.sub(r"<\|channel\|>analysis<\|message\|>.*?(?:<\|end\|>|\Z)", "", rest, flags=re.DOTALL), found


def call_in(text: str) -> Message | None:
    """Return a text that is exactly a call, `{"name", "arguments", "content"?}`, as a turn with that call; None if it
    is anything else."""
    if not text.startswith('{"name"'):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    name, arguments, content = found["name"], found.get("arguments"), found.get("content", "")
    if not isinstance(name, str) or not isinstance(arguments, dict) or not isinstance(content, str):
        return None
    if not found.keys() <= {"name", "arguments", "content"}:
        return None
    return Message("assistant", content, (FunctionCall(name, arguments),))


def linked(messages: Sequence[Message]) -> Iterator[tuple[Message, FunctionCall | None, str]]:
    """Yield each message with its call, if it has exactly one, and the id of its call or of the call that it answers,
    empty for other messages. Ids are nine letters and digits, as Mistral's templates require."""
    before = ""
    for place, message in enumerate(messages):
        call = message.calls[0] if len(message.calls) == 1 and isinstance(message.calls[0].arguments, Mapping) else None
        yield message, call, f"call{place:05d}" if call else before
        before = f"call{place:05d}" if call else ""


def declared(function: FunctionDef) -> dict[str, Any]:
    """Return the declaration of a function for requests."""
    told = {"name": function.name, "description": function.description, "parameters": dict(function.parameters)}
    return {"type": "function", "function": told}
