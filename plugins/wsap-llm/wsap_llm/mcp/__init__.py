"""Tools of any server that speaks the Model Context Protocol, by configuration.

config       which servers, how they are reached, and their limits
mapping      their tools and results as this protocol's
connection   one server: started, called, given up on, and started again
source       the `ToolSource` that is registered as the tool `mcp`

The official SDK (`mcp`, an extra of this package) speaks the protocol; it is imported when a
server is first reached.
"""

from __future__ import annotations
