"""The table as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import click

from wsap_core.cli.output import at_terminal
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_eval.records import OUTCOMES
from wsap_eval.stats import SetEstimate
from wsap_eval.tables.digits import estimate_of, interval_of, number, p_of
from wsap_eval.tables.formats import Form, print_cells, say
from wsap_eval.tables.rows import LEVEL, Row, Standing

COLUMNS = ("game", "entrant", "metric", "score", "95 % interval", "vs baseline", "normalised", "cost", "episodes")
STANDING_COLUMNS = ("entrant", "games", "mean score", "Elo", "95 % interval")
LOOKED = (
    "Seeds of these results ended at a half-width (--until), so intervals and p-values, also of differences, are those "
    "of confidence sequences; a score at which sampling stopped is biased towards values with little spread, and a "
    "normalised score has no interval."
)
"""A note on results that were looked at."""
_WORDS = {"step_limit": "at step limit", "limit": "at a limit"}


def cells(row: Row) -> list[str]:
    """Return a row's cells, one for each of `COLUMNS`."""
    score = "-" if row.score is None else number(row.score, row.interval)
    return [
        *(row.game, row.entrant, row.measured, score, interval_of(row.interval)),
        *(difference_of(row), _normalised(row), cost_of(row), outcomes_of(row)),
    ]


def cost_of(row: Row) -> str:
    """Return what a row's episodes cost, "at least" if calls that were interrupted may have been billed, too."""
    if not row.calls:
        return ""
    return "?" if row.cost is None else f"{'at least ' if row.asked_again or row.unanswered else ''}${row.cost:.2f}"


def notes(row: Row) -> Iterator[str]:
    """Yield the notes below a row: its caveats."""
    if row.interval is None and row.why_no_interval:
        yield row.why_no_interval
    if row.scored > 1 and row.trajectories < row.scored and row.figure.distinct != 1:
        yield f"{row.scored} episodes have only {row.trajectories} distinct trajectories."
    if len(row.served) > 1:
        yield f"The model changed during the evaluation; the server reported: {', '.join(row.served[:4])}."
    yield from notes_on_outcomes(row)
    if again := row.asked_again:
        was = "was" if again == 1 else "were"
        yield (
            f"{plural(again, 'call')} {was} in flight at an interruption and asked again; what the provider billed for "
            "the interrupted ones is unknown and not counted."
        )
    if lost := row.unanswered:
        was, them = ("was", "it") if lost == 1 else ("were", "them")
        yield (
            f"{plural(lost, 'call')} {was} in flight at a limit; what the provider billed for {them} is unknown and "
            "not counted."
        )
    yield from notes_on_difference(row)
    for name, found in row.sets.items():
        if name != row.metric and found.estimate.value is not None:
            yield f"{name}: {_set(found.estimate, found.estimate.value)}."


_WHERE = {
    "game": "in the game ",
    "provider": "at the provider ",
    "opponent": "in the opponent ",
    "metric": "in a metric ",
}


def notes_on_outcomes(row: Row) -> Iterator[str]:
    """Yield what forfeited and failed episodes mean for the score."""
    if row.worst is not None:
        without = "" if row.played is None else f"; without them the mean is {number(row.played)}"
        yield f"Forfeited episodes count as {number(row.worst)}{without}."
    elif lost := row.outcomes.get("forfeited"):
        if row.reduce.startswith("pass"):
            yield "Forfeited episodes count as not passed."
        elif row.metric in row.sets:
            yield "Forfeited episodes count as episodes without achievements."
        else:
            yield f"{plural(lost, 'forfeited episode')} without a value: the metric declares no worst one."
    for reason, count in list(row.raised.items())[:2]:
        yield f"{count} forfeited: {reason}"
    if row.limits:
        kinds = ", ".join(f"{count} at that of {kind}" for kind, count in row.limits.items())
        yield f"Episodes that ended at a limit count as they stood: {kinds}."
    if row.truncated:
        yield f"{plural(row.truncated, 'episode')} ended at the game's own limit of steps or time."
    for reason, count in list(row.failures.items())[:2]:
        yield f"{count} failed {_WHERE.get(row.faults.get(reason, ''), '')}and not scored: {reason}"
    if row.metric not in row.sets and 0 < row.figure.clusters < row.seeds:
        same = ""
        if row.baseline_on_these is not None:
            same = f"; over the same seeds the baseline has {number(row.baseline_on_these, row.interval)}"
        yield f"The mean is of {row.figure.clusters} of {row.seeds} seeds{same}."


def notes_on_difference(row: Row) -> Iterator[str]:
    """Yield what a difference needs or lacks."""
    found = row.difference
    if row.apart:
        yield f"Not compared with the baseline, which was played under other conditions: {row.apart}."
    if found is not None and found.seeds_to_settle is not None:
        yield f"Detecting a difference of this size takes about {found.seeds_to_settle} seeds."
    if found is not None and found.p_value is not None and found.p_value <= 1 - LEVEL < (row.p_adjusted or 0.0):
        yield "Alone this difference would count; as one of several comparisons it may be chance."
    compared = row.sets[row.metric].difference if row.metric in row.sets else found
    if compared is not None and compared.why_no_interval and not difference_of(row).endswith("tied"):
        yield f"The difference has no interval: {compared.why_no_interval}"


def print_rows(rows: Sequence[Row], form: Form = "") -> None:
    """Print the table with its notes; at a terminal one table for each game, without empty columns."""
    told = {id(row): list(notes(row)) for row in rows}
    if form or not at_terminal():
        print_cells(COLUMNS, [cells(row) for row in rows], notes=[told[id(row)] for row in rows], form=form)
        return
    for game, group in groupby(rows, lambda row: (row.game, row.measured)):
        own = list(group)
        table = [cells(row)[1:2] + cells(row)[3:] for row in own]
        kept = [i for i, column in enumerate(zip(*table, strict=True)) if any(column)]
        click.echo(f"\n{single_line(game[0])}: {single_line(game[1])}")
        heading = [(COLUMNS[1:2] + COLUMNS[3:])[i] for i in kept]
        print_cells(heading, [[line[i] for i in kept] for line in table], notes=[told[id(row)] for row in own])


def print_standings(standings: Sequence[Standing], form: Form = "") -> None:
    """Print a table of standings for each round robin and Latin square."""
    for kind, game, rows in standing_tables(standings):
        if not form:
            click.echo()
        say(f"{single_line(game)}: {kind}", form)
        print_cells(STANDING_COLUMNS, rows, form=form)


def standing_tables(standings: Sequence[Standing]) -> Iterator[tuple[str, str, list[list[str]]]]:
    """Yield the kind of standings, such as "round robin", the game, and its rows of cells for `STANDING_COLUMNS`."""
    for (kind, game), group in groupby(standings, lambda standing: (standing.kind, standing.game)):
        yield kind, game, [
            [s.rating.entrant, str(s.rating.games), number(s.mean), number(s.rating.elo, s.rating.interval, sign=True),
             interval_of(s.rating.interval)] for s in group
        ]  # fmt: skip


def summary_notes(rows: Sequence[Row], baseline: str = "") -> Iterator[str]:
    """Yield the notes on the whole table: games without the baseline, and how differences are computed."""
    without = dict.fromkeys(row.game for row in rows) if baseline else {}
    for row in rows:
        if baseline in (row.entrant, row.of):
            without.pop(row.game, None)
    if without:
        yield f"The baseline {baseline} was not played in {', '.join(without)}, so there are no comparisons."
    if any(row.difference is not None for row in rows):
        yield "Differences are paired on common seeds; p-values are adjusted for multiple comparisons (Holm)."


def _set(found: SetEstimate, value: float) -> str:
    why = found.interval.method if found.interval else f"no interval: {found.why_no_interval.removesuffix('.')}"
    return f"{estimate_of(value, found.interval)}, {why}"


def difference_of(row: Row) -> str:
    """Return the difference from the baseline with interval, p-value and verdict; empty if there is none."""
    if row.metric in row.sets:
        found = row.sets[row.metric].difference
        return "" if found is None or found.value is None else estimate_of(found.value, found.interval, sign=True)
    paired = row.difference
    if paired is None:
        return ""
    p_value = "" if row.p_adjusted is None else f", {p_of(row.p_adjusted)}"
    return f"{estimate_of(paired.difference, paired.interval, sign=True)}{p_value}, {paired.verdict}"


def _normalised(row: Row) -> str:
    if row.normalised is None:
        return ""
    found = row.normalised
    return "undefined" if found.value is None else estimate_of(found.value, found.interval)


def outcomes_of(row: Row) -> str:
    """Return the number of episodes of each outcome."""
    return ", ".join(f"{row.outcomes[o]} {_WORDS.get(o, o)}" for o in OUTCOMES if row.outcomes.get(o))
