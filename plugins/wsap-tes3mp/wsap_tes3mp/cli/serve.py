"""`wsap tes3mp serve`."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import SEED, FiniteRange, WholeNumber, json_option, refuse_given

if TYPE_CHECKING:
    from wsap_tes3mp.engines.engine import Engine
    from wsap_tes3mp.engines.tes3mp.esm import Encoding


@click.command(
    cls=GroupedCommand,
    sections={
        "Engine": ("engine", "agents", "seed", "stepped", "deadline", "stale_after"),
        "TES3MP": ("script", "script_token", "data", "encoding"),
        "Network": ("host", "port", "expose", "trusting"),
        "Recording": ("log",),
    },
    examples=(
        "wsap tes3mp serve",
        "wsap tes3mp serve --agent ada --agent bob --seed 7",
        "wsap tes3mp serve --engine tes3mp --data ~/morrowind/Data",
    ),
)
@click.option("--engine", type=click.Choice(["simulated", "tes3mp"]), default="simulated", show_default=True,
              help="The embedded engine, or a TES3MP server.")  # fmt: skip
@click.option("--agent", "agents", multiple=True, metavar="ID", show_default="agent",
              help="Give this agent a body in the embedded engine; may be repeated.")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the embedded engine's world.")
@click.option("--stepped", is_flag=True, help="Advance the embedded engine's time only with commands.")
@click.option("--deadline", type=FiniteRange(0.01, 60), default=2.0, show_default=True,
              help="Seconds the engine has for a perception.")  # fmt: skip
@click.option("--stale-after", type=FiniteRange(0.01, 86400), metavar="SECONDS",
              help="Refuse commands based on a perception older than this; no limit if not given.")  # fmt: skip
@click.option("--script", metavar="ADDRESS", default="127.0.0.1:8766", show_default=True,
              help="Where the script in the TES3MP server listens, or its mailbox folder.")  # fmt: skip
@click.option("--script-token", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="The file with the script's token. Default: that of wsap tes3mp install.")  # fmt: skip
@click.option("--data", multiple=True, type=click.Path(path_type=Path), metavar="PATH",
              help="The game's data files, or their folder, for names and weights; may be repeated.")  # fmt: skip
@click.option("--encoding", type=click.Choice(["cp1252", "cp1251", "cp1250"]), default="cp1252", show_default=True,
              help="The code page of the data files: Western, Cyrillic or Central European.")  # fmt: skip
@click.option("--host", show_default="127.0.0.1; with --expose 0.0.0.0, all addresses",
              help="The address to listen on; anything but loopback needs --expose.")  # fmt: skip
@click.option("--port", type=WholeNumber(0, 65535), default=8765, show_default=True,
              help="The port; 0 for any free one.")  # fmt: skip
@click.option("--expose", is_flag=True, help="Accept connections from other machines; every request needs the token.")
@click.option("--no-token", "trusting", is_flag=True,
              help="Let programs on this machine act without the token.")  # fmt: skip
@click.option("--log", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="The command log. Default: tes3mp/commands.sqlite in the data folder.")  # fmt: skip
@json_option
def serve(
    *, engine: str, agents: tuple[str, ...], seed: int, stepped: bool, deadline: float,
    stale_after: float | None, script: str, script_token: Path | None, data: tuple[Path, ...], encoding: Encoding,
    host: str | None, port: int, expose: bool, trusting: bool, log: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Serve a bridge until Ctrl-C.

    Agents perceive with GET /perception and act with POST /command; GET /morrowind/status has the state. With --json
    one line is printed once it answers: url, pid, token_file, log.
    """
    # Deferred for weight: `wsap tes3mp --help` needs no server.
    from wsap_core.errors import UsageError
    from wsap_nexus.http.access.auth import own_token
    from wsap_nexus.http.listening import Address, refuse_unexposed
    from wsap_nexus.http.signals import told_to_stop
    from wsap_nexus.state import Running, birth, remove, write
    from wsap_tes3mp import paths
    from wsap_tes3mp.bridge.app import serve as serve_bridge
    from wsap_tes3mp.bridge.bridge import Bridge
    from wsap_tes3mp.log.log import CommandLog

    host = host or ("0.0.0.0" if expose else "127.0.0.1")  # noqa: S104 requested with --expose
    refuse_unexposed(host, "bridge", exposed=expose)
    if trusting and expose:
        raise UsageError("--no-token and --expose exclude each other.")
    made: Engine
    if engine == "simulated":
        refuse_given("with --engine simulated", "script", "script_token", "data", "encoding")
        from wsap_tes3mp.engines.simulated.engine import SimulatedEngine
        from wsap_tes3mp.protocol.bridge import LONGEST_ID

        if not all(1 <= len(agent) <= LONGEST_ID and agent.isprintable() for agent in agents):
            raise UsageError(f"An agent's id has 1 to {LONGEST_ID} printable characters; choose another one.")
        made = SimulatedEngine(seed=seed, realtime=not stepped, agents=agents or ("agent",))
    else:
        refuse_given("with --engine tes3mp", "agents", "seed", "stepped")
        if not data:
            refuse_given("without --data", "encoding")
        from wsap_tes3mp.engines.tes3mp.engine import open_engine

        made = open_engine(script_token, address=script, data=data, encoding=encoding)
    path, token_file = log or paths.log_file(), paths.token_file()
    token_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    token = own_token(token_file)

    written: list[tuple[Path, Running]] = []

    def ready(url: str) -> None:
        # The clients on this machine give their token to the bridges that are written down, and to nothing else.
        bridge = Running(os.getpid(), birth(os.getpid()), url, time.time(), str(path))
        written.append((paths.serving_file(urlsplit(url).port or port), bridge))
        write(*written[0])
        if as_json:
            click.echo(json.dumps({"url": url, "pid": os.getpid(), "token_file": str(token_file), "log": str(path)}))
            return
        click.echo(f"The bridge is serving the engine {made.name} at {url}; Ctrl-C stops it.")
        needed = "Commands need no token." if trusting else f"Commands need the token in {token_file}."
        click.echo(f"{needed} They are logged in {path}.")
        click.echo(f"Try: curl {url}morrowind/status")

    async def run() -> None:
        with CommandLog(path) as commands, told_to_stop(lambda: None, lambda: None, lambda: None) as told:
            bridge = Bridge(made, commands, deadline=deadline, stale_after=stale_after)
            await serve_bridge(bridge, Address(host, port), token, until=told, ready=ready, trusting=trusting)

    try:
        asyncio.run(run())
    finally:
        for file, bridge in written:
            remove(file, bridge)
    if not as_json:
        click.echo("The bridge has stopped.")
