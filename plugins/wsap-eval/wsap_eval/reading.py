"""Reads and compares folders of results, without playing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_eval.planning.due import CellLimits, Due
from wsap_eval.planning.plan import Plan, games_of
from wsap_eval.planning.suite import Entrant, Suite, made, picked
from wsap_eval.records import EpisodeRecord
from wsap_eval.results import PLAN, Results, read_results, read_width
from wsap_eval.run import Played, gathered
from wsap_eval.stats import passes
from wsap_eval.tables.metrics import scored_by
from wsap_eval.tables.rows import Row


def played_of(folder: Path, *, table: bool = True) -> Played:
    """Return the results in a folder, even while an evaluation is running.

    Entrants that the suite no longer names come last, without games against opponents that are gone. Raises UsageError
    if there are no results, or with `table` if they are a transfer measurement; UnknownNameError if a game is not
    installed; WireError if a line is damaged.
    """
    if table and (folder / PLAN).exists():
        raise UsageError(
            f"{str(folder)!r} holds a transfer measurement, whose episodes are not a table; print it with "
            "wsap eval show, or its episodes with wsap eval show --episodes."
        )
    suite, read = read_results(folder)
    host = PluginHost.discovered()
    games = games_of(suite, host)
    plan = Plan(suite, games, suite.entrants, host)
    episodes = {key: scored_by(r, games[key.game]) if key.game in games else r for key, r in read.items()}
    due = Due(plan, games, episodes, CellLimits(half_width=read_width(folder)))
    return gathered(suite, games, plan, episodes, due, folder)


def with_tags(played: Played, tags: Sequence[str]) -> Played:
    """Return only the episodes that have all these tags. Raises UsageError if none has."""
    found = tuple(record for record in played.records if {*tags} <= {*record.tags})
    if tags and not found:
        known = ", ".join(sorted({tag for record in played.records for tag in record.tags}))
        raise UsageError(
            f"No episode has the {'tag' if len(tags) == 1 else 'tags'} {' and '.join(map(repr, tags))}; "
            f"{f'there are: {known}' if known else 'they have no tags'}."
        )
    return replace(played, records=found)


def scored_again(folder: Path, metrics: Sequence[str], reduce: str | None = None) -> Played:
    """Score the episodes of a folder by other metrics or another reducer, without playing, and return its results.

    `metrics` are `NAME` for all games, or `GAME=NAME`; `reduce` is that of a suite, and None keeps it. UsageError
    for a game, metric or reducer that there is not, for one that takes more repeats than were played, or if the results
    are a transfer measurement.
    """
    played = played_of(folder)
    labels = [game.name for game in played.suite.games]
    chosen: dict[str, str] = {}
    for word in metrics:
        label, _, name = word.rpartition("=")
        chosen |= dict.fromkeys(picked(labels, [label] if label else [], "game"), name)
    entries = tuple(e.model_copy(update={"metric": chosen.get(e.name, e.metric)}) for e in played.suite.games)
    whole = played.suite.model_copy(update={"games": entries}).model_dump(mode="json")
    suite = made("The evaluation", Suite, whole if reduce is None else whole | {"reduce": reduce})
    games = games_of(suite, PluginHost.discovered())
    most = max(Counter((r.game, r.entrant, r.seed) for r in played.records).values(), default=0)
    if (wanted := passes(suite.reduce)) is not None and wanted > most:
        raise UsageError(
            f"{suite.reduce} takes at least {wanted} episodes of a seed, and {str(folder)!r} has {most}; play more "
            "with --repeats."
        )
    with Results(folder, suite) as results:
        results.score(games)
    return played_of(folder)


@dataclass(frozen=True)
class Comparison:
    """Entrants compared to a baseline on common seeds."""

    baseline: str
    rows: tuple[Row, ...]
    """Rows of the others that share seeds with the baseline."""
    base: tuple[Row, ...]
    """The baseline's rows."""
    apart: tuple[str, ...]
    """Sentences about those that don't."""
    looked: bool = False
    """Whether seeds of one of the folders ever ended at a half-width; see `Played.looked`."""


def compared(folder: Path, others: Sequence[str] = (), *, baseline: str = "", tags: Sequence[str] = ()) -> Comparison:
    """Return paired differences to a baseline: an entrant of `folder`, by default the suite's or the first.

    `others` are entrants of the folder (by default all), or other folders with results of the same suite. An entrant
    that is in several folders has a row for each, named by the shortest end of the folder's path that tells them apart.
    Of all folders, only episodes that have all of `tags` count. Raises UsageError if the suites differ, a folder is
    named twice, no episode has the tags, or there are no common seeds; UnknownNameError for an unknown entrant.
    """
    played = with_tags(played_of(folder), tags)
    records = list(played.records)
    labels = list(dict.fromkeys(record.entrant for record in records))
    if not labels:
        raise UsageError(f"{str(folder)!r} has no episodes yet, so there is nothing to compare.")
    names = list(dict.fromkeys((*played.entrants.values(), *labels)))
    base = picked(names, [baseline or played.suite.baseline or names[0]], "entrant")[0]

    def rows_called(name: str) -> list[str]:
        return [label for label in labels if name in (label, played.entrants.get(label))]

    wanted = [label for other in others for label in rows_called(other)]
    more: dict[Path, Played] = {}
    for other in others:
        if other not in names:
            if not Path(other).is_dir():
                picked(names, [other], "entrant")
            if Path(other).resolve() in (folder.resolve(), *(path.resolve() for path in more)):
                raise UsageError(f"{other!r} is named twice; name each folder once.")
            more[Path(other)] = with_tags(_of_same_suite(Path(other), folder, played), tags)
    for label, record in _told_apart({*labels, *names}, more):
        wanted.append(label)
        records.append(record)
    chosen = {*wanted, *rows_called(base)} if wanted else set(labels)
    both = replace(
        played,
        suite=played.suite.model_copy(update={"baseline": base, "entrants": _entrants(played, chosen)}),
        records=tuple(record for record in records if record.entrant in chosen),
        looked=played.looked or any(other.looked for other in more.values()),
    )
    rows = [row for row in both.rows() if row.entrant not in rows_called(base)]
    if not rows:
        raise UsageError(f"{str(folder)!r} has no entrant besides {base!r}, so there is nothing to compare.")
    shared = tuple(row for row in rows if row.difference is not None or _set_difference(row))
    apart = tuple(_why_apart(row, base) for row in rows if row not in shared)
    if not shared:
        raise UsageError(apart[0])
    own = tuple(row for row in both.rows() if row.entrant in rows_called(base))
    return Comparison(base, shared, own, apart, both.looked)


def _why_apart(row: Row, base: str) -> str:
    if row.apart:
        return (
            f"{row.entrant} and the baseline {base} were played under different conditions in {row.game}: "
            f"{row.apart}; play both under the same."
        )
    if row.metric not in row.sets and not row.figure.clusters:
        return f"{row.entrant} has no score in {row.game}: {row.why_no_interval}"
    return f"{row.entrant} and the baseline {base} have no seed in common in {row.game}; play both on the same seeds."


def _set_difference(row: Row) -> bool:
    return row.metric in row.sets and row.sets[row.metric].difference is not None


def _of_same_suite(other: Path, folder: Path, played: Played) -> Played:
    more = played_of(other)
    if why := played.suite.why_apart(more.suite):
        raise UsageError(
            f"{str(other)!r} and {str(folder)!r} hold results of different suites or versions, which are not "
            f"comparable; the former of {why}."
        )
    shared = tuple(scored_by(r, played.games[r.game]) for r in more.records if r.game in played.games)
    if not shared:
        raise UsageError(f"{str(other)!r} and {str(folder)!r} have no game in common.")
    return replace(more, records=shared)


def _told_apart(taken: set[str], more: Mapping[Path, Played]) -> Iterator[tuple[str, EpisodeRecord]]:
    """Yield the other folders' episodes with the labels of their rows; no row has episodes of two folders.

    `taken` are the labels of the rows of the first folder, and of their entrants.
    """
    names = dict(zip(more, _short_names(list(more)), strict=True))
    of_folder = {path: dict.fromkeys(r.entrant for r in played.records) for path, played in more.items()}
    times = Counter([*taken, *(label for own in of_folder.values() for label in own)])
    taken = set(times)
    for path, own in of_folder.items():
        rows = {}
        for label in own:
            row = label
            if times[label] > 1:
                row = f"{label} ({names[path]})"
                while row in taken:  # another entrant's own label
                    row += "'"
                taken.add(row)
            rows[label] = row
        for record in more[path].records:
            row = rows[record.entrant]
            seats = tuple(replace(s, entrant=row) if s in record.own else s for s in record.seats)
            yield row, replace(record, entrant=row, seats=seats)


def _short_names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest ends of different paths that differ from each other."""
    parts = [path.resolve().parts for path in paths]
    most = max(map(len, parts), default=1)
    for count in range(1, most + 1):
        names = ["/".join(own[-count:]) for own in parts]
        if len(set(names)) == len(names):
            break
    return names


def _entrants(played: Played, chosen: Iterable[str]) -> tuple[Entrant, ...]:
    names = dict.fromkeys(played.entrants.get(label, label) for label in chosen)
    return tuple(played.entrant(name) for name in names)
