"""What a folder of results holds, without playing anything, and several of them side by side."""

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
    """Return what was played into a folder, also while more is played.

    Entrants that the suite no longer names come last; what they alone were opponents of is left out.

    Args:
        folder: of the results.
        table: whether the table is wanted, and not the episodes alone.

    Raises:
        UsageError: it holds no results, or those of a measurement of transfer, which have no such table.
        UnknownNameError: a game of them is not installed.
        WireError: a line of them is damaged.
    """
    if table and (folder / PLAN).exists():
        raise UsageError(
            f"{str(folder)!r} holds a measurement of transfer, whose figures are over lives: the command that measured "
            "it prints them again, and wsap eval show --episodes the episodes."
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
    """Entrants compared to a baseline on the seeds that both played."""

    baseline: str
    rows: tuple[Row, ...]
    """Of the others, in the games that they share seeds with the baseline in."""
    apart: tuple[str, ...]
    """Sentences about those that share none."""


def compared(folder: Path, others: Sequence[str] = (), *, baseline: str = "") -> Comparison:
    """Return paired differences to a baseline.

    Args:
        folder: has the baseline.
        others: entrants of the folder, or other folders with results of the same suite, whose entrants are
            distinguished by the folder's name where they are called alike; all entrants of the folder when empty.
        baseline: an entrant; the suite's when empty, else the first.

    Raises:
        UsageError: no seed was played by the baseline and anybody else, or the suites differ.
        UnknownNameError: there is no such entrant.
    """
    played = played_of(folder)
    records = list(played.records)
    labels = list(dict.fromkeys(record.entrant for record in records))
    if not labels:
        raise UsageError(f"No episode was played into {str(folder)!r} yet, so there is nothing to compare.")
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
                f"{other!r} holds results of another suite than {str(folder)!r}, or of another version of it; "
                "such figures do not compare."
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
        raise UsageError(f"Nobody but {base!r} was played in {str(folder)!r}, so there is nothing to compare.")
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
    seats = tuple(replace(s, entrant=label) if s.entrant == record.entrant else s for s in record.seats)
    return replace(record, entrant=label, seats=seats)


def _entrants(played: Played, chosen: Iterable[str]) -> tuple[Entrant, ...]:
    known: Mapping[str, Entrant] = {entrant.name: entrant for entrant in played.suite.entrants}
    return tuple(known.get(label) or Entrant(agent=label) for label in chosen)
