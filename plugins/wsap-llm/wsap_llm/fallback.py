"""The action that is taken where a model's reply can't be understood."""

from __future__ import annotations

import random
from collections.abc import Sequence

from wsap_core.protocol import ActionDef

WAITS = ("noop", "wait", "pass")
"""Actions that do nothing, in the order of preference."""
LOOKS, LEAVES = "inspect_self", "jack_out"


def fallback_action(legal: Sequence[ActionDef], fallback: str | None, generator: random.Random) -> str:
    """Return the declared fallback if it is legal, else an action that waits.

    Where a game has none, any that needs no parameters: one that only looks would be taken again and
    again, and a game in which others wait for a move would never end. For the same reason it is never
    a tool of the game, unless nothing else is legal.
    """
    legal = [a for a in legal if not a.is_tool] or legal
    names = [a.name for a in legal]
    if fallback in names:
        return str(fallback)
    free = [a.name for a in legal if all(p.optional for p in a.parameters)]
    waits = [name for name in WAITS if name in free]
    moves = [name for name in free if name not in (LOOKS, LEAVES)]
    if not waits and len(moves) > 1:
        return generator.choice(moves)
    return (waits or moves or [name for name in free if name != LEAVES] or free or names)[0]
