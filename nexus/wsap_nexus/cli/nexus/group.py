"""`wsap nexus`: what there is to do with the hub. Each command is imported when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

COMMANDS: Mapping[str, tuple[str, str]] = {
    "start": ("wsap_nexus.cli.nexus.start:start", "Bring the hub up: agents, worlds, wire API, dashboard."),
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
