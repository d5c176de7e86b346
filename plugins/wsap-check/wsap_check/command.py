"""`wsap check`: the conformance suite as a report."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_core.cli.params import SEED, STEPS, json_option, typed_pairs
from wsap_core.untrusted import strip_control


@click.command(cls=GroupedCommand, examples=("wsap check ./game.py:Game", "wsap check crafter --steps 50 --json"))
@click.argument("game")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Random seed of the worlds.")
@click.option("--steps", type=STEPS, default=300, show_default=True, help="Approximate number of steps in each check.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the game; may be repeated.")
@click.option("--only", multiple=True, metavar="CHECK", help="Run only this check; may be repeated.")
@json_option
def check(
    game: str, *, seed: int, steps: int, options: Sequence[str], only: Sequence[str], as_json: bool
) -> None:  # fmt: skip
    """Check that a game conforms to the protocol and to its own declarations.

    GAME is a name that `wsap games` lists, or a class in a file: ./game.py:Game. The checks play the
    game. The exit status is 0 if no check finds an error (warnings are allowed), and 1 if one does.
    The stage card at the end says what the page of the game lacks; what is missing there is advice.
    """
    from wsap_check.findings import CheckOutcome  # deferred for weight, like the rest
    from wsap_check.suite import run_checks
    from wsap_core.references import load_adapter_spec

    report_to = sys.stdout
    before: CheckOutcome | None = None

    def tell(outcome: CheckOutcome) -> None:
        nonlocal before
        if not as_json:
            click.echo(strip_control(outcome.below(before)), file=report_to)
        before = outcome

    # Keeps a game's own output out of the report.
    with contextlib.redirect_stdout(sys.stderr):
        spec, config = load_adapter_spec(game), typed_pairs("--option", options)
        report = run_checks(spec, seed=seed, steps=steps, config=config, only=only, progress=tell)
    if as_json:
        print_json(report.to_json())
    else:
        click.echo(f"\n{strip_control(report.verdict())}")
    if not report.ok:
        click.get_current_context().exit(1)
