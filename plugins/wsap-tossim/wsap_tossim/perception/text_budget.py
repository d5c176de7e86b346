"""Division of a turn's text budget among its sections, and the shortening of sections that exceed it."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["cut", "newest", "shares"]

LEAST = 60
"""Minimum characters of a shortened line."""
_BULLET = 3
"""Additional characters per line: bullet and line end."""


def shares(needs: Sequence[int], weights: Sequence[int], budget: int) -> list[int]:
    """Return the characters of each section: its need, or its share of the budget that the others leave.

    Args:
        needs: characters of each section in full.
        weights: positive weights of the sections that need more than their share.
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
    """Return the last lines in full, those before them shortened, and a line that counts the omitted ones.

    Args:
        lines: oldest first.
        budget: characters for all lines with their bullets, without the line that counts.
        where: the tool that has the omitted lines, if any.
    """
    if sum(len(line) + _BULLET for line in lines) <= budget:
        return list(lines)
    kept: list[str] = []
    short = budget // 4
    """Characters reserved for shortened lines."""
    for line in reversed(lines):
        if len(line) + _BULLET > budget - short:
            line = cut([line], LEAST + 40 + _BULLET)[0]
            short = 0  # all earlier lines are shortened
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
    """Return all lines, the longest shortened until they fit, but none below `LEAST` characters."""
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
    end = '..."' if line.endswith('"') else "..."  # keep the closing quotation mark
    return line[: longest - len(end)].rstrip('"') + end
