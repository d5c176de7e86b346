"""How many tokens words count where a player has only so many for a day.

This is a rule and no guess at a model: it must stay as it is, because a recorded game is played again by it.
"""

from __future__ import annotations

__all__ = ["CHARACTERS", "tokens"]

CHARACTERS = 4
"""Of a token, whatever they are."""


def tokens(text: str) -> int:
    """Return how many tokens a text counts: one for every four characters begun."""
    return -(-len(text) // CHARACTERS)
