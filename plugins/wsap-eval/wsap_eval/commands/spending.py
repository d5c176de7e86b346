"""Parses limits and prices from the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wsap_core.errors import UsageError
from wsap_core.seams.model import Price
from wsap_core.untrusted import single_line
from wsap_eval.planning.due import PILOT, CellLimits
from wsap_eval.planning.suite import EpisodeLimits
from wsap_llm.kit import BudgetLimits, Budgets, read_price

_CELL, _EPISODE = "cell.", "episode."
MOST_SEEDS = 10_000
"""Seeds after which `--until` gives up if no other number is given."""


def all_limits(limits: Sequence[str]) -> BudgetLimits:
    """Return the limits of all episodes together from `--limit`. Raises UsageError if one is invalid."""
    return _scoped([word for word in limits if not word.startswith((_CELL, _EPISODE))], "")


def limits_of(words: Sequence[str]) -> BudgetLimits:
    """Return limits of the form `KIND=N`. Raises UsageError if one is invalid."""
    return Budgets.parse(words, scopes=("run",)).run


def episode_limits(limits: Sequence[str]) -> Mapping[str, float]:
    """Return kind -> limit of each episode from `--limit`. Raises UsageError if one is invalid."""
    found: dict[str, float] = {}
    rest = []
    for word in (word.removeprefix(_EPISODE) for word in limits if word.startswith(_EPISODE)):
        kind, equals, amount = word.partition("=")
        if not equals or kind.strip() not in EpisodeLimits.model_fields:
            kinds = "|".join(EpisodeLimits.model_fields)
            raise UsageError(
                f"--limit requires episode.[{kinds}]=N, such as episode.seconds=60, not {single_line(word)[:80]!r}."
            )
        if kind.strip() != "seconds":
            rest.append(word)
            continue
        if "seconds" in found:
            raise UsageError("--limit sets episode.seconds twice.")
        found["seconds"] = _above_zero(amount)
        if not found["seconds"]:
            raise UsageError(f"--limit episode.seconds must be a number above 0, not {single_line(amount)[:20]!r}.")
    own = _scoped(rest, _EPISODE)
    given = {"tokens": own.tokens, "calls": own.calls, "cost": own.cost}
    return found | {kind: most for kind, most in given.items() if most is not None}


def cell_limits(limits: Sequence[str], until: str | None, *, pilot: bool) -> CellLimits:
    """Return the limits of each cell from `--limit` and `--until`. Raises UsageError if one is invalid."""
    words = [word.removeprefix(_CELL) for word in limits if word.startswith(_CELL)]
    own = _scoped(words, _CELL)
    return CellLimits(own.calls, own.tokens, own.cost, _half_width(until), PILOT if pilot else None)


def _scoped(words: Sequence[str], scope: str) -> BudgetLimits:
    """Return limits like `limits_of`, whose errors name a limit as it was typed."""
    try:
        return limits_of(words)
    except UsageError as error:
        raise UsageError(str(error).replace("--limit run.", f"--limit {scope}")) from None


def _half_width(until: str | None) -> float | None:
    if until is None:
        return None
    name, _, width = until.partition("=")
    found = _above_zero(width)
    if name.strip() != "half-width" or not found:
        raise UsageError(f"--until takes half-width=X, such as half-width=0.05, not {single_line(until)[:60]!r}.")
    return found


def _above_zero(word: str) -> float:
    """Return a finite number above 0; 0 if the word is none."""
    try:
        number = float(word)
    except ValueError:
        return 0.0
    return number if 0 < number < float("inf") else 0.0


def prices_of(words: Sequence[str]) -> Mapping[str, Price]:
    """Return address -> price. Raises UsageError if one is invalid."""
    return dict(map(read_price, words))
