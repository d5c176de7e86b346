"""Shared by commands: options, sizes, and questions about the terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.output import print_json
from wsap_core.untrusted import single_line

if TYPE_CHECKING:
    from rich.console import Console


database_option = click.option(
    "--database",
    metavar="PATH",
    help="The database: a path or URL. Default: WSAP_DATABASE, else wsap.db in the data folder.",
)


def size_of_text(context: click.Context, option: click.Parameter, text: str) -> int:
    """Return a number of bytes that was given with a unit, such as 500MB or 2GB: the callback of an option."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if found is None:
        raise click.BadParameter(f"{single_line(text)[:40]!r} is not a size such as 500MB or 2GB.")
    return int(float(found[1]) * 1000.0 ** " KMGT".index(found[2].upper() or " "))


def plural(count: int, noun: str) -> str:
    """Return a count with its noun: "1 run", "2 runs"."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def said(as_json: bool, text: str, **facts: Any) -> None:
    """Print a sentence, or with `--json` the facts in it."""
    click.echo(json.dumps(facts) if as_json else text)


def print_lines(as_json: bool, facts: Any, lines: Iterable[str]) -> None:
    """Print lines, or with `--json` the facts in them. Any: JSON-ready data."""
    if as_json:
        print_json(facts)
        return
    for line in lines:
        click.echo(line)


def output_console() -> Console:
    """Return rich's console on the present standard output, also if that is replaced later."""
    from rich.console import Console  # deferred for weight

    return Console(file=sys.stdout, highlight=False)


def has_room(instead: str) -> bool:
    """Return whether the terminal is large enough for the screen; if not, say so, and what comes instead."""
    from wsap_nexus.terminal.screen import fits, too_small

    size = output_console().size
    if not (fitting := fits(size.width, size.height)):
        click.echo(f"{too_small(size.width, size.height)} {instead}", err=True)
    return fitting


def is_dumb() -> bool:
    """Return whether the terminal can only print lines."""
    return os.environ.get("TERM", "") in ("dumb", "unknown")


def both_terminals() -> bool:
    """Return whether standard input and output are both terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()
