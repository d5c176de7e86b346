"""Everything that a world says in its language: prompts, fallbacks, words."""

from __future__ import annotations
