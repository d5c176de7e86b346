"""A tournament from the first missing game to its tables and report."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wsap_core.errors import UsageError, WsapError
from wsap_core.seams.agent import Usage
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_llm.kit import BudgetLimits, Price
from wsap_tossim.replay.page import write_text
from wsap_tossim.tournament.ledger import Ledger, Line
from wsap_tossim.tournament.plan import Settings, fixture
from wsap_tossim.tournament.play import play_all
from wsap_tossim.tournament.report import report_html
from wsap_tossim.tournament.spending import spent_on
from wsap_tossim.tournament.table import RESAMPLES, games_csv, ratings_csv, spending_csv, summary_of

__all__ = ["Outcome", "run_tournament", "write_results"]


@dataclass(frozen=True)
class Outcome:
    """The result of running a tournament."""

    summary: dict[str, Any]
    """The contents of `summary.json`."""
    before: int
    """Games that had been played before."""
    stopped: bool
    """Whether Ctrl-C stopped it before all games were played."""
    limit: str
    """Which limit of calls, tokens or cost it was stopped by, in a sentence; empty if by none."""
    spent: Usage
    """Total model usage, unfinished games included."""
    repaired: int
    """Bytes that were taken away of a line that had been cut off."""


def run_tournament(
    folder: Path,
    settings: Settings,
    games: int,
    *,
    jobs: int = 1,
    resamples: int = RESAMPLES,
    limits: BudgetLimits | None = None,
    prices: Mapping[str, Price] | None = None,
    progress: Callable[[int, int, Usage | None], None] = lambda done, of, whole: None,
) -> Outcome:
    """Play the games of a tournament that are missing, and write its results.

    Args:
        folder: where games and results are stored; a tournament that is there is continued.
        settings: of the tournament.
        games: the total number of games.
        jobs: processes that play games without models, and games with models at once.
        resamples: number of bootstrap resamples for the intervals of ratings.
        limits: the most that models may take in all, before and after the tournament is resumed.
        prices: address -> what a model costs, where its backend does not know it.
        progress: told after each game how many of how many are played, and what the models take in all at this
            rate; None before a game with models is over.

    Raises:
        UsageError: the folder holds a tournament with other settings, or can't be used; or wsap-eval is not installed.
        WsapError: a game failed; what was played is kept, and its results are written.
    """
    try:
        importlib.import_module("wsap_eval.stats")  # so that a missing extra is reported before games are played
    except ModuleNotFoundError as error:
        raise UsageError("Tournaments need wsap-eval: pip install 'wsap-tossim[tournament]'") from error
    with Ledger(folder, settings) as ledger:
        before = len(ledger.played)
        missing = [n for n in range(games) if n not in ledger.played]

        def keep(line: Line) -> None:
            ledger.add(line)
            if line["game"] in apart:
                taken.append(line)
            progress(len(ledger.played), games, _at_this_rate(taken, len(apart)))

        def results() -> dict[str, Any]:
            lines = [line for line in ledger.lines() if line["game"] < games]
            from wsap_tossim.tournament.models import spent_unfinished  # deferred for weight: an event loop

            return write_results(folder, settings, lines, resamples, spent_unfinished(folder, settings, ledger.played))

        budget = (limits or BudgetLimits()).budget("tournament")
        with_models = [n for n in missing if fixture(settings, n).has_models(settings.entrants)]
        apart = set(with_models)
        taken: list[Line] = []
        stopped, limit = False, ""
        try:
            for line in play_all(settings, [n for n in missing if n not in apart], jobs):
                keep(line)
            if with_models:
                from wsap_tossim.tournament.models import play_with_models  # deferred for weight: an event loop

                play_with_models(
                    folder, settings, with_models, jobs, keep, played=ledger.played, budget=budget, prices=prices
                )
        except KeyboardInterrupt:
            stopped = True
        except BudgetReachedError as error:
            limit = str(error).partition(";")[0] + "."
        except WsapError:
            results()
            raise
        spent = budget.spent if budget.spent.calls else spent_on(ledger.played.values())
        return Outcome(results(), before, stopped, limit, spent, ledger.cut)


def _at_this_rate(lines: list[Line], games: int) -> Usage | None:
    if not lines:
        return None
    spent, factor = spent_on(lines), games / len(lines)
    return Usage(
        round(spent.calls * factor),
        round(spent.prompt_tokens * factor),
        round(spent.completion_tokens * factor),
        None if spent.cost is None else spent.cost * factor,
    )


def write_results(
    folder: Path, settings: Settings, lines: list[Line], resamples: int, unfinished: Mapping[int, tuple[Usage, Usage]]
) -> dict[str, Any]:
    """Write the tables and the report of games, each file whole or not at all, and return the summary.

    Raises:
        UsageError: one can't be written.
    """
    summary = summary_of(settings, lines, resamples=resamples, unfinished=unfinished)
    write_text(folder / "ratings.csv", ratings_csv(summary))
    write_text(folder / "spending.csv", spending_csv(summary))
    write_text(folder / "games.csv", games_csv(lines))
    write_text(folder / "summary.json", json.dumps(summary, indent=2, allow_nan=False) + "\n")
    write_text(folder / "report.html", report_html(summary))
    return summary
