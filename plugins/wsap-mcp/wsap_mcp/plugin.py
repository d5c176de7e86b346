"""The registration of the command; its implementation is imported on first use."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import CommandSpec


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Offer `wsap mcp`."""
    return [CommandSpec("mcp", "Let an MCP client play games, or live in the nexus.", "wsap_mcp.command:mcp")]
