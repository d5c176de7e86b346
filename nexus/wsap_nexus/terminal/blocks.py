"""View blocks as rich renderables: maps, pictures, tables, conversations, texts."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from functools import lru_cache

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from wsap_core import protocol
from wsap_core.protocol.views import Block
from wsap_core.untrusted import single_line, strip_control
from wsap_nexus.terminal.gridmap import GridMap

HEAD = 3
"""Number of first lines of a text that are kept besides its end: its subject and time."""
_TITLE, _LEFT_OUT = Style(bold=True), Style(dim=True)


class Stacked:
    """Renderables below each other, cut in the middle or at the beginning if there is not enough room.

    `parts`: title (may be empty), renderable, and whether its beginning is kept as well as its end.
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
        """Return a table's lines, packed if it would take more rows or break its lines."""
        part = self._parts[number][1]
        if not isinstance(part, Sheet) or len(lines) <= min(rows, part.lines):
            return lines
        packed = console.render_lines(Group(*part.packed(options.max_width, max(2, rows))), options, pad=False)
        return min(lines, packed, key=len)

    def _rooms(self, needs: Sequence[int], rows: int) -> list[int]:
        """Return the rows of each part; parts of which only the end is kept leave two thirds to the others."""
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
    """Return the rows of each part: what it needs, or an equal share of what the others leave."""
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


MOST_ROWS = 200
NARROWEST = 14
"""Minimum number of cells of a packed line."""
_SPEAKERS = ("cyan", "green", "yellow", "magenta", "bright_blue", "bright_red", "bright_green", "bright_magenta")


class Sheet:
    """A table."""

    def __init__(self, block: protocol.TableBlock) -> None:
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
        """Return the table's rows in several columns, to be read down and then right, so that they fit if the width
        allows. Their cells are joined with blanks, long lines are cut off, and the header is left out.
        """
        lines = [" ".join(cell for cell in row if cell) for row in self._rows]
        most = max(1, width // NARROWEST)
        columns = next((c for c in range(1, most) if -(-len(lines) // c) <= rows), most)
        each, high = width // columns, -(-len(lines) // columns)
        return [_side_by_side(lines[row::high], each) for row in range(high)]

    @property
    def lines(self) -> int:
        """Number of lines with unlimited room."""
        return len(self._rows) + 2


def _side_by_side(cells: Sequence[str], each: int) -> Text:
    line = Text(no_wrap=True)
    for cell in cells:
        text = Text(cell)
        text.truncate(each - 1, overflow="ellipsis", pad=True)
        line.append_text(text).append(" ")
    return line


class Talk:
    """A conversation: each speaker has a colour, and continuation lines are indented."""

    def __init__(self, block: protocol.ChatBlock) -> None:
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
    """A text indented by some cells, without blanks at the ends of its lines."""

    def __init__(self, text: Text, cells: int) -> None:
        self._text, self._cells = text, cells

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._text.wrap(console, max(1, options.max_width - self._cells)):
            line.rstrip()
            yield Text(" " * self._cells).append_text(line)


LARGEST = 4096
"""Maximum width or height of an image in pixels."""


def can_decode() -> bool:
    """Return whether pictures can be decoded: Pillow comes with some worlds, not with the runtime."""
    import importlib.util

    return importlib.util.find_spec("PIL") is not None


class Picture:
    """An image, scaled to the available room."""

    def __init__(self, block: protocol.ImageBlock) -> None:
        self._block = block

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = pixel_rows(self._block, options.max_width, 2 * (options.height or options.max_height))
        if rows is None:
            yield Segment(single_line(self._block.alt or "A picture that can't be shown here.")[: options.max_width])
            return
        for upper, lower in zip(rows[::2], rows[1::2], strict=True):
            for top, bottom in zip(upper, lower, strict=True):
                yield Segment("▀", _style(top, bottom))
            yield Segment.line()


Pixel = tuple[int, int, int]


def pixel_rows(block: protocol.ImageBlock, width: int, height: int) -> list[list[Pixel]] | None:
    """Return an image's pixels, scaled to fit into width and height, in an even number of rows; None if undecodable."""
    try:
        from PIL import Image  # deferred for weight, and because it may not be installed
    except ImportError:
        return None
    try:
        with Image.open(io.BytesIO(block.png()), formats=("PNG",)) as image:
            if not 0 < max(image.size) <= LARGEST:
                return None
            scale = min(width / image.width, height / image.height)
            across = max(1, int(image.width * scale))
            down = max(2, int(image.height * scale) // 2 * 2)
            small = image.convert("RGB").resize((across, down), Image.Resampling.BOX)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    data = small.tobytes()
    flat = [(data[i], data[i + 1], data[i + 2]) for i in range(0, len(data), 3)]
    return [flat[i : i + across] for i in range(0, len(flat), across)]


@lru_cache(maxsize=8192)
def _style(top: Pixel, bottom: Pixel) -> Style:
    return Style(color="#{:02x}{:02x}{:02x}".format(*top), bgcolor="#{:02x}{:02x}{:02x}".format(*bottom))


LONGEST_TEXT = 20_000
"""Maximum number of characters of a text block."""


def draw_block(block: Block, *, plain: bool = False, details: bool = False) -> RenderableType:
    """Return a block as a rich renderable, without interpreting markup in it; `details`: with those of a timeline."""
    if isinstance(block, protocol.GridMapBlock):
        return GridMap(block, plain=plain)
    if isinstance(block, protocol.ImageBlock):
        return Picture(block)
    if isinstance(block, protocol.TableBlock):
        return Sheet(block)
    if isinstance(block, protocol.SeatsBlock):
        return Sheet(_seats(block))
    if isinstance(block, protocol.ChatBlock):
        return Talk(block)
    if isinstance(block, protocol.PlaceGraphBlock):
        return _places(block)
    if isinstance(block, protocol.TimelineBlock):
        return _timeline(block, details=details)
    return Text(strip_control(block.text)[:LONGEST_TEXT])


def title_of(block: Block) -> str:
    """Return a block's title on one line; empty if it has none."""
    return single_line(getattr(block, "title", ""))[:60]


def map_of(view: protocol.View | None) -> protocol.GridMapBlock | None:
    """Return the first map of a view; None if it has none."""
    blocks = view.blocks if view is not None else ()
    return next((b for b in blocks if isinstance(b, protocol.GridMapBlock) and b.rows), None)


def image_of(view: protocol.View | None) -> protocol.ImageBlock | None:
    """Return the first picture of a view; None if it has none."""
    blocks = view.blocks if view is not None else ()
    return next((b for b in blocks if isinstance(b, protocol.ImageBlock)), None)


def other_blocks(view: protocol.View | None) -> list[Block]:
    """Return the blocks of a view that are neither maps nor pictures."""
    blocks = view.blocks if view is not None else ()
    return [b for b in blocks if not isinstance(b, protocol.GridMapBlock | protocol.ImageBlock)]


def blocks_of(view: protocol.View | None, observation: protocol.Observation | None) -> list[Block]:
    """Return the blocks to show without a map or picture: those of the view, else the observation's text."""
    blocks = other_blocks(view)
    if not blocks and observation is not None:
        blocks = [protocol.TextBlock(observation.to_text().strip("\n"))]
    return blocks


def _seats(block: protocol.SeatsBlock) -> protocol.TableBlock:
    """Return the players around a table as a short line each, since half a terminal is 40 characters wide."""
    to = {link[0]: f"→ {link[1]}" for link in block.links if len(link) > 1}
    rows = []
    for seat in block.seats:
        note = f"† {seat.note}".rstrip() if seat.state == "out" else seat.note or seat.state.removeprefix("in")
        middle = "in the middle" if seat.name == block.centre else ""
        rows.append((seat.name, note, seat.badge or to.get(seat.name, "") or middle))
    if block.centre not in ("", *(seat.name for seat in block.seats)):
        rows.append(("", block.centre, ""))
    columns = ("player", "known of it", "now")
    shown = 3 if any(now for *_, now in rows) else 2
    return protocol.TableBlock(columns[:shown], [row[:shown] for row in rows])


def _places(block: protocol.PlaceGraphBlock) -> RenderableType:
    lines = []
    for place in block.places[:MOST_ROWS]:
        here = place == block.here
        text = Text("● " if here else "○ ", "bold yellow" if here else "dim")
        text.append(single_line(place), "bold" if here else "")
        ways = [single_line(pair[1]) for pair in block.exits if len(pair) == 2 and pair[0] == place]
        if ways:
            text.append(" → " + ", ".join(ways), "dim")
        doing = {name: f" ({single_line(what)})" for name, what in block.doing.items() if what}
        people = [single_line(name) + doing.get(name, "") for name in block.occupants.get(place, ())]
        if people:
            text.append("  " + ", ".join(people), "cyan")
        lines.append(text)
    return Group(*lines)


def _timeline(block: protocol.TimelineBlock, *, details: bool) -> RenderableType:
    parts: list[RenderableType] = []
    for entry in block.entries[-MOST_ROWS:]:
        head = Text("" if entry.number is None else f"{entry.number}  ", "bold yellow")
        for words, style in ((entry.title, "bold"), (entry.place, "bold"), (", ".join(entry.who), "cyan")):
            if words:
                head.append(" · " if head.plain.strip() and not head.plain.endswith("  ") else "", "dim")
                head.append(single_line(words), style)
        head.rstrip()
        if head.plain:
            parts.append(head)
        parts.append(Indented(Text(strip_control(entry.text)[:LONGEST_TEXT]), 2))
        parts += [Indented(Text(f"· {single_line(line)}", "dim"), 4) for line in entry.details if details]
    return Group(*parts) if parts else Text("Nothing to show.", "dim")
