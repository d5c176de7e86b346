"""Run a tournament: play the missing games, and write tables and report."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsap_core.errors import UsageError, WsapError
from wsap_core.installing import install_line
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

if TYPE_CHECKING:
    from wsap_tossim.tournament.models import Watch

__all__ = ["Outcome", "run_tournament", "write_results"]


@dataclass(frozen=True)
class Outcome:
    """The result of running a tournament."""

    summary: dict[str, Any]
    """The contents of `summary.json`."""
    before: int
    """Games played earlier."""
    stopped: bool
    """Whether Ctrl-C stopped it early."""
    limit: str
    """The limit of calls, tokens or cost that stopped it, in a sentence; empty if none did."""
    spent: Usage
    """Total model usage, unfinished games included."""
    repaired: int
    """Bytes of an incomplete line that were removed."""


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
    watch: Watch | None = None,
) -> Outcome:
    """Play the missing games of a tournament, and write its results.

    Args:
        folder: for games and results; an existing tournament is continued.
        settings: of the tournament.
        games: total number of games.
        jobs: processes for games without models; concurrent games with models.
        resamples: number of bootstrap resamples for the intervals of ratings.
        limits: for all models together, across restarts.
        prices: model address -> price, if its backend does not know it.
        progress: called after each game with the number of games played, their total, and the estimated usage of all;
            None before the first game with models is finished.
        watch: runs beside the games with models, and gets what models are waited for.

    Raises:
        UsageError: the folder has a tournament with other settings, or can't be used; or wsap-eval is not installed.
        WsapError: a game failed; finished games are kept, and their results are written.
    """
    try:
        importlib.import_module("wsap_eval.stats")  # report a missing extra before playing
    except ModuleNotFoundError as error:
        raise UsageError(f"Tournaments need wsap-eval: {install_line('wsap-eval')}") from error
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
                    folder,
                    settings,
                    with_models,
                    jobs,
                    keep,
                    played=ledger.played,
                    budget=budget,
                    prices=prices,
                    watch=watch,
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
    """Write tables and report, each file atomically, and return the summary.

    Raises:
        UsageError: a file can't be written.
    """
    summary = summary_of(settings, lines, resamples=resamples, unfinished=unfinished)
    write_text(folder / "ratings.csv", ratings_csv(summary))
    write_text(folder / "spending.csv", spending_csv(summary))
    write_text(folder / "games.csv", games_csv(lines))
    write_text(folder / "summary.json", json.dumps(summary, indent=2, allow_nan=False) + "\n")
    write_text(folder / "report.html", report_html(summary))
    return summary
