"""The output of commands: tables in a terminal, plain lines in a pipe, or JSON.

Our own code, because rich takes longer to import than these commands take to run.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import click

from wsap_core.untrusted import single_line

_GAP = "  "


def at_terminal() -> bool:
    """Return whether the output goes to a terminal."""
    return sys.stdout.isatty()


def print_json(value: Any) -> None:
    """Print JSON-ready data in ASCII."""
    click.echo(json.dumps(value, indent=2))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    notes: Sequence[Sequence[str]] = (),
    heading: bool = False,
) -> None:
    """Print rows of text in columns, and below each row its notes (sentences), made safe for terminals. In a terminal
    there is a heading, and the last column is wrapped; in a pipe, there is one line per row, after a `heading` if it is
    asked for."""
    clean = [[single_line(cell) for cell in row] for row in rows]
    terminal = at_terminal()
    table = [list(columns), *clean] if terminal or heading else clean
    widths = [max(map(_width, column)) for column in list(zip(*table, strict=True))[:-1]] if table else []
    left = sum(widths) + len(_GAP) * len(widths)
    width = shutil.get_terminal_size().columns if terminal else 0
    room = max(16, width - left) if terminal else 0
    if terminal:
        click.echo(_styled(_line(list(columns), widths)))
    elif heading:
        click.echo(_line(list(columns), widths))
    for index, row in enumerate(clean):
        first, *more = _wrapped(row[-1], room)
        click.echo(_line([*row[:-1], first], widths))
        for text in more:
            click.echo(" " * left + text)
        for note in notes[index] if notes else ():
            for text in _wrapped(single_line(note), max(20, width - 4) if terminal else 0):
                click.echo("    " + text)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell + " " * (width - _width(cell)) for cell, width in zip(cells[:-1], widths, strict=True)]
    return _GAP.join([*padded, cells[-1]]).rstrip()


def _wrapped(text: str, room: int) -> list[str]:
    """Break text into lines of at most `room` cells, unless `room` is 0."""
    if not room or _width(text) <= room:
        return [text]
    lines: list[str] = []
    for word in text.split():
        for piece in _pieces(word, room):
            if lines and _width(lines[-1]) + 1 + _width(piece) <= room:
                lines[-1] += " " + piece
            else:
                lines.append(piece)
    return lines


def _pieces(word: str, room: int) -> Iterator[str]:
    while _width(word) > room:
        cut = next(i for i in range(len(word), 0, -1) if _width(word[:i]) <= room)
        yield word[:cut]
        word = word[cut:]
    yield word


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    import unicodedata  # deferred for weight: most texts are ASCII

    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _styled(text: str) -> str:
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return text if plain else click.style(text, bold=True)
