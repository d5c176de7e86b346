"""The embedded engine: a small game world of its own, stepped or in real time."""
