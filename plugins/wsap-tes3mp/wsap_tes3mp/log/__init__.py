"""The command log: every command with the perception that led to it and what came of it, in SQLite."""
