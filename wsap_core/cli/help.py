"""`wsap help COMMAND ...`: the same as `wsap COMMAND ... --help`."""

from __future__ import annotations

import click

from wsap_core.cli.grouped import GroupedCommand


@click.command("help", cls=GroupedCommand, examples=("wsap help play", "wsap help nexus agents"))
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command."""
    here = ctx.find_root()
    for word in words:
        group = here.command
        found = group.get_command(here, word) if isinstance(group, click.Group) else None
        if found is None:
            raise click.UsageError(f"`{here.command_path}` has no command {word!r}.", here)
        here = click.Context(found, parent=here, info_name=word)
    click.echo(here.get_help())
