"""`wsap tossim tournament`: play many games between entrants and rate them."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import SEED, WholeNumber, typed_pairs

if TYPE_CHECKING:
    from wsap_core.seams.agent import Usage
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
              help="The folder for games and results; an existing tournament is continued.")  # fmt: skip
@click.option("--games", type=WholeNumber(1, 1_000_000), default=100, show_default=True, help="Games in all.")
@click.option("--mode", default="nine", show_default=True, help="The role list: a mode of the game.")
@click.option("--rules", default="classic", show_default=True, help="The rule set.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the game; may be repeated.")
@click.option("--seating", type=click.Choice(["mixed", "sides"]), default="mixed", show_default=True,
              help="mixed: entrants are mixed at one table. sides: each side of a game is played by one.")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of deals, seats, names and all draws.")
@click.option("--jobs", type=WholeNumber(1, 256), default=1, show_default=True,
              help="Processes for games without models; games with models at once.")  # fmt: skip
@click.option("--agent-option", "agent_options", multiple=True, metavar="KEY=VALUE",
              help="An option of the agents that ask models, such as style=tags.")  # fmt: skip
@click.option("--model-option", "model_options", multiple=True, metavar="KEY=VALUE",
              help="An option of the models' backend, such as num_ctx=16384.")  # fmt: skip
@click.option("--beliefs", is_flag=True,
              help="Ask models what they believed each day, once a game is over; it takes more calls.")  # fmt: skip
@click.option("--limit", "limits", multiple=True, metavar="KIND=N",
              help="Stop before the calls, tokens or cost (US dollars) of all models pass N: cost=2.")  # fmt: skip
@click.option("--price", "prices", multiple=True, metavar="ADDRESS=IN/OUT",
              help="US dollars for a million tokens of a model's prompts and replies; may be repeated.")  # fmt: skip
@click.option("--resamples", type=WholeNumber(0, 100_000), default=200, show_default=True,
              help="Resamples for the intervals of ratings.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print only the summary, as JSON.")
def tournament(
    entrants: tuple[str, ...],
    *,
    out: Path,
    games: int,
    mode: str,
    rules: str,
    options: tuple[str, ...],
    seating: str,
    seed: int,
    jobs: int,
    agent_options: tuple[str, ...],
    model_options: tuple[str, ...],
    beliefs: bool,
    limits: tuple[str, ...],
    prices: tuple[str, ...],
    resamples: int,
    as_json: bool,
) -> None:
    """Play many games between entrants and rate them.

    An ENTRANT is scripted, random, or a model's address such as ollama/qwen3:8b; LABEL=ENTRANT gives it another name.
    Roles rotate, names are shuffled, and the seed determines everything. Run again with the same folder to continue,
    or to play more games.

    Once a game with models is over, the line of progress says what all games take at this rate. Each --limit
    holds for the whole tournament, before and after it is resumed.

    ratings.csv, games.csv, spending.csv, summary.json and report.html in the folder tell what came of it. The
    exit status is 9 if a limit stopped it, and 130 if Ctrl-C did; what was played is kept.
    """
    # Deferred for weight: the engine, the players and the ratings.
    from wsap_core.seams.model_errors import BackendError, BudgetReachedError
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
        outcome = run_tournament(
            out,
            settings,
            games,
            jobs=jobs,
            resamples=resamples,
            limits=most,
            prices=known,
            progress=_Progress(games),
        )
    except BackendError:
        click.echo("What was played is kept; once this is mended, start it again to go on.", err=True)
        raise
    if as_json:
        click.echo(json.dumps(outcome.summary, indent=2))
    else:
        _tell(outcome, out, games)
    left = games - outcome.summary["games"]
    if outcome.limit:
        click.echo(f"{outcome.limit} {left} games to go; start it again with a higher limit to go on.", err=True)
        raise SystemExit(BudgetReachedError.exit_code)
    if outcome.stopped:
        click.echo(f"Stopped with {left} games to go; start it again to go on.", err=True)
        raise SystemExit(130)


class _Progress:
    """Progress: at a terminal one line that is overwritten, elsewhere a line after each tenth."""

    def __init__(self, games: int) -> None:
        self.live = sys.stderr.isatty()
        self.begun = time.monotonic()
        self.played = 0
        self.tenth = max(1, games // 10)

    def __call__(self, done: int, of: int, whole: Usage | None) -> None:
        """Take note that so many games of so many are played, and what all of them take at this rate."""
        from wsap_tossim.tournament.spending import words  # deferred for weight

        self.played += 1
        takes = f", at this rate {words(whole)} in all" if whole is not None and done < of else ""
        if not self.live:
            if done % self.tenth == 0 or done == of:
                click.echo(f"{done} of {of} games{takes}", err=True)
            return
        pace = self.played / max(1e-9, time.monotonic() - self.begun)
        left = f", about {(of - done) / pace:.0f} s to go" if done < of else ""
        click.echo(f"\r{done} of {of} games, {pace:.1f} a second{left}{takes}\033[K", err=True, nl=done >= of)


def _tell(outcome: Outcome, out: Path, games: int) -> None:
    from wsap_core.untrusted import single_line
    from wsap_tossim.tournament.ratings import FEWEST
    from wsap_tossim.tournament.spending import words

    if outcome.repaired:
        click.echo("A line that had been cut off was taken away; its game was played again.", err=True)
    summary = outcome.summary
    if outcome.before:
        click.echo(f"{outcome.before} games had been played before.")
    click.echo(f"{summary['games']} games, {summary['blocks']} blocks; sides that won: "
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
        click.echo(f"{single_line(r['entrant'])} took {r['calls']} calls{beliefs}, {tokens}, {cost}.")
    for label, count in summary["refused"].items():
        if count:
            of = summary["decisions"][label]
            click.echo(f"{count} of {of} decisions of {single_line(label)} were made for it: its own came too late, "
                       "were not possible or could not be read.")  # fmt: skip
    for label, count in summary["forfeited"].items():
        if count:
            click.echo(f"{single_line(label)} forfeited {count} games, which are not rated: more than a fifth of a "
                       "seat's decisions were made for it.")  # fmt: skip
    if summary["games"] < games and outcome.spent.calls:
        click.echo(f"All models, in games that are not over as well: {words(outcome.spent)}.")
    partial = summary["games"] % len(summary["settings"]["entrants"])
    if partial and summary["games"] == games:
        click.echo("The last block is not whole, so roles are not quite even; play a multiple of the entrants.")
    if 0 < summary["blocks"] < FEWEST:
        click.echo(f"Ratings have intervals from {FEWEST} blocks on.")
    click.echo(f"The report is {out / 'report.html'}.")


def _span(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f" ({low:{form}}-{high:{form}})"
