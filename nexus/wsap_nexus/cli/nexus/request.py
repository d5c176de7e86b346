"""The options of `wsap nexus start`, and its output once the nexus is ready."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import click

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

    @property
    def keep(self) -> float | None:
        """Days to keep; None for all."""
        return self.keep_days or None


def say_ready(request: StartRequest, running: Running, tokens: str) -> None:
    """Print the address of the nexus, which is ready."""
    if request.as_json:
        line = {"url": running.url, "pid": running.pid, "database": running.database, "token_file": tokens}
        click.echo(json.dumps(line))
    else:
        click.echo(f"The nexus is up: {running.url}  (Ctrl-C stops it; the next start continues)")
    sys.stdout.flush()
