"""`wsap tossim tournament`: play many games between entrants and rate them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import SEED, WholeNumber, typed_pairs
from wsap_core.errors import UsageError
from wsap_core.installing import install_line

if TYPE_CHECKING:
    from wsap_tossim.tournament.run import Outcome


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap tossim tournament scripted random --games 30",
        "wsap tossim tournament scripted ollama/qwen3:8b --limit calls=5000",
    ),
)
@click.argument("entrants", nargs=-1, required=True, metavar="ENTRANT ENTRANT...")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("tournament"), show_default=True,
              help="Folder for games and results; an existing tournament is continued.")  # fmt: skip
@click.option("--games", type=WholeNumber(1, 1_000_000), default=100, show_default=True, help="Total number of games.")
@click.option("--mode", default="nine", show_default=True, help="The role list: a mode of the game.")
@click.option("--rules", default="classic", show_default=True, help="The rule set.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the game; may be repeated.")
@click.option("--seating", type=click.Choice(["mixed", "sides"]), default="mixed", show_default=True,
              help="mixed: seats are dealt one by one. sides: one entrant plays a whole side.")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of deals, seats, names and all draws.")
@click.option("--jobs", type=WholeNumber(1, 256), default=1, show_default=True,
              help="Processes for games without models; concurrent games with models.")  # fmt: skip
@click.option("--on", metavar="ray|ray://HOST:PORT",
              help="Play games without models on a Ray cluster; needs wsap-eval[ray].")  # fmt: skip
@click.option("--agent-option", "agent_options", multiple=True, metavar="KEY=VALUE",
              help="An option of the model agents, such as style=tags.")  # fmt: skip
@click.option("--model-option", "model_options", multiple=True, metavar="KEY=VALUE",
              help="An option of the models' backend, such as num_ctx=16384.")  # fmt: skip
@click.option("--beliefs", is_flag=True,
              help="After each game, ask models what they believed each day; takes more calls.")  # fmt: skip
@click.option("--limit", "limits", multiple=True, metavar="KIND=N",
              help="Stop before all models exceed N calls, tokens or US dollars (cost), such as cost=2.")  # fmt: skip
@click.option("--price", "prices", multiple=True, metavar="ADDRESS=IN/OUT",
              help="Price of a model in US dollars per million prompt and reply tokens; may be repeated.")  # fmt: skip
@click.option("--resamples", type=WholeNumber(0, 100_000), default=200, show_default=True,
              help="Bootstrap resamples for the rating intervals.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print only the summary, as JSON.")
def tournament(
    entrants: tuple[str, ...], *, out: Path, games: int, mode: str, rules: str, options: tuple[str, ...],
    seating: str, seed: int, jobs: int, on: str | None, agent_options: tuple[str, ...],
    model_options: tuple[str, ...], beliefs: bool, limits: tuple[str, ...], prices: tuple[str, ...], resamples: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Play many games between entrants and rate them.

    An ENTRANT is scripted, random, or a model's address such as ollama/qwen3:8b; LABEL=ENTRANT gives it another name.
    Roles rotate, names are shuffled, and the seed determines everything. Run it again with the same folder to
    continue, or to play more games.

    After the first game with models, the progress line estimates the usage of all games. Each --limit applies to
    the whole tournament, across restarts.

    The folder has the results: ratings.csv, games.csv, spending.csv, summary.json and report.html. The exit status
    is 9 if a limit stopped the tournament, and 130 if Ctrl-C did; finished games are kept.
    """
    # Deferred for weight: the engine, the players, evaluations and their statistics.
    from wsap_core.seams.model_errors import BackendError, BudgetReachedError

    try:
        from wsap_eval.kit import Live
    except ModuleNotFoundError as error:
        raise UsageError(f"Tournaments need wsap-eval: {install_line('wsap-eval')}") from error
    from wsap_tossim.cli.tournament_limits import limits_of, prices_of
    from wsap_tossim.tournament.plan import Settings, entrants_of
    from wsap_tossim.tournament.run import run_tournament

    of_models = dict(typed_pairs("--agent-option", agent_options))
    of_models |= {f"model.{key}": value for key, value in typed_pairs("--model-option", model_options).items()}
    of_game = {"mode": mode, "rules": rules, **typed_pairs("--option", options)}
    settings = Settings(entrants_of(entrants), of_game, seed, seating, of_models, beliefs)
    known = prices_of(prices, settings)
    most = limits_of(limits, settings, known)
    try:
        with Live(out, games=True) as live:
            outcome = run_tournament(
                out, settings, games, jobs=jobs, resamples=resamples, limits=most, prices=known,
                reports=live.reports, on=on or "",
            )  # fmt: skip
    except BackendError:
        click.echo("Finished games are kept; fix the problem and run it again to continue.", err=True)
        raise
    if as_json:
        click.echo(json.dumps(outcome.summary, indent=2))
    else:
        _tell(outcome, out, games)
    from wsap_core.protocol.lines import plural  # deferred for weight

    left = plural(games - outcome.summary["games"], "game")
    if outcome.limit:
        click.echo(f"{outcome.limit} {left} left; run it again with a higher limit to continue.", err=True)
        raise SystemExit(BudgetReachedError.exit_code)
    if outcome.stopped:
        click.echo(f"Stopped with {left} left; run it again to continue.", err=True)
        raise SystemExit(130)


def _tell(outcome: Outcome, out: Path, games: int) -> None:
    from wsap_core.protocol.lines import plural
    from wsap_core.untrusted import single_line
    from wsap_eval.stats import FEWEST
    from wsap_tossim.tournament.spending import words

    if outcome.repaired:
        click.echo("Removed an incomplete line; its game was played again.", err=True)
    summary = outcome.summary
    if outcome.before:
        had = "had" if outcome.before > 1 else "has"
        click.echo(f"{plural(outcome.before, 'game')} {had} been played before.")
    click.echo(f"{plural(summary['games'], 'game')}, {plural(summary['blocks'], 'block')}; sides that won: "
               + ", ".join(f"{side} {count}" for side, count in summary["sides"].items()))  # fmt: skip
    width = max([len(single_line(r["entrant"])) for r in summary["factions"]] + [7])
    click.echo(f"{'faction':9} {'entrant':{width}} {'won':>11} {'win rate, 95 %':>22} {'rating, 95 %':>24}")
    for r in summary["factions"]:
        won = f"{r['won']}/{r['seats']}"
        rate = f"{r['win_rate']:.1%}{_span(r['win_low'], r['win_high'], '.1%')}"
        rating = f"{r['mu']:.2f}{_span(r['mu_low'], r['mu_high'], '.2f')}"
        click.echo(f"{r['as']:9} {single_line(r['entrant']):{width}} {won:>11} {rate:>22} {rating:>24}")
    for r in summary["spending"]:
        beliefs = f", {r['belief_calls']} of them for beliefs" if r["belief_calls"] else ""
        cost = "cost unknown" if r["cost"] is None else f"${r['cost']:.4f}"
        tokens = f"{r['prompt_tokens']} tokens in, {r['completion_tokens']} out"
        click.echo(f"{single_line(r['entrant'])} used {plural(r['calls'], 'call')}{beliefs}, {tokens}, {cost}.")
    for label, count in summary["refused"].items():
        if count:
            of = summary["decisions"][label]
            click.echo(f"{count} of {of} decisions of {single_line(label)} were made for it, because its own were "
                       "late, illegal or unreadable.")  # fmt: skip
    for label, count in summary["forfeited"].items():
        if count:
            which = f"{plural(count, 'game')}, which {'is' if count == 1 else 'are'} not rated"
            click.echo(
                f"{single_line(label)} forfeited {which}: more than a fifth of a seat's decisions were made for it."
            )
    if summary["games"] < games and outcome.spent.calls:
        click.echo(f"All models, unfinished games included: {words(outcome.spent)}.")
    partial = summary["games"] % len(summary["settings"]["entrants"])
    if partial and summary["games"] == games:
        click.echo("The last block is incomplete, so roles are not quite balanced; play a multiple of the entrants.")
    if 0 < summary["blocks"] < FEWEST:
        click.echo(f"Ratings have intervals with {FEWEST} blocks or more.")
    click.echo(f"The report is {out / 'report.html'}.")


def _span(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f" ({low:{form}}-{high:{form}})"
