"""Commands whose help has sections and examples, and groups that import their commands lazily."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import click

Sections = Mapping[str, Sequence[str]]
"""Heading -> its parameters, by their Python names."""

Commands = Mapping[str, tuple[str, str]]
"""Name -> `"module:attribute"` of its click command, and its line in the help."""


class GroupedCommand(click.Command):
    """A command whose help lists options under the headings of `sections` (or "Options"), and examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), sections: Sections | None = None, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self.examples = tuple(examples)
        self._sections = sections or {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; `UsageError` for an option with an empty value, unless its help offers ''."""
        if not ctx.resilient_parsing and any(not word or word.endswith("=") for word in args):
            options = {p.name: p for p in self.get_params(ctx) if isinstance(p, click.Option)}
            given, _, _ = self.make_parser(ctx).parse_args(args=list(args))
            for name in given.keys() & options:
                empty = given[name] == "" or (isinstance(given[name], list) and "" in given[name])
                if empty and "''" not in (options[name].help or ""):
                    label = max(options[name].opts, key=len)
                    raise click.UsageError(f"{label} has an empty value; is a variable unset? Else leave it out.", ctx)
        with click.core.augment_usage_errors(ctx):  # the parser does not say of which command its errors are
            return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options into the help."""
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        records = {p.name: record for p in options if (record := p.get_help_record(ctx))}
        for title, names in self._sections.items():
            with formatter.section(title):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section("Options"):
            formatter.write_dl(list(records.values()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples into the help."""
        super().format_epilog(ctx, formatter)
        if self.examples:
            with formatter.section("Examples" if len(self.examples) > 1 else "Example"):
                for line in self.examples:
                    # Not wrapped, so that a line can be copied.
                    formatter.write(f"{'':{formatter.current_indent}}{line}\n")


class ListGroup(GroupedCommand, click.Group):
    """A group with an action of its own, such as listing, when it is typed without a command."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Return the command that was typed; `UsageError` with similar names if there is none."""
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None and args[0][:1].isalnum():
            from wsap_core.errors import UnknownNameError  # deferred for weight

            path = ctx.command_path
            known, hint = self.list_commands(ctx), f"`{path} --help` lists all."
            raise click.UsageError(str(UnknownNameError("command", args[0], known, hint=hint)), ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and the commands into the help."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


class LazyGroup(ListGroup):
    """A group that imports a command when it is used; without a command it shows its help."""

    def __init__(self, *args: Any, known: Commands | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._known = known or {}

    def commands_of(self, ctx: click.Context) -> Commands:
        """Return the commands of this group."""
        return self._known

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return list(self.commands_of(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or None if there is none."""
        found = self.commands_of(ctx).get(cmd_name)
        return None if found is None else load_command(found[0])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self.commands_of(ctx).items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return the completions of a command's name."""
        from click.shell_completion import CompletionItem  # deferred for weight

        found = [CompletionItem(n, help=s) for n, (_, s) in self.commands_of(ctx).items() if n.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; without any, print the help and exit."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)


def lazy_group(name: str, summary: str, commands: Commands, *, examples: Sequence[str] = ()) -> click.Group:
    """Return a group that imports its commands when they are used; `summary` is one line."""
    return LazyGroup(name, help=summary, known=commands, examples=examples)


def load_command(reference: str) -> click.Command:
    """Import a click command by its `"module:attribute"`."""
    module, _, attribute = reference.partition(":")
    command: click.Command = getattr(importlib.import_module(module), attribute)
    return command
