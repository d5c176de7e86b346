"""A group of commands that are imported when they are used, for `wsap NAME COMMAND`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import click

__all__ = ["lazy_group"]

Commands = Mapping[str, tuple[str, str]]
"""Name -> `"module:attribute"` of its click command, and its line in the help."""


class _Lazy(click.Group):
    """Knows its commands by name, and imports one when it is asked for; help imports none."""

    def __init__(self, name: str, help: str, commands: Commands) -> None:  # noqa: A002 - click's own word
        super().__init__(name, help=help)
        self._known = commands

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._known)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._known:
            return None
        module, _, attribute = self._known[cmd_name][0].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._known.items()])


def lazy_group(name: str, help: str, commands: Commands) -> click.Group:  # noqa: A002 - click's own word
    """Return a group whose commands are imported when they are used.

    Args:
        name: what is typed after `wsap`.
        help: what it is for, in a line.
        commands: name -> `"module:attribute"` of its click command, and its line in the help.
    """
    return _Lazy(name, help, commands)
