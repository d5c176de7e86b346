"""Runs an evaluation's missing episodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_core.loading import names_model
from wsap_core.references import load_agent_spec
from wsap_core.seams.clock import Clock
from wsap_core.seams.model import Price
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_core.seams.services import CommandModels, Services, runtime_services
from wsap_eval.jobs.episodes import Episodes
from wsap_eval.jobs.runner import NOBODY, Progress, Reports, Runner, Way
from wsap_eval.planning.conditions import Conditions
from wsap_eval.planning.due import NO_BUDGET, NO_LIMITS, CellLimits, Due, is_over
from wsap_eval.planning.plan import Game, Job, Plan, asks_models, games_of
from wsap_eval.planning.shared import by_entrant
from wsap_eval.planning.suite import Entrant, Suite
from wsap_eval.play import play_episode
from wsap_eval.records import EpisodeKey, EpisodeRecord, usage_of
from wsap_eval.results import Changed, Results, was_looked_at, with_kept_scoring
from wsap_eval.stats import passes
from wsap_eval.tables.apart import told_apart
from wsap_eval.tables.metrics import scored_by, warned_once
from wsap_eval.tables.rows import Row, Standing, rows_of, standings_of
from wsap_llm.kit import BudgetLimits, ModelPool

T = TypeVar("T")


@dataclass(frozen=True)
class Evaluation:
    """The parameters of an evaluation."""

    suite: Suite
    entrants: tuple[Entrant, ...]
    database: str | None = None
    """Path or URL. Default: a file in the results folder."""
    limits: BudgetLimits = NO_BUDGET
    """Limits on all episodes together, including those of interrupted runs."""
    prices: Mapping[str, Price] | None = None
    cells: CellLimits = NO_LIMITS
    jobs: int = 1
    """Worker processes for episodes without models; with 1, this process plays everything."""
    on: str = ""
    """The cluster for all episodes: "ray" or `ray://HOST:PORT`. Default: this machine."""
    in_flight: int = 64
    """Maximum concurrent episodes in this process; most of them wait for models."""
    changed: Changed = ""
    """What to do with episodes that were played under other conditions."""
    tags: tuple[str, ...] = ()
    """Of the episodes that are played now."""
    clock: Clock | None = None
    """The clock of limits of seconds for episodes played in this process; the system's by default."""


@dataclass(frozen=True)
class Played:
    """The results of an evaluation."""

    suite: Suite
    games: Mapping[str, Game]
    records: tuple[EpisodeRecord, ...]
    """All recorded episodes of these entrants and seeds."""
    missing: int
    """Episodes not played yet or failed."""
    stopped: Mapping[tuple[str, str], str]
    """Game and entrant -> the reason why the cell stopped."""
    settled: Mapping[tuple[str, str], int]
    """Game and entrant -> number of seeds that gave the requested half-width."""
    limit: str = ""
    """A sentence naming the total limit that stopped it; empty for none."""
    looked: bool = False
    """Whether seeds ever ended at a half-width, so that intervals are those of confidence sequences."""
    unreached: tuple[str, ...] = ()
    """Sentences about the cells that did not reach the requested half-width."""
    failed: tuple[EpisodeRecord, ...] = ()
    """The suite's episodes that failed."""
    entrants: Mapping[str, str] = field(default_factory=dict)
    """Label of a row -> that of its entrant, where episodes of an entrant have different conditions."""

    def entrant(self, label: str) -> Entrant:
        """Return the entrant of a row; one that the suite does not name is an agent."""
        own = self.entrants.get(label, label)
        return next((known for known in self.suite.entrants if known.name == own), Entrant(agent=own))

    def rows(self) -> list[Row]:
        """Return the table, computed once."""
        return list(self._rows)

    @cached_property
    def _rows(self) -> list[Row]:
        agents = {entrant.name: entrant.agent for entrant in self.suite.entrants}
        return rows_of(
            self.records, self.games, baseline=self.suite.baseline, scripted=agents,
            settled=lambda game, entrant: self.settled.get((game, entrant)), looked=self.looked,
            entrants=self.entrants,
        )  # fmt: skip

    def standings(self) -> list[Standing]:
        """Return the standings of round robins; empty without any."""
        return standings_of((_with_label(r, self.entrants.get(r.entrant, r.entrant)) for r in self.records), self.games)


def _with_label(record: EpisodeRecord, label: str) -> EpisodeRecord:
    if record.entrant == label:
        return record
    seats = tuple(replace(s, entrant=label) if s in record.own else s for s in record.seats)
    return replace(record, entrant=label, seats=seats)


def gathered(
    suite: Suite, games: Mapping[str, Game], plan: Plan, episodes: Mapping[EpisodeKey, EpisodeRecord],
    due: Due[Job], folder: Path, *, limit: str = "",
) -> Played:  # fmt: skip
    """Return the results of a folder, those of the suite's episodes first, without games that it no longer has."""
    keys = sorted((key for key in episodes if key.game in games), key=lambda key: (plan.order(key), key))
    of_entrant = {entrant.name: entrant.tags for entrant in suite.entrants}

    def tagged(record: EpisodeRecord) -> EpisodeRecord:
        tags = (*suite.tags, *games[record.game].entry.tags, *of_entrant.get(record.entrant, ()), *record.tags)
        return replace(record, tags=tuple(dict.fromkeys(tags)))

    scored = by_entrant((scored_by(episodes[key], games[key.game]) for key in keys), games, suite.forfeit)
    told = told_apart(map(tagged, scored))
    settled = due.all_settled()
    over = Counter((key.game, key.entrant) for key in keys if is_over(episodes[key]) and plan.place(key) is not None)
    failed = [episodes[key] for key in keys if not is_over(episodes[key]) and plan.place(key) is not None]
    broken = Counter((record.game, record.entrant) for record in failed)
    missing = sum(
        broken[cell] if due.gives_up(*cell) else plan.of_cell - over[cell] for cell in plan.cells if cell not in settled
    )
    return Played(
        suite, games, told.records, missing, due.stopped, settled, limit, was_looked_at(folder),
        tuple(due.unreached()), tuple(failed), told.entrants,
    )  # fmt: skip


def evaluate(evaluation: Evaluation, folder: Path, reports: Reports[EpisodeRecord] = NOBODY) -> Played:
    """Play the missing and failed episodes, and return all results of the folder.

    The first SIGINT (Ctrl-C) starts no further episode or call, reports the number of calls in flight, and awaits
    these; the second stops at once.

    Raises:
        KeyboardInterrupt: it was stopped; finished episodes are kept, and the others can be resumed.
        UsageError: the folder holds other results, or episodes played under other conditions and `changed` does not
            say what to do with them, or the evaluation is invalid.
        BackendError: a model is unavailable.
        WsapError: the results can't be written; finished episodes are kept.
    """
    host = PluginHost.discovered()
    evaluation = replace(evaluation, suite=with_kept_scoring(evaluation.suite, folder))
    games = games_of(evaluation.suite, host)
    if evaluation.on and evaluation.limits:
        raise UsageError("A limit on all episodes is not supported with --on; leave out one of them.")
    if evaluation.cells.half_width is not None and any(game.opponent for game in games.values()):
        raise UsageError("--until has no meaning in a round robin, in which two entrants share their games.")
    if evaluation.cells != NO_LIMITS and any(game.entrants for game in games.values()):
        if evaluation.cells.half_width is not None:
            raise UsageError("--until has no meaning in games that all entrants play together.")
        if evaluation.cells.spending:
            raise UsageError("A limit of each cell has no meaning in games that all entrants play together; limit all.")
    if (wanted := passes(evaluation.suite.reduce)) and wanted > evaluation.suite.seeds.repeats:
        raise UsageError(
            f"{evaluation.suite.reduce} takes at least {wanted} episodes of each seed; give --repeats {wanted} or more."
        )
    specs = {entrant.name: load_agent_spec(entrant.agent, host) for entrant in evaluation.entrants}
    plan = Plan(evaluation.suite, games, evaluation.entrants, host, Conditions(games, host).added)
    for name in specs.keys() - {entrant for _, entrant in plan.cells}:
        raise UsageError(f"The agent {name!r} plays only {', '.join(specs[name].games)}, none of these games.")
    with Results(folder, evaluation.suite, plan, evaluation.changed) as results, warned_once():
        if evaluation.cells.half_width is not None and evaluation.changed == "apart":
            raise UsageError("--until needs episodes of the same conditions; give --changed again.")
        results.score(games)
        results.keep_width(evaluation.cells.half_width)
        due = Due(plan, games, results.episodes, evaluation.cells, evaluation.limits)
        with opened(evaluation, results, games, host, len(plan), reports) as playing:
            if isinstance(models := playing.models, ModelPool):
                reports.waiting(models.waited)
            try:
                playing.run(playing.play(due))
                limit = due.limit
            except BudgetReachedError as error:
                limit = str(error)
        return gathered(evaluation.suite, games, plan, results.all_episodes, due, folder, limit=limit)


class Playing:
    """An evaluation with open results and runs; `setup` is for other processes, `of` the number of all episodes."""

    def __init__(
        self, evaluation: Evaluation, results: Results, games: Mapping[str, Game], host: PluginHost, services: Services,
        setup: Episodes, of: int, reports: Reports[EpisodeRecord],
    ) -> None:  # fmt: skip
        self.results, self.games, self.services = results, games, services
        self._evaluation, self._host, self._setup, self._of, self._reports = evaluation, host, setup, of, reports
        self.models: CommandModels = services.require("models")
        self._runner = Runner[Job](self.models, reports.stopping)
        self._played = 0
        self._left = Counter[tuple[str, str]]()
        self._due: Due[Job] | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that calls `play` in a new event loop; see `wsap_eval.jobs.runner.Runner`."""
        return self._runner.run(work)

    async def play(self, due: Due[Job]) -> None:
        """Play the due episodes: on the cluster, or those without models in workers and the rest in this process.

        Raises BackendError before the first episode if a model is unavailable; WsapError if a limit was reached or
        episodes can't be recorded.
        """
        self._played += due.done
        self._due = due
        self._left.update((job.key.game, job.key.entrant) for job in due.missing)
        given, games, services = self._evaluation, self.games, self.services
        in_workers = dict[tuple[str, str], bool]()

        def apart(job: Job) -> bool:
            cell = (job.key.game, job.key.entrant)
            if cell not in in_workers:
                in_workers[cell] = given.jobs > 1 and not asks_models(job, games[job.key.game], self._host)
            return in_workers[cell] or bool(given.on)

        async def here(job: Job) -> EpisodeRecord:
            return await play_episode(services, games[job.key.game], job, clock=given.clock)

        way = Way(apart, given.in_flight, given.jobs, given.on)
        await self._open_models(job.entrant for job in due.missing if given.on or not apart(job))
        await self._runner.play(due, here, self._setup, way, self._keep)

    def _keep(self, record: EpisodeRecord) -> None:
        self._played += 1
        record = replace(record, tags=self._evaluation.tags)
        self.results.add(record)
        assert self._due is not None
        self._due.ended(record)
        self._left[record.game, record.entrant] -= 1
        self._reports.progress(Progress(self._played, self._of, record, dict(self._left)))

    async def _open_models(self, entrants: Iterable[Entrant]) -> None:
        """Open the entrants' models, so that an unavailable one is reported before the first episode."""
        for agent, options in {entrant.name: (entrant.agent, entrant.options) for entrant in entrants}.values():
            address = agent if names_model(agent) else options.get("model")
            if address:
                await self.models.open(str(address), options)


@contextmanager
def opened(
    evaluation: Evaluation, results: Results, games: Mapping[str, Game], host: PluginHost, of: int,
    reports: Reports[EpisodeRecord],
) -> Iterator[Playing]:  # fmt: skip
    """Open the database of the runs with the remaining budget; see `Playing`."""
    database, limits = evaluation.database or results.database, evaluation.limits
    budgets = [limits.budget("whole evaluation", usage_of(results.episodes.values()))] if limits else []
    setup = Episodes(evaluation.suite, database, limited=bool(budgets))
    with runtime_services(database, budgets=budgets, prices=evaluation.prices) as services:
        yield Playing(evaluation, results, games, host, services, setup, of, reports)
