"""`wsap eval transfer`, also typed as `wsap eval --transfer A --to C`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_core.cli.params import SEED, STEPS, json_option, refuse_given
from wsap_eval.tables.formats import Form, print_cells, say

if TYPE_CHECKING:
    from wsap_eval.transfer.run import Measured

PILOT = (5, 10)


@click.command(
    cls=GroupedCommand,
    sections={
        "Measurement": ("source", "targets", "negatives", "positives", "entrant"),
        "Episodes": ("lives", "seeds", "learning", "steps", "arms", "seed", "pilot", "limits", "prices"),
        "Output": ("out", "jobs"),
    },
    examples=(
        "wsap eval transfer --from minigrid --to crafter --entrant ollama/qwen3:8b,memory=fulltext --pilot",
        "wsap eval transfer --from minigrid --to crafter --negative matrix --entrant ollama/qwen3:8b,memory=fulltext",
    ),
)
@click.option("--from", "source", required=True, metavar="GAME", help="The source: the game in which a life learns.")
@click.option("--to", "targets", required=True, multiple=True, metavar="GAME",
              help="A target: a game in which it is tested; may be repeated.")  # fmt: skip
@click.option("--negative", "negatives", multiple=True, metavar="GAME",
              help="Negative control: a target in which learning can't help.")  # fmt: skip
@click.option("--positive", "positives", multiple=True, metavar="GAME",
              help="Positive control: a target in which learning must help.")  # fmt: skip
@click.option("--entrant", required=True, metavar="NAME[,OPTION=VALUE...]", help="An agent with a memory.")
@click.option("--lives", type=STEPS, default=20, show_default=True, help="Number of independent lives.")
@click.option("--seeds", type=STEPS, default=20, show_default=True, help="Target seeds of each life.")
@click.option("--learning", type=STEPS, default=5, show_default=True, help="Learning episodes of each life.")
@click.option("--steps", type=STEPS, help="Maximum decisions of an episode.")
@click.option("--arms", default="blank,placebo,source,practised,raw", show_default=True, metavar="NAMES",
              help="The arms to compare, separated by commas; source and placebo are required.")  # fmt: skip
@click.option("--seed", type=SEED, help="Seed of learning and tests. By default both are random and printed, and "
              "the tests' is drawn after learning, so that no agent can know it.")  # fmt: skip
@click.option("--pilot", is_flag=True, help="Play 5 lives of 10 seeds, and estimate how many lives are needed.")
@click.option("--limit", "limits", multiple=True, metavar="KIND=N", help="Stop before calls, tokens or cost exceed N.")
@click.option("--price", "prices", multiple=True, metavar="ADDRESS=IN/OUT", help="A model's price, as for wsap eval.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for the results.")
@click.option("--jobs", type=STEPS, default=1, show_default=True, help="Processes, for entrants without models.")
@json_option
def transfer(
    source: str,
    targets: tuple[str, ...],
    negatives: tuple[str, ...],
    positives: tuple[str, ...],
    entrant: str,
    *,
    lives: int,
    seeds: int,
    learning: int,
    steps: int | None,
    arms: str,
    seed: int | None,
    pilot: bool,
    limits: tuple[str, ...],
    prices: tuple[str, ...],
    out: Path | None,
    jobs: int,
    as_json: bool,
) -> None:
    """Measure whether learning in one game helps an agent in another.

    Each life learns in the source, then plays its own target seeds with a frozen memory in several arms: with what it
    learned (source), with as many scrambled items (placebo), and so on. The score is source - placebo, with an interval
    over lives. The same command resumes a stopped measurement.
    """
    # Deferred for weight: scipy, the runtime.
    from wsap_core.errors import UsageError
    from wsap_eval.commands.live import Live
    from wsap_eval.commands.spending import limits_of, prices_of
    from wsap_eval.planning.suite import read_entrant
    from wsap_eval.transfer.plan import ARMS, Plan
    from wsap_eval.transfer.run import measure
    from wsap_eval.transfer.told import origin_of

    if pilot:
        refuse_given("with --pilot, which plays 5 lives of 10 seeds", "lives", "seeds")
        lives, seeds = PILOT
    named = [name.strip() for name in arms.split(",")]
    chosen = tuple(arm for arm in ARMS if arm in named)
    if len(chosen) != len(named) or not {"source", "placebo"} <= set(chosen):
        raise UsageError(f"--arms takes source, placebo and any others of {', '.join(ARMS)}, not {arms!r}.")
    games = tuple(dict.fromkeys((*targets, *negatives, *positives)))
    plan = Plan(
        source, games, read_entrant(entrant), lives, seeds, learning, steps, chosen, pilot=pilot, negatives=negatives,
        positives=positives,
    )  # fmt: skip
    folder = out or Path("wsap-eval") / f"transfer-{'pilot-' * pilot}{plan.design[:8]}"
    with redirect_stdout(sys.stderr), Live(folder, quiet=as_json) as live:
        measured = measure(
            plan, folder, seed=seed, jobs=jobs, limits=limits_of(limits), prices=prices_of(prices),
            reports=live.reports,
        )  # fmt: skip
    if as_json:
        print_json(as_data(measured, folder))
        return
    tell(measured)
    click.echo(f"{origin_of(measured)} Results: {folder}", err=True)


def as_data(measured: Measured, folder: Path) -> dict[str, object]:
    """Return a measurement as JSON-ready data."""
    plan = measured.plan
    rows = [
        {**asdict(v), "verdict": v.words, "caveat": v.caveat, "lessons_that_name_it": measured.lessons[v.target]}
        for v in measured.verdicts
    ]
    return {
        "plan": plan.digest, "seed": plan.seed, "test_seed": plan.test_seed, "folder": str(folder), "targets": rows,
        "instrument": measured.failures or "ok", "missing": measured.missing,
    }  # fmt: skip


def tell(measured: Measured, form: Form = "") -> None:
    """Print the result for each target."""
    from wsap_eval.transfer.told import COLUMNS, lines_of, rows_of, title_of

    for verdict in measured.verdicts:
        if not form:
            click.echo()
        say(title_of(verdict, measured), form)
        print_cells(COLUMNS, rows_of(verdict), form=form)
        for line in lines_of(verdict, measured):
            say(line, form)
    for line in measured.failures:
        say(line, form)
    if measured.missing:
        say(f"Test episodes missing or failed: {measured.missing}; the command that began it continues.", form)
