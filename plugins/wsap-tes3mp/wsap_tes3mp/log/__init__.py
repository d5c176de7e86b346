"""The command log: every command with what led to it and what came of it."""
