"""Games and the nexus for MCP clients: chats, IDEs and agents that speak the Model Context Protocol."""
