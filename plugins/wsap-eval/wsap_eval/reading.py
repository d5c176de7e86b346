"""Reads and compares folders of results, without playing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_eval.due import CellLimits, Due
from wsap_eval.plan import games_of, jobs_of
from wsap_eval.records import EpisodeRecord
from wsap_eval.results import PLAN, read_results, read_width
from wsap_eval.run import Played
from wsap_eval.suite import Entrant, picked
from wsap_eval.table import Row


def played_of(folder: Path, *, table: bool = True) -> Played:
    """Return the results in a folder, even while an evaluation is running.

    Entrants that the suite no longer names come last, without games against opponents that are gone. Raises UsageError
    if there are no results, or with `table` if they are a transfer measurement; UnknownNameError if a game is not
    installed; WireError if a line is damaged.
    """
    if table and (folder / PLAN).exists():
        raise UsageError(
            f"{str(folder)!r} holds a transfer measurement; repeat the command that measured it to print its results, "
            "or list its episodes with wsap eval show --episodes."
        )
    suite, episodes = read_results(folder)
    host = PluginHost.discovered()
    games = games_of(suite, host)
    jobs = list(jobs_of(suite, games, suite.entrants, host))
    order = {key: number for number, key in enumerate(job.key for job in jobs)}
    keys = sorted((key for key in episodes if key.game in games), key=lambda key: (order.get(key, len(order)), key))
    due = Due(jobs, games, episodes, CellLimits(half_width=read_width(folder)))
    settled = due.all_settled()
    missing = sum((job.key.game, job.key.entrant) not in settled for job in due.missing)
    return Played(suite, games, tuple(episodes[key] for key in keys), missing, {}, settled)


@dataclass(frozen=True)
class Comparison:
    """Entrants compared to a baseline on common seeds."""

    baseline: str
    rows: tuple[Row, ...]
    """Rows of the others that share seeds with the baseline."""
    apart: tuple[str, ...]
    """Sentences about those that don't."""


def compared(folder: Path, others: Sequence[str] = (), *, baseline: str = "") -> Comparison:
    """Return paired differences to a baseline: an entrant of `folder`, by default the suite's or the first.

    `others` are entrants of the folder (by default all), or other folders with results of the same suite, whose
    entrants get the folder's name if their labels collide. Raises UsageError if the suites differ or there are no
    common seeds; UnknownNameError for an unknown entrant.
    """
    played = played_of(folder)
    records = list(played.records)
    labels = list(dict.fromkeys(record.entrant for record in records))
    if not labels:
        raise UsageError(f"{str(folder)!r} has no episodes yet, so there is nothing to compare.")
    base = picked(labels, [baseline or played.suite.baseline or labels[0]], "entrant")[0]
    wanted: list[str] = []
    for other in others:
        if other in labels:
            wanted.append(other)
            continue
        if not Path(other).is_dir():
            picked(labels, [other], "entrant")
        more = played_of(Path(other))
        if (more.suite.digest, more.suite.version) != (played.suite.digest, played.suite.version):
            raise UsageError(
                f"{other!r} and {str(folder)!r} hold results of different suites or versions, which are not comparable."
            )
        renamed = [_renamed(record, {*labels, *wanted}, Path(other).name) for record in more.records]
        wanted.extend(dict.fromkeys(record.entrant for record in renamed))
        records.extend(renamed)
    chosen = {*wanted, base} if wanted else set(labels)
    both = replace(
        played,
        suite=played.suite.model_copy(update={"baseline": base, "entrants": _entrants(played, chosen)}),
        records=tuple(record for record in records if record.entrant in chosen),
    )
    rows = [row for row in both.rows() if row.entrant != base]
    if not rows:
        raise UsageError(f"{str(folder)!r} has no entrant besides {base!r}, so there is nothing to compare.")
    shared = tuple(row for row in rows if row.difference is not None or _set_difference(row))
    apart = tuple(
        f"{row.entrant} and the baseline {base} have no seed in common in {row.game}; play both on the same seeds."
        for row in rows
        if row not in shared
    )
    if not shared:
        raise UsageError(apart[0])
    return Comparison(base, shared, apart)


def _set_difference(row: Row) -> bool:
    return row.metric in row.sets and row.sets[row.metric].difference is not None


def _renamed(record: EpisodeRecord, taken: Iterable[str], folder: str) -> EpisodeRecord:
    if record.entrant not in taken:
        return record
    label = f"{record.entrant} ({folder})"
    seats = tuple(replace(s, entrant=label) if s in record.own else s for s in record.seats)
    return replace(record, entrant=label, seats=seats)


def _entrants(played: Played, chosen: Iterable[str]) -> tuple[Entrant, ...]:
    known: Mapping[str, Entrant] = {entrant.name: entrant for entrant in played.suite.entrants}
    return tuple(known.get(label) or Entrant(agent=label) for label in chosen)
