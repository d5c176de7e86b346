"""The command `wsap serve`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import FiniteRange, WholeNumber, typed_pairs
from wsap_core.errors import UsageError

# Any, in this module: options of games.


@click.command(
    cls=GroupedCommand,
    examples=("wsap serve crafter --openenv", "wsap serve matrix --openenv --seat row --opponents tit-for-tat"),
    sections={
        "The game": ("seat", "opponents", "options", "structured", "database"),
        "Serving": ("openenv", "port", "host", "token_file", "most", "idle"),
    },
)
@click.argument("game")
@click.option("--openenv", is_flag=True, help="Speak OpenEnv's protocol; as yet the only one, so it must be given.")
@click.option("--seat", metavar="NAME", help="The seat of clients; by default the first.")
@click.option(
    "--opponents",
    multiple=True,
    metavar="[SEAT=]AGENT",
    help="The agent of the other seats, or of one of them; by default the game's own choice. May be repeated.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the game (wsap games NAME lists them); may be repeated.",
)
@click.option("--structured", is_flag=True, help="Send whole observations as JSON, too.")
@click.option("--database", metavar="PATH|URL", help="Where episodes are recorded; by default WSAP's own.")
@click.option(
    "--port",
    type=WholeNumber(0, 65535),
    default=8000,
    show_default=True,
    metavar="PORT",
    help="The port to listen on; 0 for any.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A file with the token that clients must send; without one, only this machine is served.",
)
@click.option(
    "--sessions",
    "most",
    type=WholeNumber(1, 10_000),
    default=32,
    show_default=True,
    metavar="NUMBER",
    help="The most clients at once.",
)
@click.option(
    "--idle",
    type=FiniteRange(1, 10**7),
    default=3600.0,
    show_default=True,
    metavar="SECONDS",
    help="End a client's session after so long without a message.",
)
def serve(game: str, openenv: bool, **how: Any) -> None:
    """Serve GAME to trainers and other clients, as an OpenEnv environment.

    Each client has a session of its own, in which it plays one episode after the other. Each episode is recorded as a
    run, which `wsap replay` shows.
    """
    if not openenv:
        raise UsageError("Say how the game is to be served: add --openenv.")
    try:
        asyncio.run(_served(game, **how))
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)


def opponents_of(given: tuple[str, ...]) -> dict[str, str] | str | None:
    """Return the agent of all other seats, or seat -> agent; UsageError if both are given."""
    named = dict(pair.split("=", 1) for pair in given if "=" in pair)
    plain = [each for each in given if "=" not in each]
    if len(plain) > 1 or (plain and named):
        raise UsageError("--opponents is one agent for all other seats, or SEAT=AGENT for each.")
    return plain[0] if plain else named or None


async def _served(
    game: str,
    *,
    seat: str | None,
    opponents: tuple[str, ...],
    options: tuple[str, ...],
    structured: bool,
    database: str | None,
    port: int,
    host: str,
    token_file: Path | None,
    most: int,
    idle: float,
) -> None:
    from wsap_nexus.doors import outside
    from wsap_nexus.http.access.auth import given_token
    from wsap_nexus.http.listening import Address
    from wsap_openenv.serving import serve
    from wsap_openenv.sessions import Sessions, Terms

    token = None if token_file is None else given_token(token_file)
    terms = Terms(game, seat, opponents_of(opponents), typed_pairs("--option", options), structured)
    with outside.opened(database, tell=lambda text: click.echo(text, err=True)) as runs:
        sessions = Sessions(runs, terms, most=most, idle=idle)
        await serve(sessions, Address(host, port), token=token, ready=_ready)


def _ready(url: str) -> None:
    click.echo(f"Serving OpenEnv at {url} (stop with Ctrl-C)", err=True)
