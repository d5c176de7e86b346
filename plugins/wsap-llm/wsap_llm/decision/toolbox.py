"""The tools of one agent: creation from specs, opening and closing, and recording of calls.

A tool with outside effects is called once for each recorded call; resuming or replaying a run takes the recorded
result. A tool that only affects the agent (`inward`) is run again to restore the agent's state.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from wsap_core.errors import DuplicateNameError, PluginError, RecordMismatchError
from wsap_core.factories import build
from wsap_core.protocol import Tool
from wsap_core.seams.game import Snapshots
from wsap_core.seams.tool import AgentTool, ToolContext, ToolSource
from wsap_core.specs import ToolSpec
from wsap_llm.journal import BROKEN_OFF, ToolJournal
from wsap_llm.tools.lookup import use


def build_tool(spec: ToolSpec, context: ToolContext) -> AgentTool | ToolSource:
    """Return the tool or tool source of a spec. Raises PluginError if its factory can't be loaded, raises, or returns
    something else, and any WsapError of the factory."""
    built: object = build(spec.factory, context)
    if not isinstance(built, AgentTool | ToolSource):
        raise PluginError(
            f"The factory of the tool {spec.name!r} returned a {type(built).__name__}, not a tool or tool source."
        )
    return built


class Toolbox:
    """Opens and closes the tools and tool sources of one agent."""

    def __init__(self, built: Sequence[AgentTool | ToolSource]) -> None:
        self._built = tuple(built)
        self._tools: Sequence[AgentTool] | None = None
        self._opened = contextlib.AsyncExitStack()

    async def open(self) -> Sequence[AgentTool]:
        """Return all tools in order, including those of sources; the same ones until the toolbox is closed.

        Raises DuplicateNameError if two tools have the same name, and WsapError if a source can't be opened; opened
        sources are closed then.
        """
        if self._tools is not None:
            return self._tools
        tools: dict[str, AgentTool] = {}
        async with contextlib.AsyncExitStack() as opened:
            for item in self._built:
                if isinstance(item, AgentTool):
                    found: Sequence[AgentTool] = [item]
                else:
                    opened.push_async_callback(item.aclose)  # before opening, so that a failed source is closed, too
                    found = await item.open()
                for tool in found:
                    name = tool.definition.name
                    if name in tools:
                        raise DuplicateNameError(f"Two tools are named {name!r}; remove one, or give it a prefix.")
                    tools[name] = tool
            self._opened = opened.pop_all()
        self._tools = tuple(tools.values())
        return self._tools

    async def aclose(self) -> None:
        """Close all opened sources, the last one first, even if one fails."""
        self._tools = None
        await self._opened.aclose()


class RecordedTool:
    """A tool whose calls are recorded, or replayed if they have been recorded."""

    def __init__(self, tool: AgentTool, journal: ToolJournal) -> None:
        self.tool = tool
        """The tool itself."""
        self.definition = tool.definition
        self._journal = journal

    async def run(self, parameters: Mapping[str, Any]) -> str:
        """Return the recorded result or a new one. Any: parameters of every type."""
        name, inward = self.definition.name, getattr(self.tool, "inward", False) is True
        call = self._journal.next(name, parameters)
        if call is not None:
            if inward:
                await use(self.tool, parameters)  # for its effects; the recorded result counts
            elif call["state"] is not None and isinstance(self.tool, Snapshots):
                self.tool.restore(bytes.fromhex(call["state"]))
            return str(call["result"])
        if self._journal.offline:
            raise RecordMismatchError(
                f"The recorded run has no further call of the tool {name!r} with these parameters."
            )
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
    """A recorded tool with a snapshot."""

    def snapshot(self) -> bytes:
        """Return the tool's snapshot."""
        assert isinstance(self.tool, Snapshots), "checked by `recorded`"
        return self.tool.snapshot()

    def restore(self, data: bytes) -> None:
        """Restore the tool's snapshot; raise SnapshotError if the data is damaged."""
        assert isinstance(self.tool, Snapshots), "checked by `recorded`"
        self.tool.restore(data)


def recorded(tool: AgentTool, journal: ToolJournal) -> RecordedTool:
    """Return a tool whose calls are recorded, with a snapshot if the tool has one."""
    return RecordedKeeper(tool, journal) if isinstance(tool, Snapshots) else RecordedTool(tool, journal)


class RecordedSource:
    """A tool source that offers the same tools throughout a run, because they are part of recorded prompts.

    Tools that no longer exist return a message when called; new ones are left out. Without a `source` all calls are
    replayed.
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
    """A tool of a source with its definition from the start of the run."""

    def __init__(self, definition: Tool, tool: AgentTool | None) -> None:
        self.definition = definition
        self._tool = tool

    def run(self, parameters: Mapping[str, Any]) -> str | Awaitable[str]:
        # Any: parameters of every type.
        if self._tool is None:
            return f"The tool {self.definition.name} is not there any more; do without it."
        return self._tool.run(parameters)
