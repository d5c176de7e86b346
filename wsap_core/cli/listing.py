"""`wsap plugins`, `wsap games`, `wsap agents`: what is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from wsap_core.cli.app import State
from wsap_core.cli.output import print_json, print_table

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
_REFRESH = click.option("--refresh", is_flag=True, help="Ask every plugin again, whatever is remembered.")


def _listing(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.pass_obj(_JSON(_REFRESH(command)))


@click.command()
@_listing
def plugins(state: State, *, as_json: bool, refresh: bool) -> None:
    """List what is installed, from where, and whether it works.

    A plugin that is broken does not keep the others from working. The environment variable
    WSAP_DISABLE_PLUGINS blocks plugins by name, separated by commas.
    """
    entries = state.catalogue(refresh=refresh).plugins
    if as_json:
        return print_json(entries)
    rows = [(e["name"], f"{e['distribution']} {e['version']}", e["status"], _provided(e["provides"])) for e in entries]
    return print_table(("PLUGIN", "PACKAGE", "STATUS", "PROVIDES"), rows, notes=[e["reasons"] for e in entries])


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
