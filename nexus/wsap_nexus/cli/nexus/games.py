"""`wsap nexus games`: what agents can enter, and how it stands."""

from __future__ import annotations

import json
from typing import Any

import click

from wsap_core.untrusted import one_line
from wsap_nexus.cli.common import database_option, json_option


@click.group(invoke_without_command=True)
@json_option
@database_option
@click.pass_context
def games(context: click.Context, *, as_json: bool, database: str | None) -> None:
    """List the games that agents can enter: how they stand, and how many agents are in them."""
    if context.invoked_subcommand is not None:
        return
    rows = _rows(database)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    widest = max((len(row["game"]) for row in rows), default=0)
    for row in rows:
        inside = f"{row['agents']} in it, {row['worlds']} world{'' if row['worlds'] == 1 else 's'}"
        why = f": {one_line(row['reason'])}" if row["reason"] else ""
        click.echo(f"{one_line(row['game']):<{widest}}  {row['status']}{why}  ({inside})")
    if not rows:
        click.echo("No game is installed; see wsap games.")


@games.command()
@click.argument("game")
@json_option
@database_option
def online(*, game: str, as_json: bool, database: str | None) -> None:
    """Let agents enter GAME again; its failures so far are forgotten."""
    _put(game, "available", "", as_json=as_json, database=database)


@games.command()
@click.argument("game")
@click.option("--reason", default="", metavar="TEXT", help="Why, for agents and people who ask.")
@json_option
@database_option
def offline(*, game: str, reason: str, as_json: bool, database: str | None) -> None:
    """Let nobody enter GAME, and bring those who are in it back."""
    _put(game, "offline", reason, as_json=as_json, database=database)


def _rows(database: str | None) -> list[dict[str, Any]]:
    # Any: JSON.
    from wsap_core.host import PluginHost
    from wsap_nexus.cli.nexus.report import running_on, worlds_of
    from wsap_nexus.cli.nexus.wire import Wire
    from wsap_nexus.cli.runs import open_for_reading
    from wsap_nexus.hub.catalog import CircuitBreaker
    from wsap_nexus.store.nexus_store import NexusStore

    running = running_on(database)
    if running is not None:
        names = [str(g["id"]) for g in Wire(running).get("nexus", "games")["games"]]
    else:
        names = list(PluginHost.discovered().games.names())
    opened = open_for_reading(database)
    if opened is None:
        return [{"game": name, "status": "available", "reason": "", "worlds": 0, "agents": 0} for name in sorted(names)]
    with opened:
        ledger = NexusStore(opened)
        standings = CircuitBreaker(ledger, 1, 1.0)
        with ledger.look() as book:
            worlds = {line.game: line for line in worlds_of(book.connection)}
        rows = []
        for name in sorted({*names, *worlds}):
            stands = standings.of(name)
            status = stands.status if name in names else "not installed"
            line = worlds.get(name)
            inside = (line.worlds, line.agents) if line else (0, 0)
            rows.append({"game": name, "status": status, "reason": stands.reason,
                         "worlds": inside[0], "agents": inside[1]})  # fmt: skip
        return rows


def _put(game: str, status: str, reason: str, *, as_json: bool, database: str | None) -> None:
    from wsap_core.host import PluginHost
    from wsap_nexus.cli.nexus.reach import writing
    from wsap_nexus.cli.nexus.report import running_on
    from wsap_nexus.cli.nexus.wire import Wire
    from wsap_nexus.hub.catalog import CircuitBreaker

    running = running_on(database)
    if running is not None:
        Wire(running).put("nexus", "games", game, "status", body={"status": status, "reason": reason})
    else:
        PluginHost.discovered().games.get(game)
        with writing(database, lead=True) as ledger:
            CircuitBreaker(ledger, 1, 1.0).put(game, status, reason)
    click.echo(json.dumps({"game": game, "status": status, "reason": reason}) if as_json else f"{game} is {status}.")
