"""A map of characters as coloured tiles, as large as there is room for."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style

from wsap_core.protocol import GridMapBlock
from wsap_core.untrusted import single_line
from wsap_nexus.terminal.palette import FACING, GRASS, Colour, shaded, tile_for

BIGGEST = 4
"""Rows of the terminal that one row of a map takes at most; a tile is twice as wide as it is high."""


class GridMap:
    """A map that draws itself as large as its place allows.

    Args:
        facing: where the one marked "you" looks; empty where that is not known.
        light: how bright it is, from 0 to 1.
        plain: use the game's own characters, for terminals without colours.
    """

    def __init__(self, block: GridMapBlock, *, facing: str = "", light: float = 1.0, plain: bool = False) -> None:
        self._rows = [str(row) for row in block.rows]
        self._legend = {str(k): str(v) for k, v in block.legend.items()}
        self._facing = FACING.get(facing, "")
        self._light = light
        self._plain = plain

    @property
    def columns(self) -> int:
        """The map's width in tiles."""
        return max(map(len, self._rows), default=0)

    def scale(self, width: int, height: int) -> int:
        """Return how many terminal rows a tile takes in a place of that size; 0 for a single cell each."""
        if not self._rows or not self.columns:
            return 0
        return max(0, min(width // (2 * self.columns), height // len(self._rows), BIGGEST))

    def size(self, scale: int) -> tuple[int, int]:
        """Return the width and height in terminal cells at a scale."""
        return self.columns * max(1, 2 * scale), len(self._rows) * max(1, scale)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        width, _ = self.size(self.scale(options.max_width, options.height or options.max_height))
        return Measurement(min(width, options.max_width), min(width, options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        scale = self.scale(options.max_width, options.height or options.max_height)
        for y, row in enumerate(self._rows):
            tiles = [self._tile(x, y, character) for x, character in enumerate(row)]
            for line in range(max(1, scale)):
                for (text, ink, ground), word in tiles:
                    yield Segment(_piece(text, word, scale, line), _style(ink, ground, word == "you"))
                yield Segment.line()

    def _tile(self, x: int, y: int, character: str) -> tuple[tuple[str, Colour, Colour | None], str]:
        word = self._legend.get(character, "")
        tile = tile_for(word, character)
        glyph = single_line(character)[:1] or " " if self._plain or not tile.glyph else tile.glyph
        if word == "you" and self._facing:
            glyph = self._facing
        if cell_len(glyph) != 1:
            glyph = "?"
        ground = tile.ground if tile.ground is not None else self._below(x, y)
        ink = shaded(tile.ink, max(self._light, 0.75))
        shade = None if ground is None else ground if word == "you" else shaded(ground, self._light)
        return (glyph, ink, shade), "" if self._plain and word != "you" else word

    def _below(self, x: int, y: int) -> Colour | None:
        """Return the colour of the ground that most neighbours of a creature stand on."""
        found: Counter[Colour] = Counter()
        for dx, dy in ((0, -1), (-1, 0), (1, 0), (0, 1), (-1, -1), (1, -1), (-1, 1), (1, 1)):
            if 0 <= y + dy < len(self._rows) and 0 <= x + dx < len(self._rows[y + dy]):
                character = self._rows[y + dy][x + dx]
                word = self._legend.get(character, "")
                if word in _WALKED_ON:
                    found[tile_for(word, character).ground or GRASS] += 1
        return found.most_common(1)[0][0] if found else None


_WALKED_ON = frozenset({"grass", "path", "sand", "floor"})


def _piece(glyph: str, word: str, scale: int, line: int) -> str:
    """Return one line of a tile."""
    if scale == 0:
        return glyph
    width = 2 * scale
    sprite = tile_for(word, glyph).sprite if word else None
    if word == "you" and scale > 1:
        return _body(glyph, scale, line)
    if sprite and scale >= 2:
        top = (scale - 2) // 2
        return sprite[line - top].center(width) if top <= line < top + 2 else " " * width
    return glyph.center(width) if line == (scale - 1) // 2 else " " * width


def _body(glyph: str, scale: int, line: int) -> str:
    """Return one line of one's own body, with a glyph on the side where it looks."""
    width = 2 * scale
    first = (scale - 2) // 2
    pair = {"▲": (glyph, "@"), "▼": ("@", glyph)}.get(glyph)
    if pair is not None:
        return pair[line - first].center(width) if first <= line < first + 2 else " " * width
    text = {"▶": f"@{glyph}", "◀": f"{glyph}@"}.get(glyph, glyph)
    return text.center(width) if line == (scale - 1) // 2 else " " * width


@lru_cache(maxsize=4096)
def _style(ink: Colour, ground: Colour | None, bold: bool) -> Style:
    colour = "#{:02x}{:02x}{:02x}".format(*ink)
    return Style(color=colour, bgcolor=None if ground is None else "#{:02x}{:02x}{:02x}".format(*ground), bold=bold)
