"""The tool source of MCP servers, registered as the tool `mcp`."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from wsap_core.protocol import Tool
from wsap_core.seams.context import Context
from wsap_core.untrusted import single_line
from wsap_llm.mcp.config import ServerConfig, read_servers
from wsap_llm.mcp.connection import Connection, Tell, sdk_missing
from wsap_llm.mcp.mapping import UnusableToolError, tool_of


@dataclass(frozen=True)
class RemoteTool:
    """A tool of a server. Its results are untrusted data, never instructions."""

    connection: Connection
    name: str
    """The server's name of the tool."""
    definition: Tool
    """The tool as offered to the agent."""

    def run(self, parameters: Mapping[str, Any]) -> Awaitable[str]:
        """Return the result, or one line with the error. Any: parameters of every type."""
        return self.connection.call(self.name, parameters)


class McpTools:
    """Connects to servers when opened, and offers their tools; reports each problem with a server once."""

    def __init__(self, servers: Sequence[ServerConfig], tell: Tell) -> None:
        self._servers = tuple(servers)
        self._tell = tell
        self._connections: list[Connection] = []

    async def open(self) -> Sequence[RemoteTool]:
        """Return the tools of all servers, in their order.

        Raises MissingServiceError if the SDK is not installed, and ToolServerError if a server can't be reached: before
        a run rather than during it.
        """
        found: list[RemoteTool] = []
        for server in self._servers:
            connection = Connection(server, self._tell)
            self._connections.append(connection)
            kept: dict[str, RemoteTool] = {}
            theirs: set[str] = set()
            for tool in await connection.open():
                if server.tools is not None and tool.name not in server.tools:
                    continue
                try:
                    made = tool_of(tool.name, tool.description, tool.input_schema, prefix=server.prefix)
                    if made.name in kept:
                        raise UnusableToolError("another tool has the same name")
                except UnusableToolError as problem:
                    self._leave_out(server, tool.name, str(problem))
                    continue
                kept[made.name] = RemoteTool(connection, tool.name, made)
                theirs.add(tool.name)
            found += kept.values()
            for name in sorted(set(server.tools or ()) - theirs):
                self._tell(f"The tool server {server.name} has no usable tool {name!r}.")
        return found

    async def aclose(self) -> None:
        """Close all connections and end the programs."""
        while self._connections:
            await self._connections.pop().aclose()

    def _leave_out(self, server: ServerConfig, tool: str, why: str) -> None:
        self._tell(f"The tool {single_line(tool)[:60]!r} of the tool server {server.name} is left out: {why}.")


def create(context: Context) -> McpTools:
    """Return the tools of the configured servers; for the options see `config.py`. Raises ConfigError if an option is
    missing, unknown or invalid, and MissingServiceError if the SDK is not installed."""
    servers = read_servers(context.config)
    if importlib.util.find_spec("mcp") is None:
        raise sdk_missing()
    return McpTools(servers, context.services.progress or logging.getLogger("wsap.mcp").warning)
