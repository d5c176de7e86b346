"""Agents that programs outside control, and agents of the nexus in runs outside of it."""
