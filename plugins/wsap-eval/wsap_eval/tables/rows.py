"""The table: one row for each game and entrant."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

from wsap_core.protocol.lines import plural
from wsap_core.specs import EpisodeSummary, ScoreMetric
from wsap_eval.planning.plan import Game
from wsap_eval.records import FORCED, EpisodeRecord, Fault, SeatRecord, usage_of, value_of, worst_of
from wsap_eval.stats import (
    Estimate,
    Interval,
    Match,
    Paired,
    Rating,
    Ratio,
    SetEstimate,
    Values,
    directed,
    estimate,
    holm,
    normalised,
    paired,
    paired_set_metric,
    passes,
    ratings,
    set_metric,
)
from wsap_eval.tables.apart import SHARED, differences, identity, shared_words
from wsap_eval.tables.metrics import MetricError, value_of_metric

LEVEL = 0.95
"""The level of all intervals of the table."""
RANDOM = "random"
"""The agent whose normalised score is 0."""


@dataclass(frozen=True)
class SetRow:
    """A metric of a set of episodes, such as Crafter's score."""

    estimate: SetEstimate
    difference: SetEstimate | None
    """From the baseline; None for the baseline itself and without common seeds."""


@dataclass(frozen=True)
class Row:
    """The results of an entrant in a game."""

    game: str
    entrant: str
    metric: str
    outcomes: Mapping[str, int]
    """Outcome -> episodes."""
    figure: Estimate
    """The metric's mean over seeds; a forfeited episode counts as the worst."""
    worst: float | None
    """The value of a forfeited episode; None without any, or if the metric declares no worst value."""
    played: float | None
    """The mean without forfeited episodes; None if there are none or no others."""
    trajectories: int
    better: Literal["higher", "lower"] = "higher"
    failures: Mapping[str, int] = field(default_factory=dict)
    """Reason -> failed episodes, most frequent first."""
    faults: Mapping[str, Fault] = field(default_factory=dict)
    """Reason -> where these episodes failed."""
    seeds: int = 0
    """Number of seeds that were played, with those that have no value."""
    baseline_on_these: float | None = None
    """The baseline's mean over the seeds of `figure`, if some of the seeds played are not among these."""
    difference: Paired | None = None
    """From the baseline on common seeds; None for the baseline itself and without common seeds."""
    of: str = ""
    """The entrant's own label, if the row has only its episodes of some conditions; else as `entrant`."""
    baseline: str = ""
    """The row that it is compared with, which has the same conditions as far as they are shared; empty for none."""
    apart: str = ""
    """How the conditions of the baseline's episodes differ, if the two are not comparable."""
    p_adjusted: float | None = None
    """The difference's p-value, adjusted for all comparisons of the table (Holm)."""
    normalised: Ratio | None = None
    """0 is random's score, 1 that of the game's default agent; None unless both are in the table."""
    sets: Mapping[str, SetRow] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    """Total US dollars; None if unknown."""
    seconds: float = 0.0
    """Sum over episodes."""
    asked_again: int = 0
    tags: tuple[str, ...] = ()
    """Those that all its episodes have."""
    unanswered: int = 0
    """Calls that were pending when their episode ended at a limit."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """Kind of limit -> episodes that ended at it."""
    truncated: int = 0
    """Episodes that the game itself ended at a limit of steps or time."""
    reduce: str = "mean"
    """How a seed's value follows from those of its repeats."""
    by_seed: Mapping[int, float] = field(default_factory=dict)
    """Seed -> value, if it is not the mean of the repeats."""
    served: tuple[str, ...] = ()
    """Models and fingerprints as reported by servers, in the order of episodes."""
    raised: Mapping[str, int] = field(default_factory=dict)
    """Error of the entrant's agent -> episodes forfeited by it, most frequent first."""

    @property
    def episodes(self) -> int:
        """Number of episodes, including failed ones."""
        return sum(self.outcomes.values())

    @property
    def scored(self) -> int:
        """Number of episodes that have a score or were forfeited."""
        return self.episodes - self.outcomes.get("failed", 0)

    @property
    def measured(self) -> str:
        """The metric's name, with how repeats are reduced if not to their mean, and whether lower is better."""
        name = self.metric if self.reduce == "mean" else f"{self.metric}, {self.reduce}"
        return name if self.better == "higher" else f"{name} (lower is better)"

    @property
    def _set(self) -> SetEstimate | None:
        found = self.sets.get(self.metric)
        return None if found is None else found.estimate

    @property
    def score(self) -> float | None:
        """The mean, or the value of a metric of a set of episodes."""
        return self.figure.mean if self._set is None else self._set.value

    @property
    def interval(self) -> Interval | None:
        """The score's interval."""
        return self.figure.interval if self._set is None else self._set.interval

    @property
    def why_no_interval(self) -> str:
        """A sentence if there is no interval, else empty."""
        return self.figure.why_no_interval if self._set is None else self._set.why_no_interval

    @property
    def score_per_dollar(self) -> float | None:
        """The mean divided by the cost of an episode; None if that is 0 or unknown, or if lower scores are better."""
        if not self.cost or self.figure.mean is None or self.better == "lower":
            return None
        return self.figure.mean / (self.cost / max(1, self.scored))


@dataclass(frozen=True)
class Standing:
    """An entrant's result in a round robin, or in games of several entrants by Latin square."""

    game: str
    mean: float
    """By Latin square, of the values of seeds. In a round robin, of its scores in all its games, whoever's they were
    planned as, with equal weights of its opponents, including itself; each pair meets in both orders of seats on each
    seed, so that no seat is favoured."""
    rating: Rating
    kind: Literal["round robin", "Latin square"] = "round robin"


def standings_of(records: Iterable[EpisodeRecord], games: Mapping[str, Game]) -> list[Standing]:
    """Return the standings of all round robins and Latin squares, best mean first; a forfeited game counts as lost.

    Episodes of different conditions make standings of their own.
    """
    by_name: dict[str, list[EpisodeRecord]] = {}
    together: dict[str, list[EpisodeRecord]] = {}
    for record in records:
        if games[record.game].entrants and record.outcome != "failed":
            together.setdefault(record.game, []).append(record)
        game = games[record.game]
        if game.opponent is not None and record.outcome != "failed":
            name = record.game.removesuffix(f" against {game.opponent.name}")
            by_name.setdefault(name, []).append(record)
    found: dict[str, list[EpisodeRecord]] = {}
    for name, played in by_name.items():
        for record, words in zip(played, shared_words(played, but=("opponent",)), strict=True):
            found.setdefault(f"{name} [{words}]" if words else name, []).append(record)
    standings = []
    for name, played in found.items():
        metric = games[played[0].game].metric
        means = _means_by_opponent(played, metric)
        rated = ratings([_match(record, metric) for record in played])
        rows = [Standing(name, _mean(map(_mean, m.values())), r) for r in rated if (m := means.get(r.entrant))]
        standings.extend(sorted(rows, key=lambda row: row.mean, reverse=metric.better == "higher"))
    for label, played in together.items():
        standings += _standings_together(label, played, games[label].metric)
    return standings


def _standings_together(label: str, parts: Sequence[EpisodeRecord], metric: ScoreMetric) -> list[Standing]:
    """Return the standings in games of several entrants; `parts` are what each of them did in each game."""
    seeds: dict[str, dict[int, list[float]]] = {}
    matches: dict[str, list[EpisodeRecord]] = {}
    for part in parts:
        matches.setdefault(part.run, []).append(part)
        if part.value is not None:
            seeds.setdefault(part.entrant, {}).setdefault(part.seed, []).append(part.value)
    rated = ratings([_match_together(those, metric) for those in matches.values()])
    rows = [
        Standing(label, _mean(map(_mean, own.values())), rating, "Latin square")
        for rating in rated
        if (own := seeds.get(rating.entrant))
    ]
    return sorted(rows, key=lambda row: row.mean, reverse=metric.better == "higher")


def _match_together(parts: Sequence[EpisodeRecord], metric: ScoreMetric) -> Match:
    """Return a game as a match of its entrants, each with the mean of its seats; those that forfeited have lost."""
    sign = 1 if metric.better == "higher" else -1
    scores = [sign * part.metrics.get(metric.name, 0.0) for part in parts]
    lost = min(scores) - 1
    forfeits = [part.outcome == "forfeited" for part in parts]
    own = tuple(lost if forfeit else score for score, forfeit in zip(scores, forfeits, strict=True))
    return Match(parts[0].seed, tuple(part.entrant for part in parts), own)


def _means_by_opponent(played: Iterable[EpisodeRecord], metric: ScoreMetric) -> dict[str, dict[str, list[float]]]:
    """Return entrant -> opponent -> its scores in all their games, without forfeited ones that have no value."""
    found: dict[str, dict[str, list[float]]] = {}
    for record in played:
        for seat in record.seats:
            value = seat.metrics.get(metric.name)
            if record.outcome == "forfeited" and seat in record.own:
                value = worst_of(metric)
            others = [other.entrant for other in record.seats if other.seat != seat.seat]
            if value is not None:
                found.setdefault(seat.entrant, {}).setdefault(others[0], []).append(value)
    return found


def _mean(values: Iterable[float]) -> float:
    all_ = list(values)
    return sum(all_) / len(all_)


def _match(record: EpisodeRecord, metric: ScoreMetric) -> Match:
    sign = 1 if metric.better == "higher" else -1
    scores = [sign * seat.metrics.get(metric.name, 0.0) for seat in record.seats]
    lost = min(scores) - 1 if record.outcome == "forfeited" else None
    own = [lost if lost is not None and s in record.own else x
           for s, x in zip(record.seats, scores, strict=True)]  # fmt: skip
    return Match(record.seed, tuple(seat.entrant for seat in record.seats), tuple(own))


def rows_of(
    records: Iterable[EpisodeRecord],
    games: Mapping[str, Game],
    *,
    baseline: str = "",
    scripted: Mapping[str, str] | None = None,
    settled: Callable[[str, str], int | None] = lambda game, entrant: None,
    looked: bool = False,
    entrants: Mapping[str, str] = MappingProxyType({}),
) -> list[Row]:
    """Return the rows by game and entrant, in the order of the records.

    Args:
        records: each episode once.
        games: by label.
        baseline: the entrant to compare to; the first by default.
        scripted: entrant's label -> agent, to find the anchors of normalised scores; by default the label itself.
        settled: the number of seeds behind a cell's score if sampling stopped at a width (`--until`).
        looked: sampling stopped at a width before, so that all intervals are those of confidence sequences.
        entrants: label of a row -> that of its entrant, where they differ; see `told_apart`.
    """
    cells: dict[str, dict[str, list[EpisodeRecord]]] = {}
    for record in records:
        cells.setdefault(record.game, {}).setdefault(record.entrant, []).append(record)
    rows = []
    for label, by_entrant in cells.items():
        returned = {entrant: _returns(label, entrant, games, cells, entrants) for entrant in by_entrant}
        rows += _rows_of_game(
            games[label], by_entrant, returned, baseline, scripted or {}, settled, entrants, looked=looked
        )
    found = {(r.game, r.entrant): p for r in rows if r.difference and (p := r.difference.p_value) is not None}
    adjusted = dict(zip(found, holm(list(found.values())), strict=True))
    return [_adjusted(row, adjusted.get((row.game, row.entrant))) for row in rows]


def _adjusted(row: Row, p_value: float | None) -> Row:
    """Return a row with its adjusted p-value, among which its difference may prove nothing."""
    shown = row.difference
    if shown is not None and shown.verdict in ("better", "worse") and (p_value or 0.0) > 1 - LEVEL:
        shown = replace(shown, verdict="unknown")
    return replace(row, difference=shown, p_adjusted=p_value)


def _returns(
    label: str,
    entrant: str,
    games: Mapping[str, Game],
    cells: Mapping[str, Mapping[str, list[EpisodeRecord]]],
    labels: Mapping[str, str],
) -> list[EpisodeRecord] | None:
    """Return the return games of a row of a round robin: those of its opponent against it, in the other order of seats.

    None where there are none: outside a round robin, against itself, and if the opponent is no entrant.
    """
    opponent, own = games[label].opponent, labels.get(entrant, entrant)
    if opponent is None or opponent.name == own:
        return None
    other = cells.get(f"{label.removesuffix(f' against {opponent.name}')} against {own}", {})
    found = [record for row, those in other.items() if labels.get(row, row) == opponent.name for record in those]
    played = {turned: None for record in cells[label][entrant] if (turned := _sides(record.conditions))}
    near = [r for r in found if _sides(r.conditions, turned=True) in played]
    return near or None


def _sides(conditions: Mapping[str, str], *, turned: bool = False) -> tuple[str, ...]:
    """Return the conditions that the games of a pair share, and the two players', in the other order if `turned`."""
    agent, opponent = conditions.get("agent", ""), conditions.get("opponent", "")
    players = (opponent, agent) if turned else (agent, opponent)
    return (*players, *(conditions.get(name, "") for name in SHARED if name != "opponent"))


def _rows_of_game(
    game: Game,
    cells: Mapping[str, list[EpisodeRecord]],
    returned: Mapping[str, list[EpisodeRecord] | None],
    baseline: str,
    agents: Mapping[str, str],
    settled: Callable[[str, str], int | None],
    labels: Mapping[str, str],
    *,
    looked: bool,
) -> list[Row]:
    counts = {entrant: settled(game.entry.name, entrant) for entrant in cells}
    cells = {entrant: _first_seeds(found, counts[entrant]) for entrant, found in cells.items()}
    worst = worst_of(game.metric)
    values = {entrant: _by_seed(game, found, worst, returned[entrant]) for entrant, found in cells.items()}
    conditions = {entrant: identity(found[0].conditions) for entrant, found in cells.items()}
    own_labels = {entrant: labels.get(entrant, entrant) for entrant in cells}
    base = baseline or next(iter(own_labels.values()))
    bases = [entrant for entrant, label in own_labels.items() if base in (entrant, label)]

    def comparable(entrant: str, others: Iterable[str]) -> str | None:
        """Return the row of the same shared conditions with most seeds in common, of equals the first."""
        near = [other for other in others if not differences(conditions[other], conditions[entrant], SHARED)]
        return max(near, key=lambda other: len(values[entrant].keys() & values[other].keys()), default=None)

    names = (RANDOM, game.spec.default_agent)
    anchors = [[entrant for entrant, label in own_labels.items() if agents.get(label, label) == n] for n in names]
    rows = []
    for entrant, found in cells.items():
        own = values[entrant]
        row = _row(game, entrant, found, own, worst, any_look=looked or counts[entrant] is not None)
        if returned[entrant] is not None:
            row = replace(row, by_seed={seed: _mean(of_seed) for seed, of_seed in own.items()})
        base_row = None if entrant in bases else comparable(entrant, bases)
        row = replace(row, of=own_labels[entrant], baseline=base_row or "")
        if bases and entrant not in bases and base_row is None:
            row = replace(row, apart=", ".join(differences(conditions[bases[0]], conditions[entrant], SHARED)))
        other = values[base_row] if base_row is not None else {}
        if base_row is not None and own.keys() & other.keys():
            both, any_look = (
                [*found, *cells[base_row]],
                looked or any(counts[e] is not None for e in (entrant, base_row)),
            )
            row = replace(row, difference=_difference(game.reduced_metric, own, other, both, any_look=any_look))
        near = [comparable(entrant, those) for those in anchors]
        floor, top = (None if anchor is None else values[anchor] for anchor in near)
        if near[0] != near[1] and floor and top and own:
            share = normalised(own, floor, top)
            stopped = looked or any(count is not None for count in counts.values())
            row = replace(row, normalised=replace(share, interval=None) if stopped else share)
        if base_row and row.figure.clusters < row.seeds and (shared := [seed for seed in own if seed in other]):
            mean = sum(sum(other[seed]) / len(other[seed]) for seed in shared) / len(shared)
            row = replace(row, baseline_on_these=mean)
        base_found = None if base_row is None else cells[base_row]
        sets = {m.name: _set_row(game, m, found, base_found) for m in game.metrics if m.of_set}
        rows.append(replace(row, sets=sets))
    return rows


def _difference(
    metric: ScoreMetric, own: Values, other: Values, records: Iterable[EpisodeRecord], *, any_look: bool
) -> Paired:
    """Return a difference, without a verdict if forfeited episodes have no value: what is left is no chance sample."""
    found = directed(paired(own, other, low=metric.low, high=metric.high, any_look=any_look), metric.better)
    lost = sum(record.outcome == "forfeited" for record in records)
    if not lost or worst_of(metric) is not None:
        return found
    why = f"{plural(lost, 'forfeited episode')} of both without a value, and what is left is no chance sample."
    return Paired(found.seeds, found.difference, found.standard_error, None, None, "unknown", None, why)


def _row(
    game: Game,
    entrant: str,
    found: Sequence[EpisodeRecord],
    values: Mapping[int, list[float]],
    worst: float | None,
    *,
    any_look: bool,
) -> Row:
    pairs = [(seed, value) for seed, of_seed in values.items() for value in of_seed]
    # An episode that ended before its first decision has no trajectory, and is like no other.
    silent = sum(record.outcome == "forfeited" and not record.trajectory for record in found)
    distinct = len({record.path for record in found} - {None}) + silent
    scored = [record.value for record in found if record.scored and record.value is not None]
    forfeits = any(record.outcome == "forfeited" for record in found)
    usage = usage_of(found)
    figure = estimate(
        [value for _, value in pairs], [seed for seed, _ in pairs],
        low=game.reduced_metric.low, high=game.reduced_metric.high, distinct=distinct, any_look=any_look,
    )  # fmt: skip
    if not pairs and scored and (wanted := passes(game.reduce)) is not None:
        why = f"No seed has the {wanted} episodes with a value that {game.reduce} takes."
        figure = replace(figure, why_no_interval=why)
    return Row(
        game.entry.name,
        entrant,
        game.metric.name,
        dict(Counter(record.outcome for record in found)),
        figure,
        worst if forfeits else None,
        sum(scored) / len(scored) if forfeits and scored else None,
        distinct,
        game.reduced_metric.better,
        dict(Counter(record.reason for record in found if record.outcome == "failed").most_common()),
        {record.reason: record.fault for record in found if record.outcome == "failed"},
        len({record.seed for record in found}),
        calls=usage.calls,
        tokens=usage.prompt_tokens + usage.completion_tokens,
        cost=usage.cost,
        seconds=round(sum(record.seconds for record in found), 3),
        asked_again=sum(record.asked_again for record in found),
        tags=tuple(tag for tag in found[0].tags if all(tag in record.tags for record in found)),
        unanswered=sum(record.unanswered for record in found),
        limits=dict(Counter(record.limit for record in found if record.limit)),
        truncated=sum(any(seat.truncated for seat in record.own) for record in found),
        reduce=game.reduce,
        by_seed={seed: of_seed[0] for seed, of_seed in values.items()} if game.reduce != "mean" else {},
        served=tuple(dict.fromkeys(name for record in found if (name := record.conditions.get("served")))),
        raised=dict(Counter(
            record.reason for record in found if record.outcome == "forfeited" and FORCED not in record.reason
        ).most_common()),
    )  # fmt: skip


def _first_seeds(found: Sequence[EpisodeRecord], seeds: int | None) -> list[EpisodeRecord]:
    if seeds is None:
        return list(found)
    kept = list(dict.fromkeys(record.seed for record in found))[:seeds]
    return [record for record in found if record.seed in kept]


def _by_seed(
    game: Game, found: Sequence[EpisodeRecord], worst: float | None, returned: Sequence[EpisodeRecord] | None = None
) -> dict[int, list[float]]:
    """Return seed -> values of its repeats, or the one that they are reduced to if that is not their mean.

    With return games, whose scores in the other seat are values, too, a seed counts if it has as many of either.
    """
    if worst is None and passes(game.reduce) is not None:
        worst = math.nan  # of no declared value, but not passed
    values: dict[int, list[float]] = {}
    for record in found:
        if (value := value_of(record, worst)) is not None:
            values.setdefault(record.seed, []).append(value)
    if returned is not None:
        others: dict[int, list[float]] = {}
        for record in returned:
            seats = [seat.metrics.get(game.metric.name) for seat in record.seats if seat not in record.own]
            if record.outcome != "failed" and seats and seats[0] is not None:
                others.setdefault(record.seed, []).append(seats[0])
        values = {seed: [*own, *others[seed]] for seed, own in values.items() if len(others.get(seed, ())) == len(own)}
    if game.reduce == "mean":
        return values
    return {seed: [value] for seed, own in values.items() if (value := game.of_seed(own)) is not None}


def _set_row(
    game: Game, metric: ScoreMetric, found: Sequence[EpisodeRecord], baseline: Sequence[EpisodeRecord] | None
) -> SetRow:
    def value(episodes: Sequence[EpisodeSummary]) -> float:
        return value_of_metric(metric, episodes, game.entry.game)

    own = _summaries(found)
    other = None if baseline is None else _summaries(baseline)
    compared = other is not None and own.keys() & other.keys()
    try:
        return SetRow(set_metric(own, value), paired_set_metric(own, other, value) if compared and other else None)
    except MetricError as error:
        return SetRow(SetEstimate(len(own), None, None, str(error)), None)


def _summaries(found: Sequence[EpisodeRecord]) -> dict[int, list[EpisodeSummary]]:
    """Return seed -> summaries of the entrant's seats; forfeited episodes have no achievements."""
    summaries: dict[int, list[EpisodeSummary]] = {}
    for record in found:
        if record.outcome != "failed":
            summaries.setdefault(record.seed, []).extend(_summary(record, seat) for seat in record.own)
    return summaries


def _summary(record: EpisodeRecord, seat: SeatRecord) -> EpisodeSummary:
    forfeited = record.outcome == "forfeited"
    achieved, reward = ((), 0.0) if forfeited else (seat.achievements, seat.reward)
    return EpisodeSummary(record.seed, seat.steps, reward, achieved, seat.done, seat.seat)
