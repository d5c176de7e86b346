"""Division of a turn's text budget among its sections, and the shortening of sections that exceed it."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["cut", "newest", "shares"]

LEAST = 60
"""Characters that are left of a line that is shortened, at least."""
_BULLET = 3
"""Characters that a line takes beyond its own: the bullet, and the end of the line."""


def shares(needs: Sequence[int], weights: Sequence[int], budget: int) -> list[int]:
    """Return how many characters each section gets: what it needs, or its share of what the others leave.

    Args:
        needs: characters of each section in full.
        weights: how the budget is divided among those that need more than their share; above 0.
        budget: characters for all.
    """
    given = [0] * len(needs)
    waiting = list(range(len(needs)))
    while waiting:
        weight = sum(weights[n] for n in waiting)
        content = [n for n in waiting if needs[n] <= budget * weights[n] // weight]
        if not content:
            for n in waiting:
                given[n] = budget * weights[n] // weight
            return given
        for n in content:
            given[n] = needs[n]
        budget -= sum(needs[n] for n in content)
        waiting = [n for n in waiting if n not in content]
    return given


def newest(lines: Sequence[str], budget: int, where: str = "") -> list[str]:
    """Return the last lines in full, those before them shortened, and a line that says how many are left out.

    Args:
        lines: oldest first.
        budget: characters for all of them with their bullets; the line that says so comes on top.
        where: the tool that tells what is left out, if one does.
    """
    if sum(len(line) + _BULLET for line in lines) <= budget:
        return list(lines)
    kept: list[str] = []
    short = budget // 4
    """Characters reserved for shortened lines."""
    for line in reversed(lines):
        if len(line) + _BULLET > budget - short:
            line = cut([line], LEAST + 40 + _BULLET)[0]
            short = 0  # from here on all are shortened
            if len(line) + _BULLET > budget:
                break
        elif short == 0:
            line = cut([line], LEAST + 40 + _BULLET)[0]
        budget -= len(line) + _BULLET
        kept.append(line)
    if len(kept) < len(lines):
        told = f"; the tool {where} tells them" if where else ""
        kept.append(f"({len(lines) - len(kept)} earlier lines are left out here{told})")
    kept.reverse()
    return kept


def cut(lines: Sequence[str], budget: int) -> list[str]:
    """Return all lines, the longest of them shortened until they fit, but none to less than `LEAST` characters."""
    sizes = sorted(len(line) + _BULLET for line in lines)
    longest, left = max(sizes, default=0), budget
    for number, size in enumerate(sizes):
        if size * (len(sizes) - number) > left:
            longest = max(LEAST, left // (len(sizes) - number) - _BULLET)
            break
        left -= size
    return [_shortened(line, longest) for line in lines]


def _shortened(line: str, longest: int) -> str:
    if len(line) <= longest:
        return line
    end = '..."' if line.endswith('"') else "..."  # a quotation stays one
    return line[: longest - len(end)].rstrip('"') + end
