"""Progress messages of a command."""

from __future__ import annotations

import sys
from collections.abc import Callable

import click

from wsap_core.untrusted import single_line


class Notices:
    """Writes each sentence to standard error once, however many agents send it.

    The live view holds back standard error until it is closed; `show` puts each sentence on its screen meanwhile.
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
            click.echo(line, file=sys.stderr)  # named, for else click writes past a live table in its place
