"""The model usage of a run, in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from wsap_core.seams.agent import NO_USAGE, Usage

if TYPE_CHECKING:
    from wsap_nexus.runs.record.tally import SeatTally
    from wsap_nexus.runs.run import Run

# Any, in this module: recorded summaries.

ENOUGH = 10
"""Decisions after which a rate is shown: the first prompts are shorter than later ones."""


@dataclass(frozen=True)
class Spent:
    """The model usage of a run so far, over all seats."""

    usage: Usage = NO_USAGE
    decisions: int = 0
    """All decisions, also without a model; further steps of a decision for several do not count."""
    repaired: int = 0
    forced: int = 0
    tokens_per_second: float | None = None
    """Reply tokens per second; None if not measured."""
    retries: int = 0
    """Retries of calls after a wait of more than two seconds."""
    progress: float | None = None
    """The fraction of the run that is complete, from 0 to 1; None if its length is unknown."""


def spending_of(summary: Mapping[str, Any], *, planned: int | None = None) -> Spent:
    """Return the usage in a summary from `RunSummary.to_json`; `planned`: planned steps of all seats, if known."""
    usage, decisions = summary.get("usage") or {}, summary.get("decisions") or {}
    return Spent(
        Usage(
            int(usage.get("calls") or 0),
            int(usage.get("prompt_tokens") or 0),
            int(usage.get("completion_tokens") or 0),
            usage.get("cost"),
        ),
        int(decisions.get("total") or 0) - int(decisions.get("continued") or 0),
        int(decisions.get("repaired") or 0),
        int(decisions.get("forced") or 0),
        usage.get("tokens_per_second"),
        int(usage.get("retries") or 0),
        int(summary.get("steps") or 0) / planned if planned else None,
    )


def spending_so_far(run: Run) -> Spent:
    """Return the usage of a run so far."""
    have, planned = sum(tally.steps for tally in run.tallies), planned_steps(run)
    if not planned:
        have, planned = max((len(tally.episodes) for tally in run.tallies), default=0), run.plan.episodes
    seats = spending_of_seats(run.tallies)
    return replace(
        seats,
        usage=seats.usage + run.world_journal.usage.usage,
        tokens_per_second=run.meter.tokens_per_second,
        retries=run.meter.retries,
        progress=have / planned if planned else None,
    )


def spending_of_seats(seats: Sequence[SeatTally]) -> Spent:
    """Return the usage of seats from their totals."""
    return Spent(
        sum((seat.usage for seat in seats), NO_USAGE),
        sum(seat.steps - seat.continued for seat in seats),
        sum(seat.repaired for seat in seats),
        sum(seat.forced for seat in seats),
    )


def planned_steps(run: Run) -> int | None:
    """Return the planned steps of all seats of a run together; None if unknown."""
    return None if run.plan.steps is None else run.plan.steps * len(run.plan.seats)


def parts(spending: Spent) -> list[str]:
    """Return the figures, most important first; none if no model was called."""
    usage = spending.usage
    if not usage.calls:
        return []
    found = [
        f"{usage.calls} call{'' if usage.calls == 1 else 's'}",
        f"{count(usage.prompt_tokens)} tokens in, {count(usage.completion_tokens)} out",
        money(usage.cost),
    ]
    if spending.decisions:
        found.append(
            f"{share(spending.repaired, spending.decisions)} repaired, "
            f"{share(spending.forced, spending.decisions)} forced"
        )
    if spending.retries:
        found.append(f"{spending.retries} retr{'y' if spending.retries == 1 else 'ies'} after a wait")
    if spending.tokens_per_second is not None:
        found.append(f"{speed(spending.tokens_per_second)} tokens/s")
    return found


def brief(spending: Spent) -> list[str]:
    """Return the figures for a narrow line; "fixed" are repaired and forced decisions together."""
    usage = spending.usage
    if not usage.calls:
        return []
    tokens = f"{count(usage.prompt_tokens)}+{count(usage.completion_tokens)} tok"
    fixed = f"{share(spending.repaired + spending.forced, spending.decisions)} fixed" if spending.decisions else ""
    return [f"{usage.calls} call{'' if usage.calls == 1 else 's'}", tokens, money(usage.cost), *filter(None, [fixed])]


def rate(spending: Spent) -> list[str]:
    """Return the usage per decision, and of the whole run at this rate; empty before `ENOUGH` decisions."""
    usage, decisions, progress = spending.usage, spending.decisions, spending.progress
    if not usage.calls or decisions < ENOUGH:
        return []
    found = [f"a decision takes {_taken(usage, 1 / decisions)}"]
    if progress is not None and 0 < progress < 1:
        found.append(f"at this rate the run takes {_taken(usage, 1 / progress)}")
    return found


def _taken(usage: Usage, factor: float) -> str:
    calls = usage.calls * factor
    tokens = round((usage.prompt_tokens + usage.completion_tokens) * factor)
    cost = None if usage.cost is None else usage.cost * factor
    shown = f"{calls:.2g}" if calls < 10 else f"{calls:.0f}"
    return f"{shown} call{'' if shown == '1' else 's'}, {count(tokens)} tokens, {money(cost)}"


def packed(words: Iterable[str], width: int) -> list[str]:
    """Return figures, separated by commas, in lines of that width; longer figures are cut."""
    lines: list[str] = []
    for word in (piece for figure in words for piece in figure.split(", ")):
        if lines and len(lines[-1]) + 2 + len(word) <= width:
            lines[-1] += f", {word}"
        else:
            lines.append(word[:width])
    return lines


def share(some: int, all_of_them: int) -> str:
    """Return a percentage, which is 0% only for none and 100% only for all."""
    percent = 100 * some / all_of_them
    if some and percent < 1:
        return "<1%"
    if some < all_of_them and percent > 99:
        return ">99%"
    return f"{percent:.0f}%"


def speed(tokens: float) -> str:
    """Return tokens per second with three digits: 3.25, 31.4, 15100."""
    return f"{tokens:.3g}" if tokens < 1000 else f"{tokens:.0f}"


def money(cost: float | None) -> str:
    """Return an amount of US dollars; "cost unknown" for None."""
    if cost is None:
        return "cost unknown"
    return f"${cost:.2f}" if cost >= 1 or not cost else f"${cost:.4f}" if cost >= 0.0001 else "<$0.0001"


def count(tokens: int) -> str:
    """Return a number of tokens in a readable unit: 950, 12.3k, 4.56M."""
    if tokens < 10_000:
        return str(tokens)
    return f"{tokens / 1000:.1f}k" if tokens < 999_950 else f"{tokens / 1e6:.2f}M"
