"""The options of `wsap nexus start`, and what it prints once the nexus is ready."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass

import click

from wsap_nexus.state import Running

STEER = "To steer agents as well as watch them, open this once: "
"""What stands before the address that opens the controls."""


@dataclass(frozen=True, kw_only=True)
class StartRequest:
    """What was typed."""

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
    keep_days: float
    as_json: bool
    database: str | None

    @property
    def keep(self) -> float | None:
        """How many days are kept; None for all."""
        return self.keep_days or None


def say_ready(request: StartRequest, running: Running, tokens: str) -> None:
    """Print where the nexus is, once it is ready."""
    if request.as_json:
        line = {"url": running.url, "pid": running.pid, "database": running.database, "token_file": tokens}
        click.echo(json.dumps(line))
    else:
        click.echo(f"The nexus is up: {running.url}  (Ctrl-C stops it; it goes on where it was)")
    sys.stdout.flush()
