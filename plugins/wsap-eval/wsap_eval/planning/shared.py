"""Games of several entrants, with seats by Latin square: what each of them did in them.

A game is one episode, named by the entrant in the first place. On each seed there is a game for each entrant, a block,
in which each entrant has each seat once; only whole blocks are measured, so no entrant is favoured by its seats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.specs import ScoreMetric
from wsap_eval.planning.plan import Game
from wsap_eval.records import FORCED, EpisodeRecord, Outcome, SeatRecord, worst_of


def by_entrant(records: Iterable[EpisodeRecord], games: Mapping[str, Game], forfeit: float) -> list[EpisodeRecord]:
    """Return the records, with one for each entrant in place of one of a game of several.

    The repeats of a seed are then the games of its block. Without all games of a block, none of it has a value; nor has
    any for an entrant for which one was broken off by another's error.

    Args:
        records: of whole games.
        games: by label.
        forfeit: the share of forced decisions above which an entrant forfeits a game.
    """
    found, blocks = list[EpisodeRecord](), dict[tuple[str, int, int], list[EpisodeRecord]]()
    for record in records:
        if games[record.game].entrants:
            blocks.setdefault((record.game, record.seed, record.repeat), []).append(record)
        else:
            found.append(record)
    for (label, _, repeat), block in blocks.items():
        game = games[label]
        order = [entrant.name for entrant in game.entrants]
        over = [record for record in block if record.outcome != "failed"]
        whole = {record.entrant for record in over} >= {*order}
        conditions = {record.entrant: record.conditions for record in over}
        parts = [
            replace(_part(record, name, game.metric, forfeit), repeat=repeat * len(order) + turn)
            for record in over
            for turn in [order.index(record.entrant) if record.entrant in order else len(order)]
            for name in dict.fromkeys(seat.entrant for seat in record.seats)
        ]
        parts.sort(key=lambda part: order.index(part.entrant) if part.entrant in order else len(order))
        without = {part.entrant for part in parts if part.value is None or not whole}
        found += [record for record in block if record.outcome == "failed"]
        found += [
            replace(
                part,
                value=None if part.entrant in without else part.value,
                conditions=conditions.get(part.entrant, part.conditions),
            )
            for part in parts
        ]
    return found


def _part(record: EpisodeRecord, entrant: str, metric: ScoreMetric, forfeit: float) -> EpisodeRecord:
    """Return what one entrant did in a game."""
    seats = tuple(replace(seat, own=seat.entrant == entrant) for seat in record.seats)
    own = [seat for seat in seats if seat.own]
    named = [name for name in own[0].metrics if all(name in seat.metrics for seat in own)]
    metrics = {name: _mean([seat.metrics[name] for seat in own]) for name in named}
    decided, forced = sum(seat.steps for seat in own), sum(seat.forced for seat in own)
    outcome, reason, value = _outcome(record, entrant), record.reason, metrics.get(metric.name)
    if forced > forfeit * decided:
        outcome, reason = "forfeited", f"{forced} of {decided} {FORCED}"
    if outcome == "forfeited":
        value = worst_of(metric)
    elif record.outcome == "forfeited" and FORCED not in record.reason:
        value = None  # another's error broke it off
    usage = sum((_usage(seat) for seat in own), NO_USAGE)
    return replace(
        record,
        entrant=entrant, outcome=outcome, reason=reason if outcome in ("forfeited", "limit") else "", value=value,
        metrics=metrics, steps=decided, reward=_mean([seat.reward for seat in own]),
        achievements=tuple(sorted({name for seat in own for name in seat.achievements})), seats=seats,
        calls=usage.calls, prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens,
        cost=usage.cost, asked_again=record.asked_again if entrant == record.entrant else 0,
        unanswered=record.unanswered if entrant == record.entrant else 0,
    )  # fmt: skip


def _outcome(record: EpisodeRecord, entrant: str) -> Outcome:
    """Return how a game ended for an entrant: forfeited only if that is its own doing."""
    if record.outcome != "forfeited" or record.entrant == entrant:
        return record.outcome
    return "finished" if all(seat.done for seat in record.seats) else "step_limit"


def _usage(seat: SeatRecord) -> Usage:
    return NO_USAGE if seat.usage is None else Usage(*seat.usage)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
