"""The bridge: perceptions and commands between agents and one engine, with a log of every command."""
