"""The command `wsap mcp`."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import FiniteRange, WholeNumber, typed_pairs
from wsap_core.errors import UsageError

# Any, in this module: options of games.


@click.command(
    cls=GroupedCommand,
    examples=("wsap mcp crafter --config", "wsap mcp crafter --each", "wsap mcp --nexus --agent eve"),
    sections={
        "The game": ("seat", "opponents", "options", "each", "structured", "resume", "idle", "database"),
        "The nexus": ("nexus_url", "agent"),
        "Serving": ("port", "host", "token_file", "config"),
    },
)
@click.argument("game", required=False)
@click.option("--seat", metavar="NAME", help="The seat of the client; by default the first.")
@click.option("--opponents", metavar="AGENT", help="The agent of the other seats; by default the game's own choice.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the game (wsap games NAME lists them); may be repeated.",
)
@click.option("--each", is_flag=True, help="Offer each action of the game as a tool of its own.")
@click.option("--structured", is_flag=True, help="Send whole observations as JSON, too.")
@click.option("--resume", metavar="RUN", help="Continue a stopped game: the id of its run, or last.")
@click.option(
    "--nexus",
    "nexus_url",
    is_flag=False,
    flag_value="here",
    metavar="[URL]",
    help="Watch a nexus and talk to its agents instead; by default the one on this machine.",
)
@click.option("--agent", metavar="ID", help="With --nexus: live there as this agent, which is registered if it is new.")
@click.option(
    "--http",
    "port",
    type=WholeNumber(0, 65535),
    metavar="PORT",
    help="Serve HTTP on this port instead of one client over standard input and output; 0 for any.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="With --http: the address to listen on.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With --http: a file with the token that clients must send; with --nexus: the token for the nexus.",
)
@click.option(
    "--idle",
    type=FiniteRange(1, 10**7),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="Stop a game after so long without a call; it can be resumed.",
)
@click.option("--database", metavar="PATH|URL", help="Where games are recorded; by default WSAP's own.")
@click.option("--config", is_flag=True, help="Print the block for Claude Desktop, Claude Code and IDEs, and end.")
def mcp(game: str | None, nexus_url: str | None, agent: str | None, config: bool, **how: Any) -> None:
    """Let an MCP client play GAME, or any installed game, or live in the nexus.

    The client starts this command itself: `wsap mcp GAME --config` prints what to write into its settings. Each game is
    recorded as a run, which `wsap replay` shows and `resume_game` continues.
    """
    if nexus_url is not None and (game is not None or how["resume"] is not None or how["each"]):
        raise UsageError("--nexus serves the nexus itself; leave out the game and its options.")
    if nexus_url is None and agent is not None:
        raise UsageError("--agent lives in a nexus; add --nexus.")
    if how["each"] and game is None:
        raise UsageError("With --each, name the game: its actions become the tools.")
    if config:
        click.echo(config_block(game, sys.argv[1:]))
        return
    try:
        asyncio.run(_served(game, nexus_url, agent, **how))
    except KeyboardInterrupt:
        click.echo("Stopped.", err=True)


def config_block(game: str | None, given: list[str]) -> str:
    """Return the block of a client's settings that starts this command with the same arguments."""
    command = str(Path(shutil.which("wsap") or sys.argv[0]).absolute())  # not resolved: it is in an environment
    arguments = [argument for argument in given if argument != "--config"]
    name = "nexus" if "--nexus" in given else f"wsap-{game.rpartition(':')[2]}" if game else "wsap"
    return json.dumps({"mcpServers": {name: {"command": command, "args": arguments}}}, indent=2)


async def _served(
    game: str | None,
    nexus_url: str | None,
    agent: str | None,
    *,
    seat: str | None,
    opponents: str | None,
    options: tuple[str, ...],
    each: bool,
    structured: bool,
    resume: str | None,
    port: int | None,
    host: str,
    token_file: Path | None,
    idle: float,
    database: str | None,
) -> None:
    from wsap_mcp import nexus_door, serving
    from wsap_mcp.games import OpenGames
    from wsap_mcp.play import Play, Terms, instructions_of
    from wsap_mcp.tools import server_of
    from wsap_nexus.doors import outside
    from wsap_nexus.http.access.auth import given_token

    token = None if token_file is None else given_token(token_file)

    async def serve(server: Any) -> None:
        if port is None:
            await serving.over_stdio(server)
        else:
            await serving.over_http(server, port, host=host, token=token, ready=_say)

    if nexus_url is not None:
        url = None if nexus_url == "here" else nexus_url
        async with nexus_door.connected(url, token, agent) as door:
            await serve(server_of("wsap-nexus", door.instructions, door.tools(), door.resources()))
        return
    with outside.opened(database, tell=_say) as runs:
        games = OpenGames(runs, idle=idle)
        terms = Terms(game, seat, opponents, typed_pairs("--option", options), each, structured)
        play = Play(games, terms)
        told = instructions_of(play.spec)
        if resume is not None:
            opened = await games.add(lambda: runs.resume(resume))
            await opened.run.observation()
            told += f" A game is open already: its handle is {opened.handle!r}; look at it with show_game."
        server = server_of("wsap", told, play.tools(), play.resources())
        await serving.with_idle_closed(games, serve(server))


def _say(text: str) -> None:
    # The standard output is the client's.
    click.echo(text if not text.startswith("http") else f"Serving MCP at {text} (stop with Ctrl-C)", err=True)
