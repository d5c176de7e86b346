"""The folder of an evaluation: its suite, `episodes.jsonl`, and the recorded runs.

Each line is a single write; a line truncated by a crash is dropped and its episode repeated. The last line of an
episode counts, so that a repeated failed episode is scored once.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from wsap_core.errors import UsageError
from wsap_core.protocol.lines import plural
from wsap_core.textfile import refuse_pipe, written_to
from wsap_eval.jobs.journal import Journal, locked, read_lines
from wsap_eval.planning.plan import Game, Job, Plan
from wsap_eval.planning.suite import Suite, made
from wsap_eval.records import EpisodeKey, EpisodeRecord
from wsap_eval.tables.apart import BEFORE, SHARED, differences, identity
from wsap_eval.tables.metrics import scored_by

PLAN = "plan.json"
"""The plan file of a transfer measurement."""
_SUITE, _EPISODES, _UNTIL = "suite.json", "episodes.jsonl", "until.json"


Changed = Literal["", "again", "apart"]
"""What to do with episodes played under other conditions than now: refuse, play them again, or keep them in rows of
their own."""


_CHOICES = (
    "Play them again with --changed again, keep them in rows of their own with --changed apart, or name another folder "
    "with --out."
)


class Results:
    """The folder of an evaluation, created if missing and locked while it is open.

    `plan` has the episodes that will be played, with their conditions.

    Raises UsageError if it holds results of another suite or of another entrant with the same label, or, unless
    `changed` says what to do, episodes played under other conditions, or can't be written; StorageLockedError if
    another process has it open.
    """

    def __init__(self, folder: Path, suite: Suite, plan: Plan | None = None, changed: Changed = "") -> None:
        self.folder = folder
        with ExitStack() as stack:
            lock = locked(folder, f"Another process is evaluating into {str(folder)!r}; wait for it.")
            stack.callback(lock.release)
            self._refuse_another(suite)
            self._journal = stack.enter_context(Journal(self._path, EpisodeRecord.from_json))
            self.episodes = _last(self._journal.rows)
            self._replaced: dict[EpisodeKey, EpisodeRecord] = {}
            if plan is not None:
                self._refuse_namesakes(plan)
                planned = [job for key in self.episodes if (job := plan.get(key))]
                self.heed_changes([*plan.of_seeds(0, 1), *planned], changed)
            self._keep_suite(suite)
            self._tidy()
            self._held = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._held:
            # After an error, such as a full disk, the next command tidies up.
            if error is None:
                self._tidy()

    @property
    def all_episodes(self) -> Mapping[EpisodeKey, EpisodeRecord]:
        """The episodes, with those to be played again that have not been yet."""
        return {**self._replaced, **self.episodes}

    @property
    def database(self) -> str:
        """The path of its database of runs."""
        return str(self.folder / "runs.db")

    def add(self, record: EpisodeRecord) -> None:
        """Append an episode; a failed one counts how often it failed in the same way before.

        Raises StorageError if it can't be written.
        """
        before = self.episodes.get(record.key)
        if before is not None and record.outcome == before.outcome == "failed" and record.reason == before.reason:
            record = replace(record, failed_before=before.failed_before + 1)
        self._journal.add(record.to_json())
        self.episodes[record.key] = record

    def keep_width(self, half_width: float | None) -> None:
        """Store the half-width at which seeds end, None for no such limit.

        Once a folder had one, looks were taken at its scores, which readers need to know for ever to compute valid
        intervals. Raises UsageError if it can't be written.
        """
        if half_width is not None or was_looked_at(self.folder):
            with written_to(self.folder / _UNTIL) as file:
                file.write(json.dumps({"half_width": half_width}) + "\n")

    @property
    def _path(self) -> Path:
        return self.folder / _EPISODES

    def _refuse_another(self, suite: Suite) -> None:
        path = self.folder / _SUITE
        begun = self._path.exists() and self._path.stat().st_size > 0  # otherwise refused before the first episode
        if path.exists() and begun and (held := suite.why_apart(_read_suite(self.folder))):
            raise UsageError(
                f"{str(self.folder)!r} holds results of {held}; their scores are not comparable. "
                "Name another folder with --out."
            )

    def _refuse_namesakes(self, plan: Plan) -> None:
        for key, record in self.episodes.items():
            if record.outcome != "failed" and (job := plan.get(key)) and not self._is_of(job, record.run):
                raise UsageError(
                    f"{str(self.folder)!r} holds episodes of {key.entrant!r} in {key.game!r} played by "
                    "another agent, with other options, or against somebody else. Give the new entrant a label of its "
                    "own, or name another folder with --out."
                )

    def _is_of(self, job: Job, run: str) -> bool:
        """Return whether a run is of the same entrant and options as an episode, under whatever conditions."""
        return run.split("-")[:2] == job.run.split("-")[:2]

    def score(self, games: Mapping[str, Game]) -> None:
        """Score the episodes by the games' metrics; one that a metric can't score keeps the score that it had."""
        for key, record in self.episodes.items():
            if key.game in games and (found := scored_by(record, games[key.game])).scored:
                self.episodes[key] = found

    def heed_changes(self, jobs: Sequence[Job], changed: Changed = "", choices: str = _CHOICES) -> None:
        """Take those episodes of `jobs` for missing that were played under other conditions, or keep them.

        Raises UsageError that names the difference and `choices` unless `changed` says which.
        """
        now = {job.key: job.conditions for job in jobs}
        of_game = {job.key.game: job.conditions for job in jobs}
        latest: dict[tuple[str, str], EpisodeRecord] = {}
        for record in self.episodes.values():
            cell = (record.game, record.entrant)
            if record.conditions.get("served") and record.started >= (latest.get(cell) or record).started:
                latest[cell] = record
        stale = []
        for key, record in self.episodes.items():
            before = identity(record.conditions)
            if key.game not in of_game or record.outcome == "failed" or "" in before:
                continue
            planned = key in now
            told = differences(before, now[key] if planned else of_game[key.game], BEFORE if planned else SHARED)
            if not told and planned and (last := latest.get((key.game, key.entrant))):
                told = differences(before, identity(last.conditions), ("served",))
            if told:
                stale.append((key, told))
        if not stale:
            return
        if not changed:
            key, told = stale[0]
            raise UsageError(
                f"{str(self.folder)!r} holds {plural(len(stale), 'episode')} played under other conditions, of "
                f"{key.entrant!r} in {key.game!r}{' and others' if len({k.entrant for k, _ in stale}) > 1 else ''}: "
                f"{', '.join(told)}. {choices}"
            )
        if changed == "again":
            self._replaced = {key: self.episodes.pop(key) for key, _ in stale if key in now}

    def _keep_suite(self, suite: Suite) -> None:
        with written_to(self.folder / _SUITE) as file:
            file.write(suite.model_dump_json(indent=2) + "\n")

    def _tidy(self) -> None:
        """Rewrite the episodes in order, each once."""
        episodes = self.all_episodes
        self._journal.rewrite(episodes[key].to_json() for key in sorted(episodes))


def read_results(folder: Path) -> tuple[Suite, dict[EpisodeKey, EpisodeRecord]]:
    """Return a folder's suite and episodes, even while it is being written.

    Raises UsageError if it has no results; WireError if a line is damaged.
    """
    if not (folder / _SUITE).is_file():
        raise UsageError(f"{str(folder)!r} contains no results of wsap eval.")
    return _read_suite(folder), _last(read_lines(folder / _EPISODES, EpisodeRecord.from_json)[0])


def with_kept_scoring(suite: Suite, folder: Path) -> Suite:
    """Return a suite with the metrics and the reducer by which a folder is scored, where it names none itself.

    Raises UsageError if the folder's suite can't be read.
    """
    if not (folder / _SUITE).is_file():
        return suite
    before = _read_suite(folder)
    metrics = {(game.name, game.game): game.metric for game in before.games}
    games = tuple(
        game if game.metric else game.model_copy(update={"metric": metrics.get((game.name, game.game), "")})
        for game in suite.games
    )
    reduce = suite.reduce if "reduce" in suite.model_fields_set else before.reduce
    return suite.model_copy(update={"games": games, "reduce": reduce})


def was_looked_at(folder: Path) -> bool:
    """Return whether seeds of a folder ever ended at a half-width, so that only a confidence sequence is valid."""
    return (folder / _UNTIL).exists()


def read_width(folder: Path) -> float | None:
    """Return the half-width at which seeds end in a folder's results; None if there is no such limit."""
    try:
        refuse_pipe(folder / _UNTIL)
        width = json.loads((folder / _UNTIL).read_text("utf-8"))["half_width"]
        return None if width is None else float(width)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{str(folder / _UNTIL)!r} can't be read: {error}.") from error


def _read_suite(folder: Path) -> Suite:
    try:
        refuse_pipe(folder / _SUITE)
        data: Mapping[str, object] = json.loads((folder / _SUITE).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{str(folder / _SUITE)!r} can't be read: {error}.") from error
    return made(f"The suite in {str(folder)!r}", Suite, data)


def _last(records: Iterable[EpisodeRecord]) -> dict[EpisodeKey, EpisodeRecord]:
    """Return the last record of each episode."""
    return {record.key: record for record in records}
