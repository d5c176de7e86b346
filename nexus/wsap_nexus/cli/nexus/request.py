"""The options of `wsap nexus start`, and its output once the nexus is ready."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from urllib.parse import urlsplit

import click

from wsap_nexus.cli.common import is_dumb, output_console
from wsap_nexus.state import Running

STEER = "To see everything and control agents, open this once: "
"""The text before the address that opens the controls."""


@dataclass(frozen=True, kw_only=True)
class StartRequest:
    """The options of one command line."""

    host: str
    port: int
    expose: bool
    seed: int
    pace: float
    games: tuple[str, ...]
    model: str | None
    workers: int | None
    worker_memory: int | None
    game_hosts: tuple[str, ...]
    limits: tuple[str, ...]
    keep_days: float
    keep_size: int
    as_json: bool
    database: str | None
    worlds: tuple[str, ...] = ()

    @property
    def keep(self) -> float | None:
        """Days to keep; None for all."""
        return self.keep_days or None


def address_of(request: StartRequest, running: Running) -> str:
    """Return the address of the nexus; if it is exposed on all interfaces, that at which other devices reach it."""
    from wsap_nexus.http.listening import ALL, url_for_others

    port = urlsplit(running.url).port
    return url_for_others(request.host, port) if request.host in ALL and port else running.url


def say_ready(request: StartRequest, running: Running, tokens: str, hint: str, opening: str) -> None:
    """Print the address of the nexus, which is ready.

    Args:
        tokens: the file with its token.
        hint: how to stop it.
        opening: the address that opens the controls once; empty if there is none.
    """
    url = address_of(request, running)
    if request.as_json:
        click.echo(json.dumps({"url": url, "pid": running.pid, "database": running.database, "token_file": tokens}))
    else:
        click.echo(f"The nexus is up: {url}  ({hint})")
        if opening:
            click.echo(f"{STEER}{opening}")
        if opening and request.expose:
            _show_code(opening)
    sys.stdout.flush()


def _show_code(address: str) -> None:
    """Print an address as a QR code for a phone, if standard output is a terminal that is wide enough."""
    console = output_console()
    if not console.is_terminal or is_dumb() or console.encoding != "utf-8":
        return
    # Deferred for weight: most starts print none.
    import segno
    from rich.text import Text

    drawn = io.StringIO()
    segno.make(address, micro=False).terminal(drawn, compact=True)
    rows = drawn.getvalue().splitlines()
    if max(map(len, rows)) <= console.width:
        console.print(Text("\n".join(rows), style="bright_white on black"))
