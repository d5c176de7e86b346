"""Recollections that fit into a budget of tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from wsap_core.seams.memory import Recollection, estimate_tokens

SHORTEST = 24
"""What does not fit whole is shortened, if at least this many tokens are left for it."""


def within(found: Iterable[Recollection], budget: int) -> list[Recollection]:
    """Return the recollections that fit, in their order; one that does not fit whole is shortened or passed over.

    The estimated tokens of all texts together are never more than the budget.
    """
    taken: list[Recollection] = []
    left = budget
    for recollection in found:
        if left <= 0:
            break
        need = estimate_tokens(recollection.text)
        if need > left:
            if left < SHORTEST:
                continue
            recollection = replace(recollection, text=shortened(recollection.text, left))
            need = estimate_tokens(recollection.text)
        taken.append(recollection)
        left -= need
    return taken


def cost(found: Iterable[Recollection]) -> int:
    """Return the estimated tokens of recollections together."""
    return sum(estimate_tokens(recollection.text) for recollection in found)


def shortened(text: str, budget: int) -> str:
    """Return as much of the beginning of a text as fits into the budget, an ellipsis included."""
    low, high = 0, len(text)
    while low < high:  # the longest beginning that fits; more text never has fewer tokens by more than the ellipsis
        middle = (low + high + 1) // 2
        if estimate_tokens(text[:middle].rstrip() + "…") <= budget:
            low = middle
        else:
            high = middle - 1
    return text[:low].rstrip() + "…"
