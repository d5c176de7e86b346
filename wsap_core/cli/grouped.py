"""Commands whose help has its options in sections and ends with examples, and completion of what they name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

Sections = Mapping[str, Sequence[str]]
"""Heading -> the parameters below it, by their Python names."""


class GroupedCommand(click.Command):
    """A command whose help has options below the headings of `sections` (or "Options"), and examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), sections: Sections | None = None, **kw: Any) -> None:
        super().__init__(*args, **kw)
        self.examples = tuple(examples)
        self._sections = sections or {}

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
        """Write what follows the options: the examples."""
        super().format_epilog(ctx, formatter)
        write_examples(formatter, self.examples)


class ListGroup(GroupedCommand, click.Group):
    """A group that does something by itself, such as listing, when it is typed without a command."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options and the commands into the help."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """Write the section "Examples" into a help; nothing if there are none."""
    if examples:
        with formatter.section("Examples" if len(examples) > 1 else "Example"):
            for line in examples:
                # Never wrapped, so that a line can be copied.
                formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def refuse_given(why: str, *names: str) -> None:
    """Refuse options of the current command, by Python name, that have no effect (`why`: "with --json").

    Raises:
        UsageError: one of them was typed.
    """
    from wsap_core.errors import UsageError  # deferred for weight

    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) in (click.core.ParameterSource.DEFAULT, None):
            continue
        shown = next(p for p in context.command.params if p.name == name)
        label = shown.opts[0] if shown.opts[0].startswith("-") else shown.opts[0].upper()
        raise UsageError(f"{label} has no effect {why}; leave it out.")


def complete_games(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Return the installed games whose names begin so, for completion by a shell."""
    from wsap_core.cli.cache import Catalogue  # deferred for weight, here and below: only when Tab is pressed

    return _completions(Catalogue.current().games, incomplete)


def complete_agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Return the installed agents whose names begin so; after `SEAT=`, with it."""
    from wsap_core.cli.cache import Catalogue

    seat, equals, begun = incomplete.rpartition("=")
    return _completions(Catalogue.current().agents, begun, before=seat + equals)


def _completions(rows: Iterable[Any], incomplete: str, *, before: str = "") -> list[Any]:
    from click.shell_completion import CompletionItem

    found = [row for row in rows if row["name"].startswith(incomplete)]
    return [CompletionItem(before + row["name"], help=row["summary"]) for row in found]
