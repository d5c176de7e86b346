"""Several things one below the other in too little room: of each its newest lines, which are its last, are shown."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style

from wsap_nexus.terminal.sheets import Sheet

__all__ = ["Stacked", "rows_for"]

HEAD = 3
"""Lines at the beginning of a text that are kept beside its end: what and when it is of."""
_TITLE, _LEFT_OUT = Style(bold=True), Style(dim=True)


class Stacked:
    """Things with titles, cut in the middle or at the beginning where there is no room for all of them.

    Args:
        parts: title (empty for none), what is drawn, and whether its beginning counts as well as its end.
    """

    def __init__(self, parts: Sequence[tuple[str, RenderableType, bool]]) -> None:
        self._parts = parts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        free = options.update(height=None)
        drawn = [console.render_lines(part, free, pad=False) for _, part, _ in self._parts]
        rooms = [len(lines) for lines in drawn]
        if options.height is not None:
            height = options.height - sum(bool(title) for title, _, _ in self._parts)
            if sum(rooms) > height:
                ending = sum(room for room, (_, _, head) in zip(rooms, self._parts, strict=True) if head)
                drawn = [
                    self._packed(n, lines, min(height // 2, height * 3 // 4 - ending + len(lines)), console, free)
                    for n, lines in enumerate(drawn)
                ]
            rooms = self._rooms([len(lines) for lines in drawn], height)
        for (title, _, head), lines, room in zip(self._parts, drawn, rooms, strict=True):
            if title:
                yield Segment(title, _TITLE)
                yield Segment.line()
            for line in _cut(lines, room, HEAD if head else 0):
                yield from line
                yield Segment.line()

    def _packed(
        self, number: int, lines: list[list[Segment]], rows: int, console: Console, options: ConsoleOptions
    ) -> list[list[Segment]]:
        """Return a table that would take more than so many rows, or break its lines, in fewer of them."""
        part = self._parts[number][1]
        if not isinstance(part, Sheet) or len(lines) <= min(rows, part.lines):
            return lines
        packed = console.render_lines(Group(*part.packed(options.max_width, max(2, rows))), options, pad=False)
        return min(lines, packed, key=len)

    def _rooms(self, needs: Sequence[int], rows: int) -> list[int]:
        """Return how many rows each part gets: what goes on without end leaves two thirds to the others."""
        ends = [n for n, (_, _, head) in enumerate(self._parts) if head]
        endless = [n for n, (_, _, head) in enumerate(self._parts) if not head]
        kept = min(sum(needs[n] for n in endless), max(0, rows) // (4 if len(endless) == 1 else 3))
        given = [0] * len(needs)
        for number, room in zip(ends, rows_for([needs[n] for n in ends], rows - kept), strict=True):
            given[number] = room
        for number, room in zip(endless, rows_for([needs[n] for n in endless], rows - sum(given)), strict=True):
            given[number] = room
        return given


def rows_for(needs: Sequence[int], rows: int) -> list[int]:
    """Return how many rows each part gets: what it needs, or an equal share of what the others leave."""
    given = [0] * len(needs)
    left = max(0, rows)
    for done, part in enumerate(sorted(range(len(needs)), key=lambda n: needs[n])):
        given[part] = min(needs[part], left // (len(needs) - done))
        left -= given[part]
    return given


def _cut(lines: Sequence[list[Segment]], room: int, head: int) -> list[list[Segment]]:
    if len(lines) <= room:
        return list(lines)
    if room <= head + 1:
        return list(lines[len(lines) - room :] if head == 0 else lines[:room])
    last = room - head - (1 if head else 0)
    between = [[Segment("⋮", _LEFT_OUT)]] if head else []
    return [*lines[:head], *between, *lines[len(lines) - last :]]
