"""Agents' model calls, with the pictures in them, recorded in the event log and replayed from it."""

from __future__ import annotations

import base64
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol.wire import encode
from wsap_core.seams.agent import Usage
from wsap_core.seams.model import Abilities, Finish, FunctionCall, ImagePart, Message, Part, Reply, Request, TextPart
from wsap_core.seams.model_errors import BackendError
from wsap_llm.journal import ToolJournal
from wsap_llm.middleware.record import failure_of, kind_of
from wsap_llm.text.pictures import size_of
from wsap_nexus.runs.record.recorder import Recorder

# Any, in this module: JSON.

REMEMBERED = 65_536
"""Number of recorded pictures that are remembered; one shown again after so many others is recorded again."""


class PictureBook:
    """The pictures of one run, over all its seats; new ones are recorded as events `picture`."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[str, None] = {}

    def keep(self, messages: Iterable[Message]) -> list[Message | dict[str, Any]]:
        """Return messages with calls as text and each picture replaced by its name, and record new pictures first."""
        plain = [Message(m.role, m.text()) if m.calls else m for m in messages]
        return [m if isinstance(m.content, str) else self._kept(m.role, m.content) for m in plain]

    def note(self, messages: Iterable[Mapping[str, Any]]) -> None:
        """Remember the pictures that recorded messages name: they are in the log."""
        for message in messages:
            for part in parts_of(message):
                if "sha256" in part:
                    self._remember(str(part["sha256"]))

    def _kept(self, role: str, content: Iterable[Part]) -> dict[str, Any]:
        return {"role": role, "content": [p if isinstance(p, TextPart) else self._named(p) for p in content]}

    def _named(self, picture: ImagePart) -> dict[str, Any]:
        name = picture.sha256
        width, height = size_of(picture) or (0, 0)
        about = {"sha256": name, "media_type": picture.media_type, "width": width, "height": height}
        if name not in self._known:
            self._recorder.write("picture", {**about, "base64": picture.base64})
        self._remember(name)
        return {**about, "alt": picture.alt}

    def _remember(self, name: str) -> None:
        self._known.pop(name, None)
        self._known[name] = None
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]


def parts_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a recorded message; empty if it is plain text."""
    content = message["content"]
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


def recorded_text(message: Mapping[str, Any]) -> str:
    """Return a recorded message as text, each picture as `[image 64x64]`; WireError if it is damaged."""
    try:
        content = message["content"]
        if isinstance(content, str):
            return content
        texts = [p["text"] if "text" in p else _in_words(p) for p in parts_of(message)]
        return "\n".join(str(text) for text in texts if text)
    except (KeyError, TypeError) as error:
        raise WireError(f"A recorded message is damaged: {error}.") from error


def read_picture(event: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the name and content of a picture from the body of an event `picture`; WireError if it is damaged."""
    try:
        return str(event["sha256"]), base64.b64decode(event["base64"], validate=True)
    except (ValueError, KeyError, TypeError) as error:
        raise WireError(f"A recorded picture is damaged: {error}.") from error


def _in_words(part: Mapping[str, Any]) -> str:
    return f"[image {part['width']}x{part['height']}]" if part["width"] else "[image]"


class SeatJournal:
    """Records one seat's model calls, and replays those recorded before.

    A request is recorded without the messages that it shares with the previous one, because conversations only grow
    between two cuts. Pictures are named by their hash, and recorded once.

    Args:
        past: recorded events `call`, `model` and `refusal` of this seat, oldest first.
        offline: no model may be called: a recorded run is replayed.
        pictures: the pictures of the whole run; by default of this seat alone.
    """

    def __init__(
        self,
        recorder: Recorder,
        seat: str,
        past: Iterable[Mapping[str, Any]] = (),
        *,
        offline: bool = False,
        pictures: PictureBook | None = None,
    ) -> None:
        self._pictures = pictures or PictureBook(recorder)
        self._recorder = recorder
        self._seat = seat
        self.offline = offline
        """Whether a recorded run is replayed."""
        self._careful = recorder.careful and not offline
        self._outcomes: dict[str, deque[Reply | BackendError]] = {}
        self._refusals: dict[str, str] = {}
        self._models: dict[str, Abilities] = {}
        self._shown: tuple[Message, ...] = ()
        self.tools = ToolJournal(partial(recorder.write, seat=seat), offline=offline)
        """The seat's tool calls."""
        for event in past:
            self._take(event)

    def next(self, key: str, request: Request) -> Reply | BackendError | None:
        """Return the next recorded outcome of a request, each one once; None if there is none left."""
        outcomes = self._outcomes.get(key)
        outcome = outcomes.popleft() if outcomes else None
        if self.offline:
            match outcome:
                case BackendError():
                    self.fail(key, outcome)
                case Reply():
                    self.add(key, request, outcome)
        return outcome

    def add(self, key: str, request: Request, reply: Reply) -> None:
        """Record a call."""
        shared = _shared(self._shown, request.messages)
        self._shown = tuple(request.messages)
        body = {
            "key": key,
            "purpose": request.purpose,
            "shared": shared,
            "messages": self._pictures.keep(request.messages[shared:]),
            "prefill": request.prefill,
            "stop": list(request.stop),
            "constraint": request.constraint,
            "sampling": request.sampling,
            "thinking": request.thinking,
            "options": request.options,
            "reply": reply,
        }
        self._recorder.write("call", body, seat=self._seat)

    async def asking(self, key: str) -> None:
        """If the recorder is careful, record that a request is sent, and return once that is committed."""
        if self._careful:
            self._recorder.asked([key], seat=self._seat)
            await self._recorder.committed()

    def ask_failed(self, key: str) -> None:
        """If the recorder is careful, record that a request got no reply."""
        if self._careful:
            self._recorder.asked([], seat=self._seat, failed=key)

    def refuse(self, key: str, reason: str) -> None:
        """Record that the constraint of a request was refused, so that replies are no longer constrained."""
        self._refusals[key] = reason
        self._recorder.write("refusal", {"key": key, "refused": reason}, seat=self._seat)

    def refusal(self, key: str) -> str | None:
        """Return why the constraint of a request was refused; None if it was not."""
        reason = self._refusals.get(key)
        if self.offline and reason is not None:
            self.refuse(key, reason)
        return reason

    def fail(self, key: str, error: BackendError) -> None:
        """Record that a request failed and the caller continued."""
        failed = {"key": key, "failed": kind_of(error), "words": str(error)}
        self._recorder.write("failure", failed, seat=self._seat)

    def note_model(self, address: str, abilities: Abilities, prompts: str) -> None:
        """Record a model's abilities and the version of the templates, as prompts depend on both."""
        if self._models.get(address) != abilities or self.offline:
            self._models[address] = abilities
            told = {"model": address, "abilities": encode(abilities), "prompts": prompts}
            self._recorder.write("model", told, seat=self._seat)

    def abilities(self, address: str) -> Abilities:
        """Return the recorded abilities of a model."""
        return self._models.get(address, Abilities())

    def _take(self, event: Mapping[str, Any]) -> None:
        try:
            if "abilities" in event:
                self._models[event["model"]] = Abilities(**event["abilities"])
                return
            if self.tools.take(event):
                return
            if "refused" in event:
                self._refusals[event["key"]] = event["refused"]
                return
            failed = failure_of(event["failed"], event["words"]) if "failed" in event else None
            self._outcomes.setdefault(event["key"], deque()).append(failed or read_reply(event["reply"]))
            if not self.offline:  # a replay is recorded in its own log, with all pictures
                self._pictures.note(event.get("messages", ()))
        except (KeyError, TypeError) as error:
            raise WireError(f"A recorded call to a model is damaged: {error}.") from error


def read_reply(data: Mapping[str, Any]) -> Reply:
    """Return a recorded reply; KeyError or TypeError if it is damaged."""
    finish = data["finish"]
    ended = Finish(
        finish["reason"],
        finish["stop_sequence"],
        Usage(**finish["usage"]),
        tuple(finish["probabilities"]),
        finish["served"],
    )
    calls = tuple(FunctionCall(call["name"], call["arguments"]) for call in data.get("calls", ()))
    return Reply(data["text"], data["thinking"], ended, calls)


def chances_of(call: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    """Return the scored options of a recorded call with their probabilities; empty if no options were scored.

    Raises KeyError, TypeError or ValueError if it is damaged.
    """
    found = call["reply"]["finish"]["probabilities"]
    return zip(call["constraint"]["options"], map(float, found), strict=True) if found else ()


def _shared(before: Sequence[Message], now: Sequence[Message]) -> int:
    count = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            break
        count += 1
    return count
