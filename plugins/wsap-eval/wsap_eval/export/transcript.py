"""The conversations with models in a recorded episode."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from wsap_core.errors import UnknownNameError, WireError
from wsap_core.seams.model import FunctionCall, Message
from wsap_core.seams.services import RunReader
from wsap_core.untrusted import strip_control

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True)
class Turn:
    """A message."""

    role: Role
    text: str
    thinking: str = ""
    """The model's reasoning before a reply."""
    model: str = ""
    """The model of a reply; empty for other messages."""
    time: float = 0.0
    """When the call was recorded, in seconds since 1970."""


def transcript(runs: RunReader, run: str, seats: Collection[str]) -> Iterator[Turn]:
    """Yield the conversations of seats with their models in order, each message once; empty for an unknown run.

    Raises WireError if an event of the run is damaged.
    """
    models: dict[str, str] = {}
    try:
        for event in runs.events(run, "model", "call"):
            if event["seat"] not in seats:
                continue
            body = event["body"]
            if event["kind"] == "model":
                models[event["seat"]] = str(body["model"])
                continue
            for message in body.get("messages", ()):
                yield Turn(_role(message["role"]), _text(message["content"]))
            reply = body["reply"]
            thinking = strip_control(str(reply.get("thinking") or ""))
            calls = [FunctionCall(call["name"], call["arguments"]) for call in reply.get("calls", ())]
            text = str(body.get("prefill") or "") + Message("assistant", reply["text"], calls).text()
            yield Turn("assistant", strip_control(text), thinking, models.get(event["seat"], ""))
    except UnknownNameError:
        return
    except (KeyError, TypeError) as error:
        raise WireError(f"Run {run!r} has a damaged event of a model call: {error}.") from error


def _role(given: object) -> Role:
    return "system" if given == "system" else "assistant" if given == "assistant" else "user"


def _text(content: Any) -> str:  # Any: JSON, a text or parts
    parts = [content] if isinstance(content, str) else [part.get("text") or "[image]" for part in content]
    return strip_control("\n".join(map(str, parts)))
