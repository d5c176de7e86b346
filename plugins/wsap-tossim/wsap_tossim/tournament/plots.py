"""Dot plots with intervals as SVG, with all text escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import floor, log10
from typing import NamedTuple

__all__ = ["Dot", "dot_plot", "ticks"]

WIDTH, ROW, TOP, LEFT, RIGHT = 460, 46, 4, 22, 22
LONGEST = 50
"""Maximum characters of a drawn label; its tooltip has the whole."""


class Dot(NamedTuple):
    """One row of a plot."""

    label: str
    value: float
    low: float | None
    high: float | None
    """The interval, if any."""
    colour: int
    """Number of one of the report's colours, from 0."""


def dot_plot(
    rows: Sequence[Dot], title: str, *, mark: float | None = None, bounds: tuple[float, float] | None = None
) -> str:
    """Return a plot as SVG.

    Args:
        rows: from top to bottom; at least one.
        title: text alternative.
        mark: position of a vertical line, such as no difference.
        bounds: of the axis, such as 0 and 1 for a share; the range of the rows if None.
    """
    shown: list[float] = [*([] if mark is None else [mark]), *(bounds or ())]
    shown += [end for r in rows for end in (r.value, r.low, r.high) if end is not None]
    low, high = min(shown), max(shown)
    steps = ticks(low, high)
    low, high = min(low, steps[0]), max(high, steps[-1])
    span = (high - low) or 1.0
    bottom = TOP + ROW * len(rows)

    def x(value: float) -> float:
        return round(LEFT + (value - low) / span * (WIDTH - LEFT - RIGHT), 1)

    parts = [
        f'<svg viewBox="0 0 {WIDTH} {bottom + 28}" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
    ]
    for step in steps:
        parts.append(f'<line class="grid" x1="{x(step)}" y1="{TOP}" x2="{x(step)}" y2="{bottom}"/>')
        parts.append(f'<text class="tick" x="{x(step)}" y="{bottom + 20}" text-anchor="middle">{step:g}</text>')
    if mark is not None:
        parts.append(f'<line class="mark" x1="{x(mark)}" y1="{TOP}" x2="{x(mark)}" y2="{bottom}"/>')
    for n, row in enumerate(rows):
        top = TOP + ROW * n
        y = top + 33
        short = row.label if len(row.label) <= LONGEST else row.label[: LONGEST - 1] + "…"
        told, line = f"{row.label}: {row.value:.3g}", ""
        if row.low is not None and row.high is not None:
            told += f" ({row.low:.3g} to {row.high:.3g})"
            line = f'<line class="span" x1="{x(row.low)}" y1="{y}" x2="{x(row.high)}" y2="{y}"/>'
        parts.append(
            f'<g class="c{row.colour % 6}"><title>{escape(told)}</title>'
            f'<text class="label" x="{LEFT - 5}" y="{top + 17}">{escape(short)}</text>'
            f'{line}<circle cx="{x(row.value)}" cy="{y}" r="5"/></g>'
        )
    return "".join([*parts, "</svg>"])


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return evenly spaced round numbers that cover a range."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / most
    power = 10.0 ** floor(log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first = floor(low / step + 1e-9)
    found = []
    while True:
        value = round(first * step, 12)
        found.append(value)
        if value >= high - 1e-9 * span:
            return found
        first += 1
