"""The tools of one agent, made from their specs, opened and closed together, and their calls recorded.

A tool that works on something outside the agent is called once for each recorded call, whatever happens afterwards:
going on with a run and playing it again take the recorded result. A tool whose doing stays within the agent (`inward`)
is run again, because that is how the agent comes to have what it then had.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from wsap_core.errors import DuplicateNameError, PluginError, UsageError
from wsap_core.factories import build
from wsap_core.protocol import Tool
from wsap_core.seams.game import Snapshots
from wsap_core.seams.tool import AgentTool, ToolContext, ToolSource
from wsap_core.specs import ToolSpec
from wsap_llm.journal import BROKEN_OFF, ToolJournal
from wsap_llm.lookup import use


def build_tool(spec: ToolSpec, context: ToolContext) -> AgentTool | ToolSource:
    """Return the tool of a spec, or a source of tools. Raises PluginError if its factory can't be loaded, raises, or
    gives something else, and WsapError if the factory says what it lacks."""
    built: object = build(spec.factory, context)
    if not isinstance(built, AgentTool | ToolSource):
        raise PluginError(
            f"The tool {spec.name!r} gave a {type(built).__name__}, which is neither a tool nor a source."
        )
    return built


class Toolbox:
    """Opens the tools and sources of tools of one agent, and closes them again."""

    def __init__(self, built: Sequence[AgentTool | ToolSource]) -> None:
        self._built = tuple(built)
        self._tools: Sequence[AgentTool] | None = None
        self._opened = contextlib.AsyncExitStack()

    async def open(self) -> Sequence[AgentTool]:
        """Return all tools, those of sources in their place; the same ones until the box is closed.

        Raises:
            DuplicateNameError: two tools have one name.
            WsapError: a source can't be opened; those opened before it are closed.
        """
        if self._tools is not None:
            return self._tools
        tools: dict[str, AgentTool] = {}
        async with contextlib.AsyncExitStack() as opened:
            for item in self._built:
                if isinstance(item, AgentTool):
                    found: Sequence[AgentTool] = [item]
                else:
                    opened.push_async_callback(item.aclose)  # first, so that one that fails half-way is closed, too
                    found = await item.open()
                for tool in found:
                    name = tool.definition.name
                    if name in tools:
                        raise DuplicateNameError(f"Two tools are called {name!r}; leave one out, or give it a prefix.")
                    tools[name] = tool
            self._opened = opened.pop_all()
        self._tools = tuple(tools.values())
        return self._tools

    async def aclose(self) -> None:
        """Close every source that was opened, the last one first, also where closing another fails."""
        self._tools = None
        await self._opened.aclose()


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
