"""Tables and conversations in a terminal: tables that pack their lines side by side where there are few rows."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from wsap_core.protocol import ChatBlock, TableBlock
from wsap_core.untrusted import single_line

__all__ = ["Indented", "Sheet", "Talk"]

MOST_ROWS = 200
NARROWEST = 14
"""Cells that a packed line needs at least."""
_SPEAKERS = ("cyan", "green", "yellow", "magenta", "bright_blue", "bright_red", "bright_green", "bright_magenta")


class Sheet:
    """A table."""

    def __init__(self, block: TableBlock) -> None:
        width = len(block.columns)
        self._head = [single_line(column) for column in block.columns]
        self._rows = [[single_line(cell) for cell in row][:width] for row in block.rows[-MOST_ROWS:]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(expand=False, show_edge=False, pad_edge=False, header_style="bold")
        for column in self._head:
            table.add_column(Text(column))
        for row in self._rows:
            table.add_row(*map(Text, row))
        yield table

    def packed(self, width: int, rows: int) -> list[Text]:
        """Return the table with each of its lines as words one after the other, and so many of them side by side that
        they fit into the rows, as far as the width allows; read down and then right. The ends of lines are cut off, and
        the columns have no names.
        """
        lines = [" ".join(cell for cell in row if cell) for row in self._rows]
        most = max(1, width // NARROWEST)
        columns = next((c for c in range(1, most) if -(-len(lines) // c) <= rows), most)
        each, high = width // columns, -(-len(lines) // columns)
        return [_side_by_side(lines[row::high], each) for row in range(high)]

    @property
    def lines(self) -> int:
        """How many lines it takes where there is room for all of them."""
        return len(self._rows) + 2


def _side_by_side(cells: Sequence[str], each: int) -> Text:
    line = Text(no_wrap=True)
    for cell in cells:
        text = Text(cell)
        text.truncate(each - 1, overflow="ellipsis", pad=True)
        line.append_text(text).append(" ")
    return line


class Talk:
    """A conversation: each speaker in a colour of its own, and the second line of what is said moved in."""

    def __init__(self, block: ChatBlock) -> None:
        self._lines = [
            (single_line(line.speaker), single_line(line.channel), single_line(line.text))
            for line in block.lines[-MOST_ROWS:]
        ]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for speaker, channel, said in self._lines:
            colour = _SPEAKERS[zlib.crc32(speaker.encode()) % len(_SPEAKERS)]
            text = Text(speaker, f"bold {colour}")
            if channel:
                text.append(f" [{channel}]", "dim")
            text.append(": ", "dim").append(said, "default")
            for number, line in enumerate(text.wrap(console, max(1, options.max_width - 2))):
                yield Text("  ").append_text(line) if number else line


class Indented:
    """A text moved in by some cells, without blanks at the ends of its lines."""

    def __init__(self, text: Text, cells: int) -> None:
        self._text, self._cells = text, cells

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._text.wrap(console, max(1, options.max_width - self._cells)):
            line.rstrip()
            yield Text(" " * self._cells).append_text(line)
