"""The commands `wsap plugins`, `wsap games` and `wsap agents`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from wsap_core.cli.app import State
from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json, print_table
from wsap_core.cli.params import complete_agents, complete_games, json_option
from wsap_core.untrusted import single_line

if TYPE_CHECKING:
    from wsap_core.cli.rows import AgentRow, GameRow, OptionRow, PluginRow

R = TypeVar("R", "PluginRow", "GameRow", "AgentRow")

_REFRESH = click.option("--refresh", is_flag=True, help="Reload all plugins instead of using the cache.")


def _listing(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.pass_obj(json_option(_REFRESH(command)))


@click.command(cls=GroupedCommand, examples=("wsap plugins", "wsap plugins crafter --json"))
@click.argument("name", required=False)
@_listing
def plugins(state: State, name: str | None, *, as_json: bool, refresh: bool) -> None:
    """List the installed plugins with their packages and status.

    With the NAME of a plugin, list only that one. A broken plugin does not affect the others. To block
    plugins, set the environment variable WSAP_DISABLE_PLUGINS to their names, separated by commas.
    """
    entries = state.catalogue(refresh=refresh).plugins
    _tell_unknown(os.environ.get("WSAP_DISABLE_PLUGINS", ""), [e["name"] for e in entries])
    if name is not None:
        entries = [_named("plugin", name, entries)]
    if as_json:
        return print_json(entries)
    rows = [(e["name"], f"{e['distribution']} {e['version']}", e["status"], _provided(e["provides"])) for e in entries]
    return print_table(("PLUGIN", "PACKAGE", "STATUS", "PROVIDES"), rows, notes=[e["reasons"] for e in entries])


def _named(kind: str, name: str, rows: Sequence[R]) -> R:
    former = [row for row in rows if name in cast(Any, row).get("former_names", ())]  # games have some
    found = [row for row in rows if row["name"] == name] or former
    if not found:
        from wsap_core.errors import UnknownNameError  # deferred for weight

        raise UnknownNameError(kind, name, [row["name"] for row in rows], hint=f"`wsap {kind}s` lists all.")
    return found[0]


def _tell_unknown(blocked: str, known: Sequence[str]) -> None:
    for name in filter(None, map(str.strip, blocked.split(","))):
        if name not in known:
            from wsap_core.errors import UnknownNameError  # deferred for weight

            told = UnknownNameError("plugin", name, known, hint="It blocks nothing.")
            click.echo(f"Warning: WSAP_DISABLE_PLUGINS: {single_line(told)}", err=True)


def _provided(provides: dict[str, list[str]]) -> str:
    return "; ".join(f"{kind} {', '.join(map(str, names))}" for kind, names in provides.items())


@click.command(cls=GroupedCommand, examples=("wsap games", "wsap games tossim", "wsap games --json"))
@click.argument("name", required=False, shell_complete=complete_games)
@_listing
def games(state: State, name: str | None, *, as_json: bool, refresh: bool) -> None:
    """List the installed games.

    With the NAME of a game, show its details and options.
    """
    rows = state.catalogue(refresh=refresh).games
    if name is not None:
        row, members = _game(name, rows)
        return print_json(row) if as_json else _print_game(row, members)
    if as_json:
        return print_json(rows)
    lines = [(row["name"], _seats(row["seats"]), row["distribution"], _summary(row)) for row in rows]
    return print_table(("GAME", "SEATS", "PACKAGE", "SUMMARY"), lines)


@click.command(cls=GroupedCommand, examples=("wsap agents", "wsap agents llm", "wsap agents --json"))
@click.argument("name", required=False, shell_complete=complete_agents)
@_listing
def agents(state: State, name: str | None, *, as_json: bool, refresh: bool) -> None:
    """List the installed agents.

    With the NAME of an agent, show its details and options.
    """
    rows = state.catalogue(refresh=refresh).agents
    if name is not None:
        row = _named("agent", name, rows)
        return print_json(row) if as_json else _print_agent(row)
    if as_json:
        return print_json(rows)
    lines = [(row["name"], ", ".join(row["games"]) or "any", row["distribution"], _summary(row)) for row in rows]
    return print_table(("AGENT", "GAMES", "PACKAGE", "SUMMARY"), lines)


def _game(name: str, rows: Sequence[GameRow]) -> tuple[GameRow, dict[str, str]]:
    """Return the row of a game, also of `family:NAME`, and of a family each NAME -> why it can't be played."""
    row = _named("game", name.partition(":")[0], rows)
    if not row["family"] and name == row["name"]:
        return row, {}
    from wsap_core.cli.rows import game  # deferred for weight: only families need their plugins here
    from wsap_core.host import PluginHost

    host = PluginHost.discovered()
    entry = host.games.entry(name)
    # The variant of a family is not known until its member is.
    spec = entry.spec if entry.spec.family else entry.spec.with_options({})
    return game(host, replace(entry, spec=spec)), entry.spec.known_members()


def _seats(seats: list[int]) -> str:
    low, high = seats
    return str(low) if low == high else f"{low}-{high}"


def _summary(row: GameRow | AgentRow) -> str:
    return row["summary"] if row["usable"] else f"(two plugins claim this name) {row['summary']}"


def _print_game(row: GameRow, known: dict[str, str]) -> None:
    members = [name for name, why_not in known.items() if not why_not]
    facts = {
        "seats": f"{_seats(row['seats'])}, {row['timing']}",
        "default agent": row["default_agent"],
        "scores": ", ".join(row["scores"]),
        "terms": "; ".join(f"{name} {', '.join(values)}" for name, values in row["terms"].items()),
        "abilities": ", ".join(row["abilities"]),
        "package": row["distribution"],
    }
    _print_about(f"{row['title']}: {_summary(row)}", facts, row["options"])
    achievements = [(a["name"], a["rarity"] or "-", a["description"]) for a in row["achievements"]]
    _print_rows(("ACHIEVEMENT", "RARITY", "DESCRIPTION"), achievements)
    _print_rows(("NAMES",), [(", ".join(members),)] if members else [])
    _print_rows(("NOT PLAYABLE", "WHY"), [(name, why_not) for name, why_not in known.items() if why_not])
    name = f"{row['name']}:{members[0]}" if members else row["name"]
    options = [option for option in row["options"] if not members or option["name"] != row["family"]]
    click.echo(f"\nPlay it: wsap play {name}{_example('--option', options)}")


def _print_agent(row: AgentRow) -> None:
    facts = {
        "games": ", ".join(row["games"]) or "any",
        "abilities": ", ".join(row["abilities"]),
        "package": row["distribution"],
    }
    _print_about(f"{row['name']}: {_summary(row)}", facts, row["options"])
    game = row["games"][0] if row["games"] else "GAME"
    if game != "nexus":
        click.echo(f"\nLet it play: wsap play {game} --agent {row['name']}{_example('--agent-option', row['options'])}")


def _print_about(title: str, facts: dict[str, str], options: list[OptionRow]) -> None:
    click.echo(single_line(title) + "\n")
    for label, value in facts.items():
        if value:
            click.echo(f"{label + ':':<15}{single_line(value)}")
    rows = [(o["name"], o["values"] or "text", o["default"] or "-", o["summary"]) for o in options]
    _print_rows(("OPTION", "VALUES", "DEFAULT", "SUMMARY"), rows)


def _print_rows(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    if rows:
        click.echo()
        print_table(headings, rows)


def _example(flag: str, options: list[OptionRow]) -> str:
    if not options:
        return ""
    first = options[0]
    return f" {flag} {first['name']}={first['default'] or first['values'].partition('|')[0] or '...'}"
