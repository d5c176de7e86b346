"""An image as half-block pixels: two pixels in each cell of the terminal."""

from __future__ import annotations

import io
from functools import lru_cache

from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style

from wsap_core.protocol import ImageBlock
from wsap_core.untrusted import single_line

LARGEST = 4096
"""Pixels in width or height that are decoded at most."""


def can_decode() -> bool:
    """Return whether pictures can be decoded here: Pillow comes with some worlds, not with the runtime."""
    import importlib.util

    return importlib.util.find_spec("PIL") is not None


class Picture:
    """An image that fills its place as far as its proportions allow."""

    def __init__(self, block: ImageBlock) -> None:
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


def pixel_rows(block: ImageBlock, width: int, height: int) -> list[list[Pixel]] | None:
    """Return the image's pixels, scaled to fit, as an even number of rows; None if it can't be decoded.

    Args:
        width: pixels at most in a row.
        height: rows at most.
    """
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
