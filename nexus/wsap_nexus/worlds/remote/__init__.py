"""Worlds in another process, over HTTP: both sides."""
