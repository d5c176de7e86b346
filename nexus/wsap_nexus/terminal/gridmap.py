"""Maps of characters as coloured tiles, scaled to the available room."""

from __future__ import annotations

import colorsys
import zlib
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.segment import Segment
from rich.style import Style

from wsap_core.protocol import GridMapBlock
from wsap_core.untrusted import single_line

Colour = tuple[int, int, int]
"""Red, green and blue, each from 0 to 255."""


class Tile(NamedTuple):
    """The appearance of one kind of thing."""

    glyph: str
    """One cell wide; empty for the game's own character."""
    ink: Colour
    """The glyph's colour."""
    ground: Colour | None = None
    """The background; None for that of the ground below."""
    sprite: tuple[str, str] | None = None
    """Two rows of four cells, for maps with room for them."""


GRASS: Colour = (67, 122, 56)
_STONE: Colour = (104, 106, 112)

TILES: dict[str, Tile] = {
    "grass": Tile(" ", (92, 150, 74), GRASS, ("  ' ", " .  ")),
    "path": Tile(" ", (104, 88, 70), (84, 70, 56), (" .  ", "   .")),
    "sand": Tile(" ", (188, 164, 104), (216, 194, 134), ("  . ", ".   ")),
    "water": Tile("~", (104, 160, 226), (36, 92, 172), ("~   ", "  ~ ")),
    "stone": Tile(" ", (128, 130, 136), _STONE, ("▝   ", "  ▖ ")),
    "tree": Tile("♣", (18, 66, 34), (52, 104, 48), ("▗██▖", "▝▜▛▘")),
    "lava": Tile("~", (255, 214, 90), (206, 62, 20), ("~  ~", " ~~ ")),
    "coal": Tile("●", (24, 24, 28), _STONE, (" ● ●", "●  ●")),
    "iron": Tile("◆", (240, 186, 140), _STONE, (" ◆  ", "  ◆ ")),
    "diamond": Tile("◆", (196, 248, 255), _STONE, (" ◢◣ ", " ◥◤ ")),
    "table": Tile("╥", (236, 182, 110), (116, 74, 38), ("▄▄▄▄", "▌  ▐")),
    "furnace": Tile("▣", (255, 150, 50), (64, 62, 66), ("┌──┐", "│▲▲│")),
    "wall": Tile(" ", (90, 90, 96), (70, 70, 76)),
    "floor": Tile(" ", (90, 84, 74), (60, 56, 50)),
    "goal": Tile("★", (255, 246, 190), (40, 128, 66)),
    "open door": Tile("▢", (214, 170, 110), (60, 56, 50)),
    "closed door": Tile("▥", (236, 190, 124), (92, 62, 36)),
    "locked door": Tile("▣", (255, 206, 92), (92, 62, 36)),
    "not seen": Tile(" ", (30, 30, 34), (18, 18, 22)),
    "cow": Tile("C", (255, 240, 228), None, ("▖▄▄▗", "▐▚▞▌")),
    "zombie": Tile("Z", (150, 255, 110), None, ("▗▄▄▖", "▐▘▝▌")),
    "skeleton": Tile("S", (244, 240, 226), None, ("▗▄▄▖", "▝▛▜▘")),
    "arrow": Tile("*", (255, 226, 140), None, (" ╲  ", "  ╲ ")),
    "sapling": Tile("♠", (186, 246, 112), None, (" ╲╱ ", "  │ ")),
    "plant": Tile("♠", (186, 246, 112), None, (" ╲╱ ", "  │ ")),
    "ripe plant": Tile("✿", (255, 140, 180), None, (" ✿✿ ", " ╲╱ ")),
    "you": Tile("@", (24, 20, 8), (255, 214, 82), ("╭──╮", "╰──╯")),
    "edge of the world": Tile(" ", (40, 40, 44), (18, 18, 22)),
}
"""Word of a legend -> appearance. A vocabulary of things, not of games: any world may use these words."""

FACING = {"north": "▲", "east": "▶", "south": "▼", "west": "◀", "up": "▲", "right": "▶", "down": "▼", "left": "◀"}
"""Direction -> glyph of a body that faces it."""

LIGHT = {"night": 0.5, "dusk": 0.75, "dawn": 0.8, "evening": 0.75, "morning": 0.9}
"""Time of day -> brightness; 1 for any other."""


@lru_cache(maxsize=1024)
def tile_for(word: str, character: str) -> Tile:
    """Return the appearance of a thing; an unknown word gets a colour that is the same in every process."""
    known = TILES.get(word.strip().lower())
    if known is not None:
        return known
    hue = zlib.crc32((word or character).encode()) % 360 / 360
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.45, 0.95)
    return Tile("", (round(red * 255), round(green * 255), round(blue * 255)))


def shaded(colour: Colour, light: float) -> Colour:
    """Return a colour at a brightness below 1: darker and slightly bluer."""
    if light >= 1:
        return colour
    red, green, blue = colour
    return round(red * light), round(green * light), min(255, round(blue * (light + (1 - light) * 0.25)))


def light_of(time_of_day: str | None) -> float:
    """Return the brightness of a time of day, from 0 to 1."""
    return LIGHT.get((time_of_day or "").strip().lower(), 1.0)


BIGGEST = 4
"""Maximum rows of the terminal per row of a map; a tile is twice as many cells wide."""


class GridMap:
    """A map, drawn as large as the room allows.

    Args:
        facing: the direction of the body marked "you"; empty if unknown.
        light: brightness, from 0 to 1.
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
        """Return the terminal rows per tile for that room; 0 for a single cell per tile."""
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
        """Return the most common ground colour among a creature's neighbours."""
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
    """Return one line of the player's body, with a glyph on the side that it faces."""
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
