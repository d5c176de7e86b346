"""`wsap check`: the conformance suite as a report."""

from __future__ import annotations

import contextlib
import sys

import click

from wsap_core.cli.output import print_json
from wsap_core.cli.params import SEED, STEPS
from wsap_core.untrusted import printable


@click.command()
@click.argument("game")
@click.option("--seed", type=SEED, default=0, show_default=True, help="The seed of the worlds that are played.")
@click.option("--steps", type=STEPS, default=300, show_default=True, help="About how many steps each check plays.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
def check(game: str, *, seed: int, steps: int, as_json: bool) -> None:
    """Check that a game keeps its promises.

    GAME is a name that `wsap games` lists, or a class in a file: ./game.py:Game. The game is played,
    and what it does is held against what it declares. The exit status is 1 if a check fails.
    """
    # Deferred for weight: the suite needs the whole kernel.
    from wsap_core.references import load_adapter_spec
    from wsap_core.testing.report import run_checks

    # A game that prints would otherwise write into the report.
    with contextlib.redirect_stdout(sys.stderr):
        report = run_checks(load_adapter_spec(game), seed=seed, steps=steps)
    if as_json:
        print_json(report.to_json())
    else:
        click.echo(printable(report.to_text()))
    if not report.ok:
        click.get_current_context().exit(1)
