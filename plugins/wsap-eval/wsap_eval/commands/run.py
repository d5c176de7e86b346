"""`wsap eval run`."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import print_json
from wsap_core.cli.params import SEED, STEPS, json_option, refuse_given
from wsap_core.untrusted import single_line
from wsap_eval.tables.formats import FORMS, Form, say

if TYPE_CHECKING:
    from wsap_eval.planning.suite import Suite
    from wsap_eval.results import Changed
    from wsap_eval.run import Played


@click.command(
    cls=GroupedCommand,
    sections={
        "Episodes": ("games", "entrants", "seeds", "first_seed", "repeats", "steps", "legal", "changed", "tags"),
        "Limits": ("limits", "prices", "until", "pilot"),
        "Table": ("baseline", "reduce"),
        "Workers": ("jobs", "on"),
        "Output": ("out", "database", "form"),
    },
    examples=(
        "wsap eval run --game minigrid --entrant random --entrant minigrid-finder --seeds 20",
        "wsap eval run crafter-20 --entrant ollama/qwen3:8b,temperature=0 --entrant crafter-survivor",
        "wsap eval run mine.toml --pilot --limit cost=5",
    ),
)
@click.argument("suite", required=False)
@click.option("--game", "games", multiple=True, metavar="GAME", help="A game instead of a suite; may be repeated.")
@click.option("--entrant", "entrants", multiple=True, metavar="NAME[,OPTION=VALUE...]",
              help="An agent or a model's address, with options; label=TEXT names its row.")  # fmt: skip
@click.option("--seeds", type=STEPS, help="Number of seeds. Default: the suite's, or 20; with --until at most 10,000.")
@click.option("--first-seed", type=SEED, help="The first seed. Default: the suite's, or 0.")
@click.option("--repeats", type=STEPS, help="Episodes of each seed. Default: the suite's, or 1.")
@click.option("--steps", type=STEPS, help="Maximum decisions of an episode, for games given by --game.")
@click.option("--legal", type=click.Choice(["bound", "shown", "hidden"]), default="bound", show_default=True,
              help="Whether replies are bound to legal actions, or models are only shown them, or neither; for games "
              "given by --game.")  # fmt: skip
@click.option("--limit", "limits", multiple=True, metavar="[cell.|episode.]KIND=N",
              help="Stop before calls, tokens or cost (US dollars) exceed N, in total or for each cell; with episode., "
              "end each episode at N seconds, tokens, calls or cost.")  # fmt: skip
@click.option("--price", "prices", multiple=True, metavar="ADDRESS=IN/OUT",
              help="US dollars per million tokens of a model's prompts and replies; may be repeated.")  # fmt: skip
@click.option("--until", metavar="half-width=X", help="Play seeds until each score is known to within X.")
@click.option("--pilot", is_flag=True, help="Play two episodes of each cell and estimate the total cost.")
@click.option("--changed", type=click.Choice(["again", "apart"]), help="What to do with episodes played under "
              "other conditions, such as another version of the game: play them again, or show them in rows of their "
              "own. Default: refuse.")  # fmt: skip
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag of the episodes that are played now; may be "
              "repeated.")  # fmt: skip
@click.option("--baseline", metavar="ENTRANT", help="The entrant to compare the others to. Default: the first.")
@click.option("--reduce", metavar="HOW", help="A seed's value from its repeats: mean, max, min, median, "
              "pass@K (at least one of K succeeds) or pass^K (all K). Default: the suite's, or mean.")  # fmt: skip
@click.option("--on", metavar="ray|ray://HOST:PORT", help="Play on a Ray cluster; needs wsap-eval[ray].")
@click.option("--jobs", type=STEPS, help="Worker processes for episodes without models. Default: one per CPU.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for the results.")
@click.option("--database", metavar="PATH|URL", help="Where to record runs. Default: a file in the folder.")
@click.option("--format", "form", type=click.Choice(FORMS), help="Print the table in this format.")
@json_option
def run(
    suite: str | None,
    *,
    out: Path | None,
    database: str | None,
    limits: tuple[str, ...],
    prices: tuple[str, ...],
    until: str | None,
    pilot: bool,
    jobs: int | None,
    on: str | None,
    changed: Changed | None,
    tags: tuple[str, ...],
    form: Form | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Play the missing episodes of SUITE, and print its table.

    SUITE is a bundled suite or a TOML file; --game names games instead. The same command resumes a stopped evaluation;
    with more seeds or entrants it plays only the missing episodes. The exit status is 9 if a limit was reached, 10 if
    episodes failed, and 130 after Ctrl-C; finished episodes are kept.
    """
    from wsap_core.errors import CutOffError
    from wsap_core.protocol.lines import plural
    from wsap_core.seams.model_errors import BudgetReachedError
    from wsap_eval.commands.live import Live  # deferred for weight: scipy, the runtime
    from wsap_eval.commands.spending import MOST_SEEDS, all_limits, cell_limits, episode_limits, prices_of
    from wsap_eval.export.flat import write_table
    from wsap_eval.jobs.local import cpus
    from wsap_eval.planning.suite import folder_of, tags_of
    from wsap_eval.run import Evaluation, evaluate

    if as_json:
        refuse_given("with --json", "form")
    if until is not None and given["seeds"] is None:
        given["seeds"] = MOST_SEEDS
    chosen = _suite(suite, given | {"limit": episode_limits(limits)})
    cells = cell_limits(limits, until, pilot=pilot)
    folder = out or folder_of(chosen, suite)
    evaluation = Evaluation(
        chosen, chosen.entrants, database, all_limits(limits), prices_of(prices), cells, jobs or cpus(), on or "",
        changed=changed or "", tags=tags_of(tags),
    )  # fmt: skip
    with redirect_stdout(sys.stderr):  # what games, agents and metrics print is no part of the table
        with Live(folder, quiet=as_json, until=until is not None) as live:
            played = evaluate(evaluation, folder, live.reports)
        write_table(played.rows(), folder)
        data = as_data(played, folder) if as_json else None
    if data is not None:
        print_json(data)
    else:
        tell(played, form or "")
        click.echo(f"Results: {folder}", err=True)
    for told in filter(None, (game.spec.renamed(game.entry.game) for game in played.games.values())):
        click.echo(single_line(told), err=True)
    if played.limit:
        reached = played.limit.partition("; ")[0]  # the rest explains how to resume a run
        click.echo(f"{reached}. Run the same command with a higher limit to continue.", err=True)
        raise SystemExit(BudgetReachedError.exit_code)
    if pilot and not as_json:
        _tell_pilot(played, chosen)
    if failed := played.failed:
        again = [record for record in failed if record.failed_before]
        same = "" if not again else (
            f" {plural(len(again), 'episode')} failed as before, and won't pass until the cause is mended: "
            f"{again[0].reason}"
        )  # fmt: skip
        raise CutOffError(f"{plural(len(failed), 'episode')} failed; run the same command again to repeat.{same}")


def as_data(played: Played, folder: Path) -> dict[str, Any]:
    """Return the table and its standings as JSON-ready data."""
    return {
        "suite": played.suite.name,
        "folder": str(folder),
        "missing": played.missing,
        "unreached": list(played.unreached),
        "looked": played.looked,
        "rows": list(map(asdict, played.rows())),
        "standings": list(map(asdict, played.standings())),
    }


def tell(played: Played, form: Form = "") -> None:
    """Print the table with its notes."""
    from wsap_eval.tables.shown import LOOKED, print_rows, print_standings, summary_notes

    rows = played.rows()
    print_rows(rows, form)
    print_standings(played.standings(), form)
    for line in summary_notes(rows, played.suite.baseline):
        say(line, form)
    for (game, entrant), why in played.stopped.items():
        say(f"{entrant} in {game}: stopped, {why}.", form)
    for line in played.unreached:
        say(single_line(line), form)
    if played.looked:
        say(LOOKED, form)


def _suite(name: str | None, given: dict[str, Any]) -> Suite:
    from wsap_eval.planning.suite import composed, read_entrant

    if name is not None and not given["games"]:
        refuse_given("with a suite, which defines it for each game", "steps", "legal")
    return composed(name, **given | {"entrants": tuple(map(read_entrant, given["entrants"]))})


def _tell_pilot(played: Played, suite: Suite) -> None:
    of_cell = suite.seeds.count * suite.seeds.repeats
    calls = tokens = seconds = cost = 0.0
    names = {entrant.name for entrant in suite.entrants}
    rows = [row for row in played.rows() if row.of in names]
    for row in rows:
        # By Latin square an entrant has a part in the games of others, too.
        together = bool(played.games[row.game].entrants)
        share = of_cell / max(1, row.seeds * suite.seeds.repeats if together else row.episodes)
        calls, tokens, seconds = calls + row.calls * share, tokens + row.tokens * share, seconds + row.seconds * share
        cost = cost + (row.cost or 0.0) * share
    unknown = any(row.cost is None for row in rows)
    price = "an unknown cost (give --price)" if unknown else f"${cost:.2f}"
    click.echo(
        f"At this rate all {of_cell * len(rows)} episodes take {calls:,.0f} calls, {tokens:,.0f} tokens, "
        f"{price}, and {seconds:,.0f} seconds if played one after another. Omit --pilot to play them."
    )
