"""`wsap tossim`: what there is to do around the game. Each command is imported when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

_HERE = "wsap_tossim.cli"
COMMANDS: Mapping[str, tuple[str, str]] = {
    "export": (
        f"{_HERE}.export:export",
        "Write games as data to learn from: each player's turns as it was shown them.",
    ),
    "fork": (f"{_HERE}.fork:fork", "Go on with a game from any of its rounds, otherwise than it went."),
    "replay": (f"{_HERE}.replay:replay", "Make one HTML file of a game: what everyone knew, thought and said."),
    "tournament": (f"{_HERE}.tournament:tournament", "Let entrants play many games against each other, and rate them."),
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
def tossim() -> None:
    """The town of hidden roles: replays, tournaments, and what else there is around the game."""
