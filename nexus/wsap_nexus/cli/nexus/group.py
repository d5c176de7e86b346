"""`wsap nexus`: what there is to do with the hub. Each command is imported when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

_HERE = "wsap_nexus.cli.nexus"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "start": (f"{_HERE}.start:start", "Bring the hub up: agents, worlds, wire API, dashboard."),
    "stop": (f"{_HERE}.stop:stop", "Let a running nexus end in good order."),
    "status": (f"{_HERE}.status:status", "Who is where, whether it runs or not."),
    "watch": (f"{_HERE}.watch:watch", "See what happens, live, in the terminal."),
    "agents": (f"{_HERE}.agents:agents", "Add, list, send, pause, remove, export and import agents."),
    "games": (f"{_HERE}.games:games", "List the games that agents can enter, and how they stand."),
    "backup": (f"{_HERE}.backup:backup", "Copy the database, also while the nexus runs."),
    "restore": (f"{_HERE}.backup:restore", "Put a copy back in place."),
    "prune": (f"{_HERE}.prune:prune", "Forget what is old."),
}
"""Name -> where it is, and its line in the help."""


class _Lazy(click.Group):
    """Knows its commands by name, and imports them when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.command(cls=_Lazy)
def nexus() -> None:
    """The nexus: where agents live, and from where they go into worlds."""
