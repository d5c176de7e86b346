"""`wsap eval run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.output import at_terminal, print_json, print_table
from wsap_core.cli.params import STEPS, json_option


@click.command(
    cls=GroupedCommand,
    sections={
        "What is played": ("games", "entrants", "seeds", "first_seed", "steps"),
        "Where results go": ("out", "database"),
    },
    examples=(
        "wsap eval --game minigrid --entrant random --entrant minigrid-finder --seeds 20",
        "wsap eval crafter-20 --entrant ollama/qwen3:8b --entrant crafter-survivor",
        "wsap eval mine.toml --seeds 100",
    ),
)
@click.argument("suite", required=False)
@click.option("--game", "games", multiple=True, metavar="GAME", help="A game, in place of a suite; repeat for more.")
@click.option(
    "--entrant", "entrants", multiple=True, metavar="NAME[,OPTION=VALUE...]",
    help="An agent or a model's address, with options; repeat for more.",
)  # fmt: skip
@click.option("--seeds", type=STEPS, help="How many seeds are played; 20, or what the suite says.")
@click.option("--first-seed", type=STEPS, help="The first seed; 0, or what the suite says.")
@click.option("--steps", type=STEPS, help="Decisions after which an episode is cut off, for games given by --game.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder of the results.")
@click.option("--database", metavar="PATH|URL", help="Where runs are recorded; a file in the folder by default.")
@json_option
def run(
    suite: str | None,
    games: tuple[str, ...],
    entrants: tuple[str, ...],
    seeds: int | None,
    first_seed: int | None,
    steps: int | None,
    out: Path | None,
    database: str | None,
    as_json: bool,
) -> None:
    """Play the episodes of SUITE that are missing, and print its table.

    SUITE is a suite that is shipped or a TOML file; --game names games in its place. The same command goes on where it
    was stopped; with more seeds or entrants it plays only what is missing.
    """
    from wsap_core.errors import UsageError
    from wsap_eval.run import Evaluation, Progress, evaluate
    from wsap_eval.suite import GameEntry, Suite, load_suite, made, read_entrant
    from wsap_eval.table import cells_of

    if (suite is None) == (not games):
        raise UsageError("Name a suite or games, for instance: wsap eval --game minigrid --entrant random.")
    if suite is not None:
        chosen = load_suite(suite)
        if steps is not None:
            raise UsageError("--steps is for games given by --game; a suite says itself where an episode is cut off.")
    else:
        entries = [GameEntry(game=game, steps=steps) for game in games]
        chosen = made("The evaluation", Suite, {"name": "+".join(games), "games": [e.model_dump() for e in entries]})
    changed: dict[str, Any] = {"count": seeds, "first": first_seed}
    numbers = chosen.seeds.model_copy(update={k: v for k, v in changed.items() if v is not None})
    given = tuple(map(read_entrant, entrants))
    both = made("The evaluation", Suite, {
        **chosen.model_dump(mode="json"), "seeds": numbers.model_dump(mode="json"),
        "entrants": [e.model_dump(mode="json") for e in (*chosen.entrants, *given)],
    })  # fmt: skip
    if not both.entrants:
        raise UsageError("Say who is measured, for instance: --entrant random.")
    folder = out or Path("wsap-eval") / (both.name if suite is not None else f"{both.name}-{both.digest[:8]}")

    def tell(so_far: Progress) -> None:
        if not as_json and at_terminal():
            click.echo(f"\r{so_far.played} of {so_far.of} episodes", nl=so_far.played == so_far.of, err=True)

    records = evaluate(Evaluation(both, both.entrants, database), folder, progress=tell)
    cells = cells_of(records)
    if as_json:
        print_json([{"game": c.game, "entrant": c.entrant, "outcomes": c.outcomes, "values": c.values} for c in cells])
        return
    rows = []
    for cell in cells:
        mean = sum(cell.values) / len(cell.values) if cell.values else float("nan")
        told = ", ".join(f"{n} {o.replace('_', ' ')}" for o, n in sorted(cell.outcomes.items()))
        rows.append([cell.game, cell.entrant, f"{mean:.3g}", told])
    print_table(["game", "entrant", "mean", "episodes"], rows)
    click.echo(f"Results: {folder}", err=True)
