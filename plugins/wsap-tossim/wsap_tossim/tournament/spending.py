"""Model usage of a tournament, in total and by entrant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wsap_core.seams.agent import NO_USAGE, Usage

if TYPE_CHECKING:
    from wsap_tossim.tournament.ledger import Line
    from wsap_tossim.tournament.plan import Settings

__all__ = [
    "SPENT", "dollars", "packed", "spent_by", "spent_by_entrant", "spent_on", "spent_on_seats", "usage_by_seat",
    "words",
]  # fmt: skip

SPENT = ("calls", "prompt_tokens", "completion_tokens", "cost")
"""Counted quantities, in the order of a line of games.jsonl."""


def packed(usage: Usage) -> list[Any]:
    """Return usage as a row to store."""
    return [usage.calls, usage.prompt_tokens, usage.completion_tokens, usage.cost]


def unpacked(row: Sequence[Any]) -> Usage:
    """Return usage from a stored row."""
    return Usage(int(row[0]), int(row[1]), int(row[2]), None if row[3] is None else float(row[3]))


def usage_by_seat(events: Iterable[Mapping[str, Any]]) -> dict[str, Usage]:
    """Return the usage of each seat's model in a recorded run, finished or not, from its calls."""
    found: dict[str, Usage] = {}
    for event in events:
        if event["kind"] == "call":
            seat = str(event["seat"])
            found[seat] = found.get(seat, NO_USAGE) + Usage(**event["body"]["reply"]["finish"]["usage"])
    return found


def spent_on_seats(line: Line) -> list[tuple[Usage, Usage] | None]:
    """Return each seat's model usage for playing and for beliefs; None without a model."""
    none: list[Any] = [None] * len(line["seats"])
    usage, asked = line.get("usage") or none, line.get("asked") or none
    return [
        None if game is None else (unpacked(game), NO_USAGE if beliefs is None else unpacked(beliefs))
        for game, beliefs in zip(usage, asked, strict=True)
    ]


def spent_by(entrant: int, lines: Iterable[Line]) -> list[tuple[Usage, Usage]]:
    """Return the same for each seat of one entrant in all games, if it is a model."""
    return [
        pair
        for line in lines
        for who, pair in zip(line["seats"], spent_on_seats(line), strict=True)
        if who == entrant and pair is not None
    ]


def spent_on(lines: Iterable[Line]) -> Usage:
    """Return the total usage of games."""
    seats = [pair for line in lines for pair in spent_on_seats(line) if pair is not None]
    return sum((usage for pair in seats for usage in pair), NO_USAGE)


def spent_by_entrant(
    settings: Settings, lines: Sequence[Line], unfinished: Mapping[int, tuple[Usage, Usage]]
) -> list[dict[str, Any]]:
    """Return a row for each model: its seats in finished games, and its usage in all games.

    `unfinished` is the usage of entrants in unfinished games, for playing and for beliefs.
    """
    rows = []
    for number, entrant in enumerate(settings.entrants):
        if entrant.kind != "model":
            continue
        seats = spent_by(number, lines)
        playing, asked = unfinished.get(number, (NO_USAGE, NO_USAGE))
        asked = sum((beliefs for _, beliefs in seats), asked)
        whole = sum((game for game, _ in seats), playing) + asked
        rows.append(
            {
                "entrant": entrant.label,
                "model": entrant.address,
                "seats": len(seats),
                **{name: _rounded(getattr(whole, name)) for name in SPENT},
                **{f"belief_{name}": _rounded(getattr(asked, name)) for name in SPENT},
            }
        )
    return rows


def _rounded(value: float | None) -> float | None:
    return round(value, 9) if isinstance(value, float) else value


def dollars(cost: float) -> str:
    """Format an amount, with more decimals below one dollar."""
    return f"${cost:.2f}" if cost >= 1 else f"${cost:.4f}"


def words(usage: Usage) -> str:
    """Format usage: calls, tokens, cost."""
    cost = "unknown cost" if usage.cost is None else dollars(usage.cost)
    return f"{usage.calls} calls, {usage.prompt_tokens} tokens in, {usage.completion_tokens} out, {cost}"
