"""What a waiting person is told while a command works."""

from __future__ import annotations

import click

from wsap_core.untrusted import one_line


class Notices:
    """Writes each sentence once to the standard error, however many agents have it to say.

    Under the live view the standard error is kept back, and is written after it.
    """

    def __init__(self) -> None:
        self._said: set[str] = set()

    def __call__(self, text: str) -> None:
        """Say a sentence, unless it has been said."""
        line = one_line(text)
        if line not in self._said:
            self._said.add(line)
            click.echo(line, err=True)
