"""The tools of one agent, made from their specs, opened and closed together."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from wsap_core.errors import DuplicateNameError, PluginError
from wsap_core.factories import build
from wsap_core.seams.tool import AgentTool, ToolContext, ToolSource
from wsap_core.specs import ToolSpec


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
        self._opened: list[ToolSource] = []
        self._tools: Sequence[AgentTool] | None = None

    async def open(self) -> Sequence[AgentTool]:
        """Return all tools, those of sources in their place; the same ones until the box is closed.

        Raises:
            DuplicateNameError: two tools have one name.
            WsapError: a source can't be opened; those opened before it are closed.
        """
        if self._tools is not None:
            return self._tools
        tools: dict[str, AgentTool] = {}
        try:
            for item in self._built:
                for tool in await self._tools_of(item):
                    name = tool.definition.name
                    if name in tools:
                        raise DuplicateNameError(f"Two tools are called {name!r}; leave one out, or give it a prefix.")
                    tools[name] = tool
        except BaseException:
            await self.aclose()
            raise
        self._tools = tuple(tools.values())
        return self._tools

    async def aclose(self) -> None:
        """Close every source that was opened, the last one first, also where closing another fails."""
        self._tools = None
        async with contextlib.AsyncExitStack() as closing:
            while self._opened:
                closing.push_async_callback(self._opened.pop(0).aclose)

    async def _tools_of(self, item: AgentTool | ToolSource) -> Sequence[AgentTool]:
        if isinstance(item, AgentTool):
            return [item]
        self._opened.append(item)  # first, so that one that fails half-way is closed, too
        return await item.open()
