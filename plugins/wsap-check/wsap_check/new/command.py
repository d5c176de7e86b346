"""`wsap new`: a package of one's own, ready to install, test and publish."""

from __future__ import annotations

from pathlib import Path

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import WholeNumber

KINDS = ("game", "world", "agent", "backend", "memory", "tool", "listener", "command")


@click.command(cls=GroupedCommand, examples=("wsap new game duel --seats 2", "wsap new agent bold"))
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@click.option("--seats", type=WholeNumber(1, 20), default=1, show_default=True, help="Number of seats of a game.")
def new(kind: str, name: str, seats: int) -> None:
    """Make a package with a small working plugin, in the new folder NAME.

    It can be installed, has tests, types and a workflow for GitHub, and works at once: change it step
    by step. NAME is what it will be called everywhere: a-z, digits and dashes.
    """
    from wsap_check.new.scaffold import make  # deferred for weight

    folder = make(kind, name, Path.cwd(), seats=seats)
    module = folder.name.replace("-", "_")
    click.echo(f"Made {folder.name}; its {kind} is {folder.name}/{module}/{kind}.py. Install and test it:")
    click.echo(f"  pip install -e {folder.name} && pytest {folder.name}")
