"""Replies of OpenAI's chat completions, whole or as server-sent events, without any I/O."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from json.decoder import scanstring  # type: ignore[attr-defined]  # json's own string reader
from typing import Any, Literal

from wsap_core.seams.agent import Usage
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import CallConstraint, Draft, Finish, FinishReason, OnText, Reply, Request
from wsap_core.seams.model_errors import ServerFailedError
from wsap_core.untrusted import single_line
from wsap_llm.backends.failures import Asked, error_in_stream
from wsap_llm.backends.faults import of_finish
from wsap_llm.calling import said_and_called
from wsap_llm.text.thinking import ThinkSplitter
from wsap_llm.text.tokens import estimate_request

# Any, in this module: JSON, as it comes over the wire.

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_KEY = '"content":'


class EventReader:
    """Reads server-sent events (`text/event-stream` of the HTML standard) from pieces of bytes; only `data` fields."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._data: list[bytes] = []
        self._first = True

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yield the data of each complete event. Raises UnicodeDecodeError if the data is not UTF-8."""
        self._held.append(piece)
        if b"\n" in piece or b"\r" in piece:
            *lines, rest = self._lines()
            if rest.endswith(b"\n"):
                lines.append(rest)
            else:
                self._held = [rest]  # the second half of a CRLF may follow
            yield from self._events(lines)

    def close(self) -> Iterator[str]:
        """Yield the last event if the stream ended without the empty line after it.

        The standard drops it, but some servers end with just `data: [DONE]`. Raises UnicodeDecodeError if the data is
        not UTF-8.
        """
        yield from self._events([*self._lines(), b""])

    def _lines(self) -> list[bytes]:
        text, self._held = b"".join(self._held), []
        if self._first:
            self._first, text = False, text.removeprefix(_BYTE_ORDER_MARK)
        return text.splitlines(keepends=True)

    def _events(self, lines: Iterable[bytes]) -> Iterator[str]:
        for line in lines:
            name, colon, value = line.rstrip(b"\r\n").partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            elif not name and not colon and self._data:
                data, self._data = b"\n".join(self._data), []
                yield data.decode()


class LineReader:
    """Reads lines, each of them one JSON value, from pieces of bytes."""

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[str]:
        """Yield the complete lines that are not empty. Raises UnicodeDecodeError if one is not UTF-8."""
        self._held.append(piece)
        if b"\n" in piece:
            *lines, rest = b"".join(self._held).split(b"\n")
            self._held = [rest]
            yield from (line.decode() for line in lines if line.strip())

    def close(self) -> Iterator[str]:
        """Yield the last line if it has no end. Raises UnicodeDecodeError if it is not UTF-8."""
        rest, self._held = b"".join(self._held), []
        if rest.strip():
            yield rest.decode()


MOST_OBJECTS = 40
"""Maximum number of places at which thoughts are tried as the start of an answer."""


class Deltas:
    """Reads events that only contain the next piece of text without parsing them as JSON.

    Such events differ only in that piece. The text around it is learned from one event and then compared, which halves
    the processor time of a streamed reply. Events that differ in anything else are parsed normally.
    """

    def __init__(self, tries: int = 3) -> None:
        self._before = ""
        self._after = ""
        self._tries = tries  # some servers change other fields with every event

    def text(self, data: str) -> str | None:
        """Return the text of an event; None unless it is known to contain nothing else."""
        before = self._before
        if not before or not data.startswith(before):
            return None
        try:
            # From after the opening quote to after the closing one, like json's reader.
            text, end = scanstring(data, len(before), True)
        except ValueError:
            return None
        return text if text and data[end:] == self._after else None

    def learn(self, data: str, found: Any) -> None:
        """Learn from an event, given as text and as JSON, if it only contains a piece of text."""
        if not self._tries or not _only_says(found):
            return
        self._tries -= 1
        head, key, tail = data.partition(_KEY)
        before = head + key + tail[: len(tail) - len(tail.lstrip(" "))] + '"'
        delta = found["choices"][0]["delta"]
        said = delta["content"]
        other = "x" if said != "x" else "y"
        try:
            _, end = scanstring(data, len(before), True)
            probe = json.loads(f'{before}{other}"{data[end:]}')
        except ValueError:
            return
        if data.startswith(before) and probe == found | {
            "choices": [found["choices"][0] | {"delta": delta | {"content": other}}]
        }:  # it was this string, not another "content"
            self._before, self._after = before, data[end:]


def _only_says(found: Any) -> bool:
    choices = found.get("choices")
    if found.get("usage") or not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        return False
    choice, delta = choices[0], choices[0].get("delta")
    if choice.get("finish_reason") or choice.get("stop_reason") or not isinstance(delta, dict):
        return False
    if not isinstance(delta.get("content"), str) or not delta["content"]:
        return False
    return not (delta.get("reasoning_content") or delta.get("reasoning") or delta.get("tool_calls"))


class ReplyReader:
    """Reads a server's reply; `opened` if the chat template starts replies inside `<think>`."""

    def __init__(self, request: Request, asked: Asked, *, opened: bool = False) -> None:
        self._request = request
        self._asked = asked
        self._splitter = ThinkSplitter(opened=opened)
        self._reason: str | None = None
        self._stop: str | None = None
        self._usage: Mapping[str, Any] | None = None
        self._said: list[str] = []  # for an estimate if the server does not count tokens
        self._calls: dict[Any, tuple[str, str]] = {}
        self._places: dict[str, tuple[int, object]] = {}
        """The index of a call in the reply -> its key in `_calls`, and its id."""
        self._deltas = Deltas()
        self._refused = False
        self.done = False
        """Whether the server has marked the reply as complete."""
        self.model = ""
        """The server's name of the replying model; empty if it gives none."""
        self._fingerprint = ""

    @property
    def begun(self) -> bool:
        """Whether a part of the reply was read."""
        return bool(self._said or self._calls)

    @property
    def draft(self) -> Draft:
        """What was read so far."""
        return self._splitter.draft

    def whole(self, body: bytes) -> Reply:
        """Return a whole reply. Raises ServerFailedError if it can't be parsed, and BackendError if it reports an
        error."""
        choice = self._choice(self._parsed(body))
        if choice is None:
            raise ServerFailedError(f"The response of {self._asked.place} contains no reply.")
        self._take(choice.get("message"), choice)
        self.done = True
        reply, prefill = self.close(), self._request.prefill
        # llama.cpp's server repeats the prefill in a whole reply, and not in a streamed one.
        return replace(reply, text=reply.text.removeprefix(prefill)) if prefill else reply

    def event(self, data: str) -> None:
        """Read one event of a stream; those after its end are ignored. Raises the errors of `whole`."""
        if self.done or data.strip() == "[DONE]":
            self.done = True
            return
        text = self._deltas.text(data)
        if text is not None:
            self._say(text)
            return
        found = self._parsed(data)
        self._deltas.learn(data, found)
        choice = self._choice(found)
        if choice is not None:
            self._take(choice.get("delta"), choice)

    def close(self) -> Reply:
        """Return the whole reply; raise ServerFailedError if the stream ended early."""
        if not self.done and self._reason is None:
            raise ServerFailedError(f"{self._asked.place} closed the connection during a reply of {self._asked.model}.")
        draft = self._splitter.close()
        text, calls = said_and_called(self._request, draft.text, self._calls.values())
        fault = of_finish(self._reason or "")
        thinking = draft.thinking
        if not (text.strip() or calls or self._refused) and (fault is None or fault.reason == "stop"):
            thinking, text = answer_in(thinking)
        reason: FinishReason = (
            "stop_sequence" if self._stop is not None else "unknown" if fault is None else fault.reason
        )
        if self._refused:
            reason = "content_filter"
        served = single_line(f"{self.model} {self._fingerprint}".strip())[:200]
        return Reply(text, thinking, Finish(reason, self._stop, self._counted(), served=served), calls)

    def _parsed(self, body: bytes | str) -> Mapping[str, Any]:
        try:
            # Decoded here because json guesses the encoding of bytes.
            found = json.loads(body.decode() if isinstance(body, bytes) else body)
        except (ValueError, RecursionError) as error:
            what = "text that is not UTF-8" if isinstance(error, UnicodeDecodeError) else "broken JSON"
            raise ServerFailedError(f"{self._asked.place} sent {what} for {self._asked.model}.") from error
        if not isinstance(found, dict):
            raise ServerFailedError(f"{self._asked.place} sent JSON that is not an object.")
        if found.get("error"):
            raise error_in_stream(found["error"], self._asked)
        return found

    def _choice(self, found: Mapping[str, Any]) -> Mapping[str, Any] | None:
        usage, model, fingerprint = found.get("usage"), found.get("model"), found.get("system_fingerprint")
        if isinstance(usage, dict):
            self._usage = usage
        if isinstance(model, str):
            self.model = model
        if isinstance(fingerprint, str):
            self._fingerprint = fingerprint
        choices = found.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return None
        return choices[0]

    def _take(self, message: Any, choice: Mapping[str, Any]) -> None:
        if choice.get("error"):
            raise error_in_stream(choice["error"], self._asked)
        if isinstance(message, dict):
            for thought in (message.get("reasoning_content") or message.get("reasoning"), _parts(message, "thinking")):
                if isinstance(thought, str) and thought:
                    self._said.append(thought)
                    self._splitter.think(thought)
            text = message.get("content")
            if isinstance(text, list):
                text = _parts(message, "text")
            if not text and isinstance(message.get("refusal"), str) and message["refusal"]:
                # Shown as a thought, so that nothing in it passes for an action.
                self._refused = True
                self._said.append(message["refusal"])
                self._splitter.think(message["refusal"])
            if isinstance(text, str) and text:
                self._say(text)
            self._take_calls(message)
        if isinstance(choice.get("finish_reason"), str):
            self._reason = choice["finish_reason"]
            fault = of_finish(choice["finish_reason"])
            if fault is not None and fault.whose == "provider":
                told = {"code": fault.status, "message": f"the reply ended with {single_line(self._reason)[:100]}"}
                raise error_in_stream(told, self._asked)
        # vLLM gives the stop text that matched.
        if isinstance(choice.get("stop_reason"), str) and choice["stop_reason"] in self._request.stop:
            self._stop = choice["stop_reason"]

    def _take_calls(self, message: Mapping[str, Any]) -> None:
        """Collect tool calls, whole or in pieces; some servers convert replies in JSON to them."""
        given = message.get("tool_calls")
        for call in given if isinstance(given, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                self._take_call(self._place_of(call, function), function.get("name"), function.get("arguments"))
        if isinstance(legacy := message.get("function_call"), dict):
            self._take_call("function_call", legacy.get("name"), legacy.get("arguments"))
        parts = message.get("content")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "tool_use":  # Anthropic's form
                self._take_call(("tool_use", part.get("id")), part.get("name"), part.get("input"))

    def _take_call(self, place: Any, name: Any, arguments: Any) -> None:
        known, before = self._calls.get(place, ("", ""))
        more = arguments or ""
        self._calls[place] = (known + str(name or ""), before + (more if isinstance(more, str) else json.dumps(more)))

    def _place_of(self, call: Mapping[str, Any], function: Mapping[str, Any]) -> int:
        """Return the number of the call that a piece belongs to.

        Some servers give two calls one index: another id, or without ids a name after whole arguments, begins another.
        """
        index, own = call.get("index"), call.get("id")
        place, known = self._places.get(str(index), (-1, None)) if index is not None else (-1, None)
        named = (
            function.get("name") and not own and not known and _is_json(self._calls[place][1]) if place >= 0 else True
        )
        if named or (own and known and own != known):
            place, known = len(self._calls), None
        self._places[str(index)] = (place, own or known)
        return place

    def _say(self, text: str) -> None:
        self._said.append(text)
        self._splitter.feed(text)

    def _counted(self) -> Usage:
        """Return the usage as counted by the server, or an estimate."""
        usage = self._usage or {}
        prompt, completion = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if prompt is None:
            prompt = estimate_request(self._request)
        if completion is None:
            completion = sum(map(estimate_tokens, [*self._said, *map("".join, self._calls.values())]))
        return Usage(1, prompt, completion, usage.get("cost"))  # OpenRouter's cost, in US dollars; `Measure` checks


def streams(chosen: bool | None, request: Request, on_text: OnText | None) -> bool:
    """Return whether to stream a reply: as chosen, or else while somebody watches, except calls of functions, which
    some servers stream wrongly."""
    return on_text is not None and not isinstance(request.constraint, CallConstraint) if chosen is None else chosen


def answer_in(thinking: str) -> tuple[str, str]:
    """Return thoughts and the JSON object that ends them, if any: the answer of a model whose server took all that it
    wrote for thinking."""
    whole = thinking.rstrip()
    start = whole.find("{") if whole.endswith("}") else -1
    for _ in range(MOST_OBJECTS):
        if start < 0:
            break
        try:
            found = json.loads(whole[start:])
        except (ValueError, RecursionError):
            start = whole.find("{", start + 1)
            continue
        return (whole[:start], whole[start:]) if isinstance(found, dict) else (thinking, "")
    return thinking, ""


def _parts(message: Mapping[str, Any], kind: Literal["text", "thinking"]) -> str:
    content = message.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    kinds = ("text", "output_text") if kind == "text" else ("thinking", "reasoning")
    found = [part.get("text") or part.get(kind) for part in parts if part.get("type") in kinds]
    return "".join(text for text in found if isinstance(text, str))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
