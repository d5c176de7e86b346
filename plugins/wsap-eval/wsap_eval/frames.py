"""Evaluations from Python: run or read them, as data frames (pandas is in the extra `wsap-eval[pandas]`)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wsap_core.errors import MissingServiceError, UsageError
from wsap_core.installing import install_line
from wsap_core.seams.model import Price
from wsap_eval.commands.spending import MOST_SEEDS, all_limits, cell_limits, episode_limits
from wsap_eval.export.flat import Flat, flat_episode, flat_row, flat_standing
from wsap_eval.jobs.local import cpus
from wsap_eval.planning.suite import Entrant, Legal, Suite, composed, folder_of, read_entrant, tags_of
from wsap_eval.reading import played_of
from wsap_eval.results import Changed
from wsap_eval.run import Evaluation, Played
from wsap_eval.run import evaluate as play

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Evaluated:
    """The results of an evaluation; its data frames need pandas (MissingServiceError)."""

    folder: Path
    played: Played

    def table(self) -> pd.DataFrame:
        """Return the table: a row for each game and entrant, as in `table.csv`."""
        return _frame([flat_row(row) for row in self.played.rows()])

    def episodes(self) -> pd.DataFrame:
        """Return a row for each episode, including failed ones, as in `episodes.csv`."""
        return _frame([flat_episode(record) for record in self.played.records])

    def standings(self) -> pd.DataFrame:
        """Return the standings of round robins, as in `standings.csv`; empty without any."""
        return _frame([flat_standing(standing) for standing in self.played.standings()])

    def __repr__(self) -> str:
        count = len(self.played.records)
        return f"Evaluated({self.played.suite.name!r}, {count} episodes, {self.played.missing} missing, {self.folder})"


def evaluate(
    suite: Suite | str | None = None,
    *,
    games: Sequence[str] = (),
    entrants: Sequence[Entrant | str] = (),
    seeds: int | None = None,
    first_seed: int | None = None,
    repeats: int | None = None,
    steps: int | None = None,
    legal: Legal = "bound",
    baseline: str | None = None,
    limits: Sequence[str] = (),
    prices: Mapping[str, Price | tuple[float, float]] | None = None,
    until: str | None = None,
    jobs: int | None = None,
    out: Path | str | None = None,
    database: str | None = None,
    changed: Changed = "",
    reduce: str | None = None,
    tags: Sequence[str] = (),
) -> Evaluated:
    """Play the missing episodes and return all results, like `wsap eval`; resumes a stopped evaluation.

        found = evaluate(games=["minigrid"], entrants=["random", "minigrid-finder"], seeds=20)
        found.table()[["game", "entrant", "score", "score_low", "score_high"]]

    Args:
        suite: a bundled suite's name, a TOML file, or an object; None if games are given.
        games: games to play with `steps` and `legal`.
        entrants: agents or addresses of models, with options: "ollama/qwen3:8b,temperature=0".
        seeds: number of seeds; by default the suite's, or 20; with `until` at most 10,000.
        first_seed: the first seed.
        repeats: episodes of each seed.
        steps: maximum decisions of an episode.
        legal: how models get legal actions.
        baseline: the entrant to compare the others to; by default the first.
        limits: limits such as "cost=5", "cell.calls=100" and "episode.seconds=60".
        prices: address -> US dollars per million tokens of prompts and of replies.
        until: "half-width=X": play seeds until each score is known to within X.
        jobs: worker processes for episodes without models; by default one per CPU.
        out: folder for the results; by default that of `wsap eval`.
        database: path or URL; by default a file in the folder.
        changed: what to do with episodes that were played under other conditions, such as another version of the game:
            "again" plays them again, "apart" keeps them in rows of their own; by default they are refused.
        reduce: a seed's value from its repeats: "mean", "max", "min", "median", "pass@K" or "pass^K"; by default the
            suite's, or the mean.
        tags: tags of the episodes that are played now.

    Raises:
        UsageError: the arguments are invalid, or the folder holds other results.
        WsapError: the evaluation stopped; finished episodes are kept, and the same call continues.
    """
    if isinstance(games, str) or isinstance(entrants, str):
        raise UsageError('Games and entrants are lists: games=["minigrid"], entrants=["random"].')
    name = None if isinstance(suite, Suite) else suite
    seeds = MOST_SEEDS if until is not None and seeds is None else seeds
    own = [entrant if isinstance(entrant, Entrant) else read_entrant(entrant) for entrant in entrants]
    chosen = composed(
        suite, games=games, entrants=own, seeds=seeds, first_seed=first_seed, repeats=repeats, steps=steps,
        legal=legal, baseline=baseline, reduce=reduce, limit=episode_limits(limits),
    )  # fmt: skip
    folder = Path(out) if out is not None else folder_of(chosen, chosen.name if isinstance(suite, Suite) else name)
    told = {address: price if isinstance(price, Price) else Price(*price) for address, price in (prices or {}).items()}
    evaluation = Evaluation(
        chosen, chosen.entrants, database, all_limits(limits), told, cell_limits(limits, until, pilot=False),
        jobs or cpus(), changed=changed, tags=tags_of(tags),
    )  # fmt: skip
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return Evaluated(folder, play(evaluation, folder))
    with ThreadPoolExecutor(1) as thread:  # this thread runs a notebook's event loop
        return Evaluated(folder, thread.submit(play, evaluation, folder).result())


def read(folder: Path | str) -> Evaluated:
    """Return the results in a folder. Raises UsageError if there are none."""
    return Evaluated(Path(folder), played_of(Path(folder), table=False))


def _frame(rows: Sequence[Flat]) -> pd.DataFrame:
    try:
        import pandas as pd
    except ModuleNotFoundError:
        raise MissingServiceError(
            f"Data frames need pandas, which is not installed; install it with: {install_line('wsap-eval[pandas]')}"
        ) from None
    return pd.DataFrame.from_records([dict(row) for row in rows])
