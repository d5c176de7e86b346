"""The calls of agents to their tools, kept in the event log and had again from it.

Two kinds of events: `tools` (what a source of tools, such as a server, offered, because prompts are
made of it) and `tool` (a call: once when it begins, and again with its result). A tool that works on
something outside the agent is called once for each recorded call, whatever happens afterwards: going
on with a run and playing it again take the recorded result. A tool whose doing stays within the
agent (`inward`) is run again, because that is how the agent comes to have what it then had.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from wsap_core.errors import UsageError, WireError
from wsap_core.protocol import Tool
from wsap_core.protocol.wire import Codec
from wsap_core.seams.game import Snapshots
from wsap_core.seams.tool import AgentTool, ToolSource
from wsap_llm.lookup import call_key, use

BROKEN_OFF = "The call was broken off. Whether anything was done is not known."
"""The result of a call that began and never came to an end."""

_OPEN = None
"""In place of a result: the call has begun, and no more is recorded of it."""


class ToolRecorder(Protocol):
    """Where the calls of tools are recorded."""

    def tools(self, seat: str, body: Mapping[str, Any]) -> None:
        """Record what a source of tools offered."""
        ...

    def tool(self, seat: str, body: Mapping[str, Any]) -> None:
        """Record a call that begins, or its result."""
        ...


class ToolJournal:
    """Keeps one seat's calls to its tools; `offline` if a recorded run is played again, so that nothing outside may be
    called."""

    def __init__(self, recorder: ToolRecorder, seat: str, *, offline: bool = False) -> None:
        self.offline = offline
        """Whether a recorded run is played again."""
        self._recorder = recorder
        self._seat = seat
        self._calls: dict[str, list[Mapping[str, Any] | None]] = {}
        self._seen: dict[str, int] = {}
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
            calls = self._calls.setdefault(call_key(event["tool"], event["parameters"]), [])
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
            self._recorder.tools(self._seat, {"offers": source, "tools": list(known)})

    def next(self, name: str, parameters: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the recorded call that this one is, and count it; None if there is no more of them.

        One that was broken off is now recorded as such.
        """
        key = call_key(name, parameters)
        calls = self._calls.get(key, [])
        at = self._seen.get(key, 0)
        if at >= len(calls):
            return None
        self._seen[key] = at + 1
        call = calls[at]
        if call is _OPEN:
            return self._end(name, parameters, BROKEN_OFF, None)
        if self.offline:
            self.begin(name, parameters)
            self._recorder.tool(self._seat, call)
        return call

    def begin(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Record that a tool is about to be called."""
        self._recorder.tool(self._seat, {"tool": name, "parameters": dict(parameters)})

    def end(self, name: str, parameters: Mapping[str, Any], result: str, state: bytes | None) -> None:
        """Record what came of a call, and what the tool keeps since."""
        key = call_key(name, parameters)
        self._calls.setdefault(key, []).append(self._end(name, parameters, result, state))
        self._seen[key] = len(self._calls[key])

    def _end(self, name: str, parameters: Mapping[str, Any], result: str, state: bytes | None) -> Mapping[str, Any]:
        call = {
            "tool": name,
            "parameters": dict(parameters),
            "result": result,
            "state": None if state is None else state.hex(),
        }
        self._recorder.tool(self._seat, call)
        return call


class RecordedTool:
    """A tool whose calls are recorded, and had again where they are recorded already."""

    def __init__(self, tool: AgentTool, journal: ToolJournal) -> None:
        self.tool = tool
        """The tool itself."""
        self.definition = tool.definition
        self._journal = journal

    async def run(self, parameters: Mapping[str, Any]) -> str:
        """Return the result: the recorded one, or a new one. Any: parameters of every type."""
        name, inward = self.definition.name, getattr(self.tool, "inward", False) is True
        call = self._journal.next(name, parameters)
        if call is not None:
            if inward:
                await use(self.tool, parameters)  # for what it does; what it said then is what counts
            elif call["state"] is not None and isinstance(self.tool, Snapshots):
                self.tool.restore(bytes.fromhex(call["state"]))
            return str(call["result"])
        if self._journal.offline:
            raise UsageError(f"The recorded run has no such call to the tool {name!r}.")
        self._journal.begin(name, parameters)
        try:
            result = await use(self.tool, parameters)
        except asyncio.CancelledError:
            self._journal.end(name, parameters, BROKEN_OFF, None)
            raise
        kept = self.tool.snapshot() if not inward and isinstance(self.tool, Snapshots) else None
        self._journal.end(name, parameters, result, kept)
        return result


class RecordedKeeper(RecordedTool):
    """The same for a tool that keeps something of its own."""

    def snapshot(self) -> bytes:
        """Return what the tool keeps."""
        assert isinstance(self.tool, Snapshots), "`recorded` has looked"
        return self.tool.snapshot()

    def restore(self, data: bytes) -> None:
        """Have the tool keep what it kept; raise SnapshotError if the data is damaged."""
        assert isinstance(self.tool, Snapshots), "`recorded` has looked"
        self.tool.restore(data)


def recorded(tool: AgentTool, journal: ToolJournal) -> RecordedTool:
    """Return a tool whose calls are recorded; one that offers a snapshot still does."""
    return RecordedKeeper(tool, journal) if isinstance(tool, Snapshots) else RecordedTool(tool, journal)


class RecordedSource:
    """A source of tools that offers, in all of a run, what it offered when the run was begun.

    What it no longer has says so when it is called; what it has come to have since is left out, because prompts that
    were recorded don't know of it. Without a `source` nobody is asked, and it lives on what is recorded.
    """

    def __init__(self, name: str, source: ToolSource | None, journal: ToolJournal) -> None:
        self._name = name
        self._source = source
        self._journal = journal

    async def open(self) -> Sequence[AgentTool]:
        """Return the tools; raise WsapError if the source can't be opened."""
        live = {} if self._source is None else {t.definition.name: t for t in await self._source.open()}
        offered = self._journal.offered(self._name)
        if offered is None:
            offered = tuple(tool.definition for tool in live.values())
        self._journal.note_offer(self._name, offered)
        tools = ((definition, live.get(definition.name)) for definition in offered)
        return [recorded(t if t is not None and t.definition == d else _Offered(d, t), self._journal) for d, t in tools]

    async def aclose(self) -> None:
        """Close the source."""
        if self._source is not None:
            await self._source.aclose()


class _Offered:
    """A tool of a source, as it was described when the run was begun."""

    def __init__(self, definition: Tool, tool: AgentTool | None) -> None:
        self.definition = definition
        self._tool = tool

    def run(self, parameters: Mapping[str, Any]) -> str | Awaitable[str]:
        """Return the tool's result. Any: parameters of every type."""
        if self._tool is None:
            return f"The tool {self.definition.name} is not there any more; do without it."
        return self._tool.run(parameters)
