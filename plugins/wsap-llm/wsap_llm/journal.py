"""Where one agent's calls to its models and tools are kept, and had again from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from wsap_core.errors import WireError
from wsap_core.protocol import Tool
from wsap_core.protocol.wire import Codec
from wsap_core.seams.model import Abilities, Reply, Request
from wsap_core.seams.model_errors import BackendError
from wsap_llm.lookup import call_key

BROKEN_OFF = "The call was broken off. Whether anything was done is not known."
"""The result of a call to a tool that began and never came to an end."""

_OPEN = None
"""In place of a result: the call has begun, and no more is recorded of it."""


@runtime_checkable
class CallJournal(Protocol):
    """The journal of one agent: the kernel's `Journal` with what the agent `llm` writes and reads there; a runtime
    implements it. What comes of requests is kept in order, under the key of each."""

    tools: ToolJournal
    """The calls to the agent's tools."""

    @property
    def offline(self) -> bool:
        """Whether a recorded run is played again, so that no model may be asked. What is had again is then recorded
        once more: a replayed run is a whole run, too."""

    def next(self, key: str, request: Request) -> Reply | BackendError | None:
        """Return what came of a request when it was recorded, each time that it was sent once; None if there is no
        more."""

    def add(self, key: str, request: Request, reply: Reply) -> None:
        """Record a new reply."""

    def fail(self, key: str, error: BackendError) -> None:
        """Record that a request failed, and that the caller went on."""

    async def asking(self, key: str) -> None:
        """Return once it is known, where that matters, that a request is sent: a process that dies before the reply is
        kept has it asked again, and counted."""

    def ask_failed(self, key: str) -> None:
        """Keep, where that matters, that the request that was sent gave no reply."""

    def refuse(self, key: str, reason: str) -> None:
        """Keep that the constraint of a request was refused, and in which words."""

    def refusal(self, key: str) -> str | None:
        """Return in which words the constraint of a request was refused, or None."""

    def note_model(self, address: str, abilities: Abilities, prompts: str) -> None:
        """Record what a model can do, and the version of the prompt templates."""

    def abilities(self, address: str) -> Abilities:
        """Return what the recorded model could do."""


class ToolJournal:
    """Keeps an agent's calls to its tools, in two kinds of events: `tools` (what a source of tools, such as a server,
    offered, because prompts are made of it) and `tool` (a call: once when it begins, and again with its result).

    Args:
        write: records an event, given its kind and body.
        offline: whether a recorded run is played again, so that nothing outside may be called.
    """

    def __init__(self, write: Callable[[str, Mapping[str, Any]], None], *, offline: bool = False) -> None:
        self.offline = offline
        """Whether a recorded run is played again."""
        self._write = write
        self._calls: dict[str, deque[Mapping[str, Any] | None]] = {}
        self._offers: dict[str, tuple[Tool, ...]] = {}
        self._noted: set[str] = set()

    def take(self, event: Mapping[str, Any]) -> bool:
        """Take a recorded event, and return whether it is one of this journal's; raise WireError if it is damaged."""
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
                calls.pop()  # what has begun is followed by what came of it
            calls.append({"state": None, **event} if "result" in event else _OPEN)
            return True
        except (KeyError, TypeError) as error:
            raise WireError(f"A recorded call to a tool is damaged: {error}.") from error

    def offered(self, source: str) -> tuple[Tool, ...] | None:
        """Return what a source offered when the run was begun; None where nothing is recorded of it."""
        return self._offers.get(source)

    def note_offer(self, source: str, tools: Sequence[Tool]) -> None:
        """Record what a source offers, unless this run's log has it."""
        known = self._offers.setdefault(source, tuple(tools))
        if source not in self._noted:
            self._noted.add(source)
            self._write("tools", {"offers": source, "tools": list(known)})

    def next(self, name: str, parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the recorded call that this one is, each once; None if there is no more of them.

        One that was broken off is now recorded as such.
        """
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
        """Record that a tool is about to be called."""
        self._write("tool", {"tool": name, "parameters": dict(parameters)})

    def end(self, name: str, parameters: Mapping[str, Any], result: str, state: bytes | None) -> Mapping[str, Any]:
        """Record what came of a call, and what the tool keeps since; return the recorded call."""
        kept = None if state is None else state.hex()
        call = {"tool": name, "parameters": dict(parameters), "result": result, "state": kept}
        self._write("tool", call)
        return call
