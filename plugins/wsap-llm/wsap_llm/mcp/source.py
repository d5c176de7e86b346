"""The tools of MCP servers as a source of tools; registered as the tool `mcp`."""

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
    """A tool of a server. What it answers is text of somebody else's: data, and never an instruction."""

    connection: Connection
    name: str
    """As the server calls it."""
    definition: Tool
    """Its name, what it does, and what it takes, as far as the server told."""

    def run(self, parameters: Mapping[str, Any]) -> Awaitable[str]:
        """Return what the server answers, or one line that says why it doesn't. Any: parameters of every type."""
        return self.connection.call(self.name, parameters)


class McpTools:
    """Reaches servers when opened, and offers their tools; tells a person once what is wrong with a server."""

    def __init__(self, servers: Sequence[ServerConfig], tell: Tell) -> None:
        self._servers = tuple(servers)
        self._tell = tell
        self._connections: list[Connection] = []

    async def open(self) -> Sequence[RemoteTool]:
        """Return the tools of all servers, in the order they list them.

        Raises MissingServiceError if the SDK is not installed, and ToolServerError if a server can't be reached now,
        which is sooner told before a run than in it.
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
                        raise UnusableToolError("another one has its name here")
                except UnusableToolError as problem:
                    self._leave_out(server, tool.name, str(problem))
                    continue
                kept[made.name] = RemoteTool(connection, tool.name, made)
                theirs.add(tool.name)
            found += kept.values()
            for name in sorted(set(server.tools or ()) - theirs):
                self._tell(f"The tool server {server.name} has no tool {name!r} that could be used.")
        return found

    async def aclose(self) -> None:
        """Give back all connections, and end the programs."""
        while self._connections:
            await self._connections.pop().aclose()

    def _leave_out(self, server: ServerConfig, tool: str, why: str) -> None:
        self._tell(f"The tool {single_line(tool)[:60]!r} of the tool server {server.name} is left out: {why}.")


def create(context: Context) -> McpTools:
    """Return the tools of the servers that the options name; `config.py` says how. Raises ConfigError if an option is
    missing, unknown or wrong, and MissingServiceError if the SDK is not installed."""
    servers = read_servers(context.config)
    if importlib.util.find_spec("mcp") is None:
        raise sdk_missing()
    return McpTools(servers, context.services.progress or logging.getLogger("wsap.mcp").warning)
