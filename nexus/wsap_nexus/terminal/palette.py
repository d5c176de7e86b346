"""How the things on a map look: a glyph and colours for common words, something fitting for all others."""

from __future__ import annotations

import colorsys
import zlib
from functools import lru_cache
from typing import NamedTuple

Colour = tuple[int, int, int]
"""Red, green and blue, each from 0 to 255."""


class Tile(NamedTuple):
    """How one kind of thing is drawn."""

    glyph: str
    """One cell wide; empty for the game's own character."""
    ink: Colour
    """The glyph's colour."""
    ground: Colour | None = None
    """The colour below it; None for something that stands on ground of another kind."""
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
"""Word of a legend -> how it looks. A vocabulary of things, not of games: any world may use these words."""

FACING = {"north": "▲", "east": "▶", "south": "▼", "west": "◀", "up": "▲", "right": "▶", "down": "▼", "left": "◀"}
"""Direction -> the glyph of a body that faces there."""

LIGHT = {"night": 0.5, "dusk": 0.75, "dawn": 0.8, "evening": 0.75, "morning": 0.9}
"""Time of day -> how bright colours are; 1 for anything else."""


@lru_cache(maxsize=1024)
def tile_for(word: str, character: str) -> Tile:
    """Return how a thing looks: by its word, or a colour of its own, the same in every process."""
    known = TILES.get(word.strip().lower())
    if known is not None:
        return known
    hue = zlib.crc32((word or character).encode()) % 360 / 360
    red, green, blue = colorsys.hsv_to_rgb(hue, 0.45, 0.95)
    return Tile("", (round(red * 255), round(green * 255), round(blue * 255)))


def shaded(colour: Colour, light: float) -> Colour:
    """Return a colour in weaker light: darker, and a little bluer, as nights are."""
    if light >= 1:
        return colour
    red, green, blue = colour
    return round(red * light), round(green * light), min(255, round(blue * (light + (1 - light) * 0.25)))


def light_of(time_of_day: str | None) -> float:
    """Return how bright a time of day is, from 0 to 1."""
    return LIGHT.get((time_of_day or "").strip().lower(), 1.0)
