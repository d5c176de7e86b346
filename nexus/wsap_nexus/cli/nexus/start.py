"""`wsap nexus start`: bring the hub up."""

from __future__ import annotations

import asyncio
import os

import click

from wsap_nexus.cli.common import database_option

EMBEDDED = (("ada", "Ada"), ("bob", "Bob"))
"""The agents of a fresh nexus; they need no model."""


@click.command()
@click.option("--host", "address", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=int, default=9998, show_default=True, help="The port; 0 for any that is free.")
@click.option(
    "--seed", type=click.IntRange(0, 2**31 - 1), default=0, show_default=True, help="What chance follows from."
)
@click.option(
    "--pace", type=click.FloatRange(0.01, 10_000), default=4.0, show_default=True,
    help="Most decisions a second of each agent, so that one can watch.",
)  # fmt: skip
@click.option("--game", "games", multiple=True, metavar="NAME", help="A game that may be entered; all if not given.")
@database_option
def start(*, address: str, port: int, seed: int, pace: float, games: tuple[str, ...], database: str | None) -> None:
    """Bring the hub up and keep it running until Ctrl-C.

    A fresh one has two agents that need no model and every game that is installed. Whatever happens
    to it, it goes on where it was when it is started again.
    """
    # Deferred for weight: `wsap nexus --help` needs no server.
    from wsap_core.host import PluginHost
    from wsap_nexus.hub.hub import Nexus, Settings
    from wsap_nexus.hub.records import Policy
    from wsap_nexus.paths import home
    from wsap_nexus.runtime.store import open_store
    from wsap_nexus.server.serve import Address, serve

    host = PluginHost.discovered()
    with open_store(database) as store:
        hub = Nexus(host, store, Settings(seed=seed, pace=pace, games=games or None))
        with hub.ledger.change() as book:
            if not book.agents(limit=1) and not book.last_seq():
                for agent_id, name in EMBEDDED:
                    book.register(agent_id, name=name, policies={"nexus": Policy("wanderer")})

        def ready(url: str) -> None:
            click.echo(f"The nexus is up: {url}  (Ctrl-C stops it; it goes on where it was)")

        folder = home(os.environ)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        asyncio.run(serve(hub, Address(address, port), folder / "nexus.token", ready=ready))
        click.echo("The nexus has stopped. Go on with: wsap nexus start")
