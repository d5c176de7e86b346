"""A world that tells itself: characters with memories, and a game master who resolves their scenes."""

from __future__ import annotations
