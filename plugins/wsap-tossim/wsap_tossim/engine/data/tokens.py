"""The token count of a text, for rules with a daily token limit.

This is a game rule, not an estimate of a model's tokenizer. It must not change, since recorded games depend on it.
"""

from __future__ import annotations

__all__ = ["CHARACTERS", "tokens"]

CHARACTERS = 4
"""Characters per token."""


def tokens(text: str) -> int:
    """Return the token count of a text: a quarter of its characters, rounded up."""
    return -(-len(text) // CHARACTERS)
