"""`wsap plugins`, `wsap games`, `wsap agents`: what is installed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.app import State
from wsap_core.cli.output import print_json, print_table
from wsap_core.untrusted import one_line

if TYPE_CHECKING:
    from wsap_core.entries import PluginEntry

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
_REFRESH = click.option("--refresh", is_flag=True, help="Ask every plugin again, whatever is remembered.")


def _listing(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.pass_obj(_JSON(_REFRESH(command)))


@click.command()
@click.argument("name", required=False)
@_listing
def plugins(state: State, name: str | None, *, as_json: bool, refresh: bool) -> None:
    """List what is installed, from where, and whether it works.

    With the NAME of a plugin, that one alone. A plugin that is broken does not keep the others
    from working. The environment variable WSAP_DISABLE_PLUGINS blocks plugins by name, separated
    by commas.
    """
    entries = state.catalogue(refresh=refresh).plugins
    _tell_unknown(os.environ.get("WSAP_DISABLE_PLUGINS", ""), [e["name"] for e in entries])
    if name is not None:
        entries = _named(name, entries)
    if as_json:
        return print_json(entries)
    rows = [(e["name"], f"{e['distribution']} {e['version']}", e["status"], _provided(e["provides"])) for e in entries]
    return print_table(("PLUGIN", "PACKAGE", "STATUS", "PROVIDES"), rows, notes=[e["reasons"] for e in entries])


def _named(name: str, entries: Sequence[PluginEntry]) -> tuple[PluginEntry, ...]:
    found = tuple(entry for entry in entries if entry["name"] == name)
    if not found:
        from wsap_core.errors import UnknownNameError  # deferred for weight: only when it is needed

        raise UnknownNameError("plugin", name, [e["name"] for e in entries], hint="`wsap plugins` lists all.")
    return found


def _tell_unknown(blocked: str, known: Sequence[str]) -> None:
    """Warn of names in WSAP_DISABLE_PLUGINS that block nothing."""
    for name in filter(None, map(str.strip, blocked.split(","))):
        if name not in known:
            from wsap_core.errors import UnknownNameError  # deferred for weight: only when it is needed

            told = UnknownNameError("plugin", name, known, hint="It blocks nothing.")
            click.echo(f"Warning: WSAP_DISABLE_PLUGINS: {one_line(told)}", err=True)


def _provided(provides: dict[str, list[str]]) -> str:
    return "; ".join(f"{kind} {', '.join(map(str, names))}" for kind, names in provides.items())


@click.command()
@_listing
def games(state: State, *, as_json: bool, refresh: bool) -> None:
    """List the games that can be played."""
    entries = state.catalogue(refresh=refresh).games
    if as_json:
        return print_json(entries)
    rows = [(e["name"], _seats(e["seats"]), e["distribution"], _summary(e)) for e in entries]
    return print_table(("GAME", "SEATS", "PACKAGE", "SUMMARY"), rows)


def _seats(seats: list[int]) -> str:
    low, high = seats
    return str(low) if low == high else f"{low}-{high}"


def _summary(entry: Any) -> str:
    # Any: a GameEntry or an AgentEntry.
    return str(entry["summary"]) if entry["usable"] else f"(two plugins claim this name) {entry['summary']}"


@click.command()
@_listing
def agents(state: State, *, as_json: bool, refresh: bool) -> None:
    """List the agents that can play."""
    entries = state.catalogue(refresh=refresh).agents
    if as_json:
        return print_json(entries)
    rows = [(e["name"], ", ".join(e["games"]) or "any", e["distribution"], _summary(e)) for e in entries]
    return print_table(("AGENT", "GAMES", "PACKAGE", "SUMMARY"), rows)
