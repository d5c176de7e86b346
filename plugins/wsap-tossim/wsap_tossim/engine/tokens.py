"""The token count of a text, for rules with a daily token limit.

This is a game rule, not an estimate of a model's tokenizer: it must not change, because recorded games are replayed
by it.
"""

from __future__ import annotations

__all__ = ["CHARACTERS", "tokens"]

CHARACTERS = 4
"""Characters per token."""


def tokens(text: str) -> int:
    """Return how many tokens a text counts: one for every four characters begun."""
    return -(-len(text) // CHARACTERS)
