"""Helpers of the commands: options, sizes, the database, messages, and the terminal."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_core.cli.params import json_option
from wsap_core.untrusted import single_line

if TYPE_CHECKING:
    from rich.console import Console

    from wsap_core.specs import AdapterSpec
    from wsap_nexus.store.database import Database

database_option = click.option(
    "--database",
    metavar="PATH",
    help="The database: a path or URL. Default: WSAP_DATABASE, else wsap.db in the data folder.",
)
_LAST = click.command()(json_option(database_option(lambda: None))).params


def command(*examples: str, name: str | None = None, **more: Any) -> Callable[[Callable[..., None]], click.Command]:
    """Return a decorator for commands with examples in the help, `--json` and `--database`.

    `more` are further arguments of `GroupedCommand`.
    """

    def made(function: Callable[..., None]) -> click.Command:
        done = click.command(name, cls=GroupedCommand, examples=examples, **more)(function)
        done.params += _LAST
        return done

    return made


def open_for_reading(database: str | None) -> Database | None:
    """Return the opened database, or None without a default one yet; StorageError if a named one can't be opened."""
    from wsap_nexus.paths import database_location, is_url
    from wsap_nexus.runs.store import open_database

    named = bool((database or "").strip() or os.environ.get("WSAP_DATABASE", "").strip())
    where = database_location(database, os.environ)
    if not named and not is_url(where) and not Path(where).exists():
        return None
    return open_database(database, read_only=True)


def size_of_text(context: click.Context, option: click.Parameter, text: str) -> int:
    """Return the bytes of a size such as 500MB or 2GB; the callback of an option."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", text.strip(), re.IGNORECASE)
    if found is None:
        raise click.BadParameter(f"{single_line(text)[:40]!r} is not a size such as 500MB or 2GB.")
    return int(float(found[1]) * 1000.0 ** " KMGT".index(found[2].upper() or " "))


def text_of_size(count: int) -> str:
    """Return a size in a readable unit: "950 B", "1.2 MB"."""
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def said(as_json: bool, text: str, **facts: Any) -> None:
    """Print a sentence, or with `--json` its facts."""
    click.echo(json.dumps(facts) if as_json else text)


def print_lines(as_json: bool, facts: Any, lines: Iterable[str]) -> None:
    """Print lines, or with `--json` their facts. Any: JSON-ready data."""
    if as_json:
        print_json(facts)
        return
    for line in lines:
        click.echo(line)


def output_console() -> Console:
    """Return a rich console on the current standard output, even if that is replaced later."""
    from rich.console import Console  # deferred for weight

    return Console(file=sys.stdout, highlight=False)


def has_room(instead: str) -> bool:
    """Return whether the terminal is large enough for the screen; if not, print that and the alternative."""
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


def tell_renamed(game: AdapterSpec, asked: str) -> None:
    """Say on standard error that a game which was asked for by a former name has another one now."""
    if told := game.renamed(asked):
        click.echo(single_line(told), err=True)


class Notices:
    """Writes each sentence to standard error once, however many agents send it.

    A live view holds back standard error until it is closed; meanwhile `show` puts each sentence on its screen.
    """

    def __init__(self, show: Callable[[str], None] | None = None) -> None:
        self._said: set[str] = set()
        self._show = show

    def __call__(self, text: str) -> None:
        """Write a sentence, unless it was written before."""
        line = single_line(text)
        if self._show is not None:
            self._show(line)
        if line not in self._said:
            self._said.add(line)
            click.echo(line, file=sys.stderr)  # explicit: click's default would bypass a live view's redirection
