"""The options of the agent `llm`, of backends, memories and tools: their table, and how they are read."""
