"""Groups of commands that are imported when they are used, for `wsap NAME COMMAND`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import click

from wsap_core.cli.grouped import write_examples

Commands = Mapping[str, tuple[str, str]]
"""Name -> `"module:attribute"` of its click command, and its line in the help."""


class LazyGroup(click.Group):
    """Knows its commands by name, and imports one when it is typed; typed without a command it shows its help."""

    def __init__(self, *args: Any, known: Commands | None = None, examples: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known = known or {}
        self.examples = tuple(examples)

    def commands_of(self, ctx: click.Context) -> Commands:
        """Return the commands there are."""
        return self._known

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(self.commands_of(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command; None if there is none of that name."""
        found = self.commands_of(ctx).get(cmd_name)
        return None if found is None else load_command(found[0])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.commands_of(ctx).items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what follows the list of commands: the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(formatter, self.examples)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return the completions of a command's name."""
        from click.shell_completion import CompletionItem  # deferred for weight: only when Tab is pressed

        found = [(n, line) for n, (_, line) in self.commands_of(ctx).items() if n.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=line) for name, line in found), *options]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read what was typed after the group's name."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)


def lazy_group(name: str, summary: str, commands: Commands, *, examples: Sequence[str] = ()) -> click.Group:
    """Return a group whose commands are imported when they are used; `summary` is one line, `examples` one to three."""
    return LazyGroup(name, help=summary, known=commands, examples=examples)


def load_command(reference: str) -> click.Command:
    """Import the click command that `"module:attribute"` names."""
    module, _, attribute = reference.partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command
