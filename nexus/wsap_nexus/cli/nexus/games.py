"""`wsap nexus games`: lists the games that agents can enter, and sets their status."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand, ListGroup
from wsap_core.cli.params import complete_games, json_option
from wsap_core.errors import WsapError
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_nexus.cli.common import database_option, print_lines, said
from wsap_nexus.cli.nexus.connection import reading, running_on, writing

if TYPE_CHECKING:
    from wsap_nexus.hub.games.catalog import Availability


@click.group(
    cls=ListGroup,
    invoke_without_command=True,
    examples=("wsap nexus games", "wsap nexus games --json", "wsap nexus games offline crafter --reason maintenance"),
)
@json_option
@database_option
@click.pass_context
def games(context: click.Context, *, as_json: bool, database: str | None) -> None:
    """List the games that agents can enter, with their status, agents and worlds."""
    if context.invoked_subcommand is not None:
        return
    rows = _rows(database)
    print_lines(as_json, rows, _lines(rows))


@games.command(cls=GroupedCommand, examples=("wsap nexus games online crafter",))
@click.argument("game", shell_complete=complete_games)
@json_option
@database_option
def online(*, game: str, as_json: bool, database: str | None) -> None:
    """Make GAME available to agents again, and reset its failure count."""
    _put(game, "available", "", as_json=as_json, database=database)


@games.command(cls=GroupedCommand, examples=("wsap nexus games offline crafter --reason maintenance",))
@click.argument("game", shell_complete=complete_games)
@click.option("--reason", default="", metavar="TEXT", help="The reason, shown to agents and people.")
@json_option
@database_option
def offline(*, game: str, reason: str, as_json: bool, database: str | None) -> None:
    """Make GAME unavailable to agents, and bring back those in it."""
    _put(game, "offline", reason, as_json=as_json, database=database)


def _lines(rows: list[dict[str, Any]]) -> Iterator[str]:
    widest = max((len(row["game"]) for row in rows), default=0)
    for row in rows:
        inside = f"{plural(row['agents'], 'agent')} in {plural(row['worlds'], 'world')}"
        inside += "".join(f"; {name}" for name in map(single_line, row["kept"]))
        why = f": {single_line(row['reason'])}" if row["reason"] else ""
        yield f"{single_line(row['game']):<{widest}}  {row['status']}{why}  ({inside})"
    if not rows:
        yield "No game is installed; check with: wsap plugins"


def _rows(database: str | None) -> list[dict[str, Any]]:
    # Any: JSON.
    from wsap_core.host import PluginHost
    from wsap_core.references import load_adapter_spec
    from wsap_nexus.cli.nexus.report import kept_of, worlds_of
    from wsap_nexus.hub.games.catalog import Availability, CircuitBreaker
    from wsap_nexus.hub.living_worlds import no_world

    nexus = running_on(database)
    closed: dict[str, tuple[str, str]] = {}
    if nexus is not None:
        listed = nexus.get("nexus", "games")["games"]
        names = [str(game["id"]) for game in listed]
        closed = {str(g["id"]): (str(g["status"]), str(g.get("reason", ""))) for g in listed}
    else:
        host = PluginHost.discovered()
        names = list(host.games.names())
        for name in names:
            with contextlib.suppress(WsapError):  # one that can't be loaded
                spec = load_adapter_spec(name, host)
                if "lives" in spec.abilities:
                    closed[name] = ("offline", no_world(spec))
    with reading(database) as nexus_store:
        if nexus_store is None:
            return [{"game": name, **_standing(Availability(), closed.get(name)), "worlds": 0, "agents": 0, "kept": []}
                    for name in sorted(names)]  # fmt: skip
        standings = CircuitBreaker(nexus_store, 1)
        with nexus_store.look() as tx:
            worlds = {line.game: line for line in worlds_of(tx)}
            kept = kept_of(tx)
        rows = []
        for name in sorted({*names, *worlds}):
            standing = _standing(standings.of(name), closed.get(name))
            if name not in names:
                standing["status"] = "not installed"
            line = worlds.get(name)
            inside = (line.worlds, line.agents) if line else (0, 0)
            rows.append({"game": name, **standing,
                         "worlds": inside[0], "agents": inside[1],
                         "kept": [line.name for line in kept if line.game == name]})  # fmt: skip
        return rows


def _standing(stored: Availability, closed: tuple[str, str] | None) -> dict[str, str]:
    if stored.status == "available" and closed is not None:
        return {"status": closed[0], "reason": closed[1]}
    return {"status": stored.status, "reason": stored.reason}


def _put(game: str, status: str, reason: str, *, as_json: bool, database: str | None) -> None:
    from wsap_core.host import PluginHost
    from wsap_nexus.hub.games.catalog import CircuitBreaker

    nexus = running_on(database)
    if nexus is not None:
        nexus.put("nexus", "games", game, "status", body={"status": status, "reason": reason})
    else:
        PluginHost.discovered().games.get(game)
        with writing(database) as nexus_store:
            CircuitBreaker(nexus_store, 1).put(game, status, reason)
    said(as_json, f"{game} is {status}.", game=game, status=status, reason=reason)
