"""Recorded runs as they are shown: listed, as conversations, and restored to a step."""
