"""The options of `wsap nexus start`, and its output once the nexus is ready."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import click

from wsap_core.errors import WsapError
from wsap_core.untrusted import single_line
from wsap_nexus import state
from wsap_nexus.cli.common import is_dumb, output_console
from wsap_nexus.cli.nexus.connection import NexusHttp
from wsap_nexus.paths import database_location
from wsap_nexus.state import Running

STEER = "To see everything and control agents, open this once: "
"""The text before the one-time address of the dashboard's controls."""


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
    workers: int | str | None
    """A number, or `ray`."""
    worker_memory: int | None
    living_in_workers: bool
    game_hosts: tuple[str, ...]
    limits: tuple[str, ...]
    keep_days: float
    keep_size: int
    as_json: bool
    database: str | None
    worlds: tuple[str, ...] = ()
    agent_options: tuple[str, ...] = ()
    backend_options: tuple[str, ...] = ()
    patience: float = 30.0

    @property
    def keep(self) -> float | None:
        """Days to keep; None for all."""
        return self.keep_days or None


def address_of(request: StartRequest, running: Running) -> str:
    """Return the address of the nexus; if it listens on all interfaces, the one for other devices."""
    from wsap_nexus.http.listening import ALL, url_for_others

    port = urlsplit(running.url).port
    return url_for_others(request.host, port) if request.host in ALL and port else running.url


def say_ready(request: StartRequest, running: Running, tokens: str, hint: str, opening: str) -> None:
    """Print the address of a ready nexus, a hint how to stop it, and the one-time address `opening` if not empty."""
    url = address_of(request, running)
    if request.as_json:
        click.echo(json.dumps({"url": url, "pid": running.pid, "database": running.database, "token_file": tokens}))
    else:
        click.echo(f"The nexus is up: {url}  ({hint})")
        if opening:
            click.echo(f"{STEER}{opening}")
        if opening and request.expose:
            show_code(opening)
    sys.stdout.flush()


def show_code(address: str) -> None:
    """Print an address as a QR code if standard output is a wide enough terminal."""
    console = output_console()
    if not console.is_terminal or is_dumb() or console.encoding != "utf-8":
        return
    # Deferred for weight: most starts print no code.
    import segno
    from rich.text import Text

    drawn = io.StringIO()
    segno.make(address, micro=False).terminal(drawn, compact=True)
    rows = drawn.getvalue().splitlines()
    if max(map(len, rows)) <= console.width:
        console.print(Text("\n".join(rows), style="bright_white on black"))


LOG_NAME = "nexus.log"
"""The file in the home folder that holds the output of a nexus in the background."""

SAID_WITHIN = 5.0
"""Seconds to wait for the address of the controls in the log once the nexus is ready."""

TIMEOUT = 120.0
"""Seconds to wait until it is ready."""


class NotStartedError(WsapError):
    """The nexus in the background ended before it was ready; `exit_code` is that of its process."""

    code = "NOT_STARTED"

    def __init__(self, message: str, exit_code: int | None) -> None:
        super().__init__(message)
        if exit_code is not None and exit_code > 0:
            self.exit_code = exit_code  # type: ignore[misc]  # varies by instance


def start_detached(request: StartRequest) -> None:
    """Start a nexus in the background and wait until it is ready; NotStartedError, with its last output, otherwise."""
    log = state.token_file(os.environ).with_name(LOG_NAME)
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A file, because a pipe would break when this process ends.
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    began = log.stat().st_size
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "wsap_core", "nexus", "start", *words_of(request)],
            stdin=subprocess.DEVNULL, stdout=descriptor, stderr=descriptor, start_new_session=True,
        )  # fmt: skip
    finally:
        os.close(descriptor)
    running = _ready(process, request)
    if running is None:
        raise NotStartedError(_why(log, began), process.returncode)
    opening = "" if request.as_json else _steering(log, began, address_of(request, running))
    hint = f"stop it with: wsap nexus stop; its output is in {log}"
    say_ready(request, running, str(state.token_file(os.environ)), hint, opening)


def _ready(process: subprocess.Popen[bytes], request: StartRequest) -> state.Running | None:
    """Return where it runs once it has responded to a request; None if it ended, or took too long."""
    path = state.state_file(database_location(request.database, os.environ), os.environ)
    end = time.monotonic() + TIMEOUT
    while process.poll() is None and time.monotonic() < end:
        running = state.read(path)
        if running is not None and running.pid == process.pid and NexusHttp(running).health() is not None:
            return running
        time.sleep(0.05)
    if process.poll() is None:
        process.terminate()
    return None


def _steering(log: Path, began: int, url: str) -> str:
    """Return the one-time address of the dashboard's controls from the log, which only its owner can read; else ""."""
    end = time.monotonic() + SAID_WITHIN
    while True:
        with log.open("rb") as file:
            file.seek(began)
            lines = file.read().decode("utf-8", "replace").split("\n")
        # The last line is incomplete or empty.
        said = next((line.removeprefix(STEER) for line in lines[:-1] if line.startswith(f"{STEER}{url}#")), "")
        if said or time.monotonic() >= end:
            return single_line(said)
        time.sleep(0.02)


def _why(log: Path, began: int) -> str:
    with log.open("rb") as file:
        file.seek(began)
        lines = file.read()[-20_000:].decode("utf-8", "replace").strip().splitlines()
    last = single_line(lines[-1]).removeprefix("Error: ") if lines else "It ended without output."
    return f"{last} (The nexus did not start; its output is in {log}.)"


_REPEATED = {
    "games": "game",
    "worlds": "world",
    "limits": "limit",
    "game_hosts": "game_host",
    "agent_options": "agent_option",
    "backend_options": "model_option",
}


def words_of(request: StartRequest) -> list[str]:
    """Return the arguments that start the same nexus in the foreground."""
    words: list[str] = []
    for name, value in vars(request).items():
        option = f"--{_REPEATED.get(name, name).replace('_', '-')}"
        if isinstance(value, tuple):
            words += [word for each in value for word in (option, each)]
        elif isinstance(value, bool):
            words += [option] if value and name != "as_json" else []
        elif value is not None:
            words += [option, str(value)]
    return words
