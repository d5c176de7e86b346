"""Tools of any server that speaks the Model Context Protocol.

config       the configuration of servers and their limits
mapping      converts their tools and results to this protocol
connection   the connection to one server, with restarts
source       the `ToolSource` that is registered as the tool `mcp`

The official SDK (`mcp`, an extra of this package) is imported when a server is first used.
"""

from __future__ import annotations
