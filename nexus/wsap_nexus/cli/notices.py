"""Progress messages of a command."""

from __future__ import annotations

import click

from wsap_core.untrusted import single_line


class Notices:
    """Writes each sentence to standard error once, however many agents send it.

    The live view holds back standard error until it is closed.
    """

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, text: str) -> None:
        """Write a sentence, unless it was written before."""
        line = single_line(text)
        if line not in self._said:
            self._said.add(line)
            click.echo(line, err=True)
