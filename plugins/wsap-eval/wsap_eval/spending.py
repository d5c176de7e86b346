"""Parses limits and prices from the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wsap_core.errors import UsageError
from wsap_core.seams.model import Price
from wsap_core.untrusted import single_line
from wsap_eval.due import PILOT, CellLimits
from wsap_llm.kit import BudgetLimits, Budgets, read_price

_CELL = "cell."
MOST_SEEDS = 10_000
"""Seeds after which `--until` gives up if no other number is given."""


def all_limits(limits: Sequence[str]) -> BudgetLimits:
    """Return the limits of all episodes together from `--limit`. Raises UsageError if one is invalid."""
    return limits_of([word for word in limits if not word.startswith(_CELL)])


def limits_of(words: Sequence[str]) -> BudgetLimits:
    """Return limits of the form `KIND=N`. Raises UsageError if one is invalid."""
    return Budgets.parse(words, scopes=("run",)).run


def cell_limits(limits: Sequence[str], until: str | None, *, pilot: bool) -> CellLimits:
    """Return the limits of each cell from `--limit` and `--until`. Raises UsageError if one is invalid."""
    words = [word.removeprefix(_CELL) for word in limits if word.startswith(_CELL)]
    own = limits_of(words)
    return CellLimits(own.calls, own.tokens, own.cost, _half_width(until), PILOT if pilot else None)


def _half_width(until: str | None) -> float | None:
    if until is None:
        return None
    name, _, width = until.partition("=")
    try:
        found = float(width)
    except ValueError:
        found = 0.0
    if name.strip() != "half-width" or not 0 < found < float("inf"):
        raise UsageError(f"--until takes half-width=X, such as half-width=0.05, not {single_line(until)[:60]!r}.")
    return found


def prices_of(words: Sequence[str]) -> Mapping[str, Price]:
    """Return address -> price. Raises UsageError if one is invalid."""
    return dict(map(read_price, words))
