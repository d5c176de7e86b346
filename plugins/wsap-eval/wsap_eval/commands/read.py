"""`wsap eval show`, `compare` and `export`: read results."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_core.cli.params import json_option, refuse_given
from wsap_core.untrusted import single_line
from wsap_eval.tables.formats import FORMS, Form, print_cells, say

_FOLDER = click.Path(path_type=Path, file_okay=False)
_format = click.option("--format", "form", type=click.Choice(FORMS), help="Print the table in this format.")
_tag = click.option("--tag", "tags", multiple=True, metavar="TAG", help="Only episodes with this tag; may be repeated.")
FORMATS = ("csv", "jsonl", "html", "inspect", "every-eval-ever")


@click.command(
    cls=GroupedCommand, examples=("wsap eval show wsap-eval/crafter-20", "wsap eval show results --episodes --json")
)
@click.argument("folder", type=_FOLDER)
@click.option("--episodes", is_flag=True, help="List the episodes with their runs instead of the table.")
@_tag
@_format
@json_option
def show(folder: Path, *, episodes: bool, tags: tuple[str, ...], form: Form | None, as_json: bool) -> None:
    """Print the table of the results in FOLDER, or the result of a transfer measurement, even while it is running."""
    from wsap_eval.commands.run import as_data, tell
    from wsap_eval.export.flat import flat_episode
    from wsap_eval.reading import played_of, with_tags
    from wsap_eval.results import PLAN
    from wsap_eval.tables.digits import number

    if as_json:
        refuse_given("with --json", "form")
    if not episodes and (folder / PLAN).exists():
        refuse_given("with a transfer measurement", "tags")
        from wsap_eval.commands import transfer as transfer_command
        from wsap_eval.transfer.run import read_measured

        measured = read_measured(folder)
        if as_json:
            print_json(transfer_command.as_data(measured, folder))
        else:
            transfer_command.tell(measured, form or "")
        return
    with redirect_stdout(sys.stderr):  # what games and metrics print is no part of the table
        played = with_tags(played_of(folder, table=not episodes), tags)
        data = as_data(played, folder) if as_json and not episodes else None
    if as_json:
        print_json([dict(flat_episode(r)) for r in played.records] if data is None else data)
    elif episodes:
        print_cells(
            ("game", "entrant", "seed", "outcome", "value", "steps", "run"),
            [
                (r.game, r.entrant, f"{r.seed}" + (f".{r.repeat}" if r.repeat else ""), r.outcome,
                 "-" if r.value is None else number(r.value), str(r.steps), r.run)
                for r in played.records
            ],
            notes=[[r.reason] if r.reason else [] for r in played.records],
            form=form or "",
        )  # fmt: skip
    else:
        tell(played, form or "")
        if played.missing:
            line = f"Missing or failed episodes: {played.missing}; run the same command again to play them."
            say(line, form or "")


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap eval score results --metric reward",
        "wsap eval score results --reduce pass@3",
        "wsap eval score results --metric crafter=progression --metric minigrid=levels",
    ),
)
@click.argument("folder", type=_FOLDER)
@click.option("--metric", "metrics", multiple=True, metavar="[GAME=]NAME",
              help="The metric that is the score, of all games or of one; may be repeated.")  # fmt: skip
@click.option("--reduce", metavar="HOW", help="A seed's value from its repeats: mean, max, min, median, pass@K or "
              "pass^K.")  # fmt: skip
@json_option
def score(folder: Path, metrics: tuple[str, ...], *, reduce: str | None, as_json: bool) -> None:
    """Score the episodes in FOLDER by another metric of their games or another reducer, and print the table.

    Nothing is played. A metric that a game has only got since is computed from what was recorded.
    """
    from wsap_core.errors import UsageError
    from wsap_eval.commands.run import as_data, tell
    from wsap_eval.export.flat import write_table
    from wsap_eval.reading import scored_again

    if not metrics and reduce is None:
        raise UsageError("Name what to score by: --metric NAME or --reduce HOW.")
    with redirect_stdout(sys.stderr):
        played = scored_again(folder, metrics, reduce)
        write_table(played.rows(), folder)
        data = as_data(played, folder) if as_json else None
    if data is not None:
        print_json(data)
    else:
        tell(played)


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap eval compare results --baseline random",
        "wsap eval compare results Qwen Llama --baseline random",
        "wsap eval compare before after --baseline ollama/qwen3:8b",
    ),
)
@click.argument("folder", type=_FOLDER)
@click.argument("others", nargs=-1, metavar="[ENTRANT|FOLDER]...")
@click.option("--baseline", default="", metavar="ENTRANT", help="An entrant of FOLDER. Default: the suite's baseline.")
@_tag
@_format
@json_option
def compare(
    folder: Path, others: tuple[str, ...], *, baseline: str, tags: tuple[str, ...], form: Form | None, as_json: bool
) -> None:
    """Print paired differences to a baseline on common seeds.

    Compares all entrants of FOLDER, some of them, or the entrants of other folders with results of the same suite.
    p-values are adjusted for the number of comparisons (Holm).
    """
    from wsap_eval.export.flat import flat_row
    from wsap_eval.reading import compared
    from wsap_eval.tables.shown import (
        LOOKED,
        difference_of,
        notes_on_difference,
        notes_on_outcomes,
        outcomes_of,
        summary_notes,
    )

    if as_json:
        refuse_given("with --json", "form")
    with redirect_stdout(sys.stderr):
        found = compared(folder, others, baseline=baseline, tags=tags)
    if as_json:
        print_json({"baseline": found.baseline, "apart": found.apart, "rows": [dict(flat_row(r)) for r in found.rows]})
        return
    print_cells(
        ("game", "entrant", "seeds", f"difference to {found.baseline}", "episodes"),
        [(r.game, r.entrant, str(flat_row(r)["common_seeds"]), difference_of(r), outcomes_of(r)) for r in found.rows],
        notes=[[*notes_on_outcomes(r), *notes_on_difference(r)] for r in found.rows],
        form=form or "",
    )
    for row in found.base:
        if told := " ".join(notes_on_outcomes(row)):
            line = f"The baseline {single_line(row.entrant)} in {single_line(row.game)}: {outcomes_of(row)}. {told}"
            say(line, form or "")
    for line in (*found.apart, *summary_notes(found.rows), *[LOOKED] * found.looked):
        say(line, form or "")


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap eval export results --format html",
        "wsap eval export results --format csv --out tables",
        "wsap eval export results --format inspect --out logs",
    ),
)
@click.argument("folder", type=_FOLDER)
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="The output format.")
@click.option("--out", type=click.Path(path_type=Path), help="The output folder, or the file of an HTML report. "
              "Default: the results folder.")  # fmt: skip
@click.option("--database", metavar="PATH|URL", help="The database of the runs. Default: the file in the folder.")
@click.option("--dashboard", metavar="URL", default="", help="The dashboard in which the report opens replays.")
def export(folder: Path, *, form: str, out: Path | None, database: str | None, dashboard: str) -> None:
    """Write the results in FOLDER in another format, and print the paths of the files.

    csv and jsonl contain the table and the episodes; html is a self-contained page; inspect writes a log with prompts
    and replies for each game and entrant, for the tools of Inspect (needs wsap-eval[inspect]);
    every-eval-ever writes version 0.3 of that format.
    """
    from wsap_eval.commands.writing import write

    if form != "html":
        refuse_given("with this format", "dashboard")
    with redirect_stdout(sys.stderr):
        written = list(write(folder, form, out=out, database=database, dashboard=dashboard))
    for path in written:
        click.echo(str(path))
