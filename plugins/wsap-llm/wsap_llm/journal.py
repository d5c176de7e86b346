"""The journal that records one agent's calls to models and tools, and replays them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from wsap_core.errors import WireError
from wsap_core.protocol import Tool
from wsap_core.protocol.wire import Codec
from wsap_core.seams.model import Abilities, Reply, Request
from wsap_core.seams.model_errors import BackendError
from wsap_llm.tools.lookup import call_key

BROKEN_OFF = "The call was broken off. Whether anything was done is not known."
"""The result of a tool call that was started but never finished."""

_OPEN = None
"""In place of a result: the call was started and nothing else is recorded."""


@runtime_checkable
class CallJournal(Protocol):
    """The kernel's `Journal` of one agent with the records of the agent `llm`; implemented by a runtime. It stores the
    outcomes of requests in order, by key."""

    tools: ToolJournal
    """The calls to the agent's tools."""

    @property
    def offline(self) -> bool:
        """Whether a recorded run is replayed, so that no model may be asked. Replayed outcomes are recorded again: a
        replayed run is a complete run, too."""

    def next(self, key: str, request: Request) -> Reply | BackendError | None:
        """Return the next recorded outcome of a request; None if there are no more."""

    def add(self, key: str, request: Request, reply: Reply) -> None:
        """Record a new reply."""

    def fail(self, key: str, error: BackendError) -> None:
        """Record that a request failed and the caller continued."""

    async def asking(self, key: str) -> None:
        """Store, if required, that a request is being sent: if the process dies before the reply is stored, the request
        is sent again and counted."""

    def ask_failed(self, key: str) -> None:
        """Store, if required, that a sent request yielded no reply."""

    def refuse(self, key: str, reason: str) -> None:
        """Record that the constraint of a request was refused, with the message."""

    def refusal(self, key: str) -> str | None:
        """Return the message with which the constraint of a request was refused, or None."""

    def note_model(self, address: str, abilities: Abilities, prompts: str) -> None:
        """Record a model's abilities and the version of the prompt templates."""

    def abilities(self, address: str) -> Abilities:
        """Return the abilities of the recorded model."""


class ToolJournal:
    """Records an agent's tool calls in two kinds of events: `tools`, the tools of a source such as a server, which are
    part of prompts, and `tool`, a call, once when it starts and again with its result.

    `write` records an event, given its kind and body; `offline` if a recorded run is replayed without calling tools.
    """

    def __init__(self, write: Callable[[str, Mapping[str, Any]], None], *, offline: bool = False) -> None:
        self.offline = offline
        """Whether a recorded run is replayed."""
        self._write = write
        self._calls: dict[str, deque[Mapping[str, Any] | None]] = {}
        self._offers: dict[str, tuple[Tool, ...]] = {}
        self._noted: set[str] = set()

    def take(self, event: Mapping[str, Any]) -> bool:
        """Load a recorded event and return whether it belongs to this journal; raise WireError if it is damaged."""
        try:
            if "offers" in event:
                self._offers[event["offers"]] = tuple(
                    Codec().decode(list[Tool], event["tools"], where="recorded tools")
                )
                return True
            if "tool" not in event:
                return False
            calls = self._calls.setdefault(call_key(event["tool"], event["parameters"]), deque())
            if calls and calls[-1] is _OPEN:
                calls.pop()  # replaced by the result
            calls.append({"state": None, **event} if "result" in event else _OPEN)
            return True
        except (KeyError, TypeError) as error:
            raise WireError(f"A recorded tool call is damaged: {error}.") from error

    def offered(self, source: str) -> tuple[Tool, ...] | None:
        """Return the recorded tools of a source; None if there are none."""
        return self._offers.get(source)

    def note_offer(self, source: str, tools: Sequence[Tool]) -> None:
        """Record the tools of a source, unless this run's log has them."""
        known = self._offers.setdefault(source, tuple(tools))
        if source not in self._noted:
            self._noted.add(source)
            self._write("tools", {"offers": source, "tools": list(known)})

    def next(self, name: str, parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the next recorded call with these arguments, or None; an unfinished one is recorded as interrupted."""
        calls = self._calls.get(call_key(name, parameters))
        if not calls:
            return None
        call = calls.popleft()
        if call is _OPEN:
            return self.end(name, parameters, BROKEN_OFF, None)
        if self.offline:
            self.begin(name, parameters)
            self._write("tool", call)
        return call

    def begin(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Record the start of a tool call."""
        self._write("tool", {"tool": name, "parameters": dict(parameters)})

    def end(self, name: str, parameters: Mapping[str, Any], result: str, state: bytes | None) -> Mapping[str, Any]:
        """Record the result of a call and the tool's new state; return the recorded call."""
        kept = None if state is None else state.hex()
        call = {"tool": name, "parameters": dict(parameters), "result": result, "state": kept}
        self._write("tool", call)
        return call
