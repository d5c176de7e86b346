"""Run a tournament: play the missing games, and write tables and report."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsap_core.errors import WsapError
from wsap_core.seams.agent import Usage
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_eval.kit import NO_LIMITS, NOBODY, Due, Progress, Reports, Runner, Way
from wsap_llm.kit import Budget, BudgetLimits, ModelPool, Price
from wsap_tossim.replay.page import write_text
from wsap_tossim.tournament.games import Game, PlayedGame, Scripted
from wsap_tossim.tournament.ledger import Ledger, Line
from wsap_tossim.tournament.plan import Settings, fixture
from wsap_tossim.tournament.report import report_html
from wsap_tossim.tournament.spending import spent_on, words
from wsap_tossim.tournament.table import RESAMPLES, games_csv, ratings_csv, spending_csv, summary_of

if TYPE_CHECKING:
    from wsap_tossim.tournament.models import Tables

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
    reports: Reports[PlayedGame] = NOBODY,
    on: str = "",
) -> Outcome:
    """Play the missing games of a tournament, and write its results.

    The first SIGINT (Ctrl-C) starts no further game or call, and awaits the calls in flight; the second stops at once.

    Args:
        folder: for games and results; an existing tournament is continued.
        settings: of the tournament.
        games: total number of games.
        jobs: processes for games without models; concurrent games with models.
        resamples: number of bootstrap resamples for the intervals of ratings.
        limits: for all models together, across restarts.
        prices: model address -> price, if its backend does not know it.
        reports: told what happens; after a game with models also the estimated usage of all.
        on: the cluster for games without models, "ray" or `ray://HOST:PORT`; this machine by default.

    Raises:
        UsageError: the folder has a tournament with other settings, or can't be used.
        WsapError: a game failed; finished games are kept, and their results are written.
    """
    with Ledger(folder, settings) as ledger:
        before = len(ledger.played)
        some = any(entrant.kind == "model" for entrant in settings.entrants)
        planned = [Game(n, some and fixture(settings, n).has_models(settings.entrants)) for n in range(games)]
        known = {game.key: PlayedGame(game.key, ledger.played[game.number]) for game in planned
                 if game.number in ledger.played}  # fmt: skip
        due = Due(planned, {}, known, NO_LIMITS)
        left = Counter((game.key.game, game.key.entrant) for game in due.missing)
        apart = {game.number for game in due.missing if game.models}
        taken: list[Line] = []

        def keep(game: PlayedGame) -> None:
            ledger.add(game.line)
            known[game.key] = game
            due.ended(game)
            left[game.key.game, game.key.entrant] -= 1
            if game.line["game"] in apart:
                taken.append(game.line)
            whole = _at_this_rate(taken, len(apart))
            more = f"at this rate {words(whole)} in all" if whole is not None and len(known) < games else ""
            reports.progress(Progress(len(known), games, game, dict(left), more))

        def results() -> dict[str, Any]:
            from wsap_tossim.tournament.models import spent_unfinished  # deferred for weight: the runtime

            ledger.tidy()
            lines = [line for line in ledger.lines() if line["game"] < games]
            return write_results(folder, settings, lines, resamples, spent_unfinished(folder, settings, ledger.played))

        budget = (limits or BudgetLimits()).budget("tournament")
        stopped, limit = False, ""
        try:
            with ExitStack() as stack:
                tables = _tables(stack, folder, settings, ledger, budget, prices) if apart else None
                if tables is not None and isinstance(tables.models, ModelPool):
                    reports.waiting(tables.models.waited)
                engine = stack.enter_context(Scripted(settings).opened())

                async def here(game: Game) -> PlayedGame:
                    return await (tables.play if tables is not None and game.models else engine)(game)

                runner = Runner[Game](None if tables is None else tables.models, reports.stopping)
                way = Way[Game](lambda game: bool(on or jobs > 1) and not game.models, jobs, jobs, on)
                runner.run(runner.play(due, here, Scripted(settings), way, keep))
        except KeyboardInterrupt:
            stopped = True
        except BudgetReachedError as error:
            limit = str(error).partition(";")[0] + "."
        except WsapError:
            results()
            raise
        spent = budget.spent if budget.spent.calls else spent_on(ledger.played.values())
        return Outcome(results(), before, stopped, limit, spent, ledger.cut)


def _tables(
    stack: ExitStack,
    folder: Path,
    settings: Settings,
    ledger: Ledger,
    budget: Budget,
    prices: Mapping[str, Price] | None,
) -> Tables:
    """Open what plays games with models until the end of a stack."""
    from wsap_tossim.tournament.models import opened  # deferred for weight: the runtime

    return stack.enter_context(opened(folder, settings, played=ledger.played, budget=budget, prices=prices))


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
