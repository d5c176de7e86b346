"""Parse the limits and prices of a tournament's models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from wsap_core.errors import UsageError

if TYPE_CHECKING:
    from wsap_llm.kit import BudgetLimits, Price
    from wsap_tossim.tournament.plan import Settings

__all__ = ["limits_of", "prices_of"]


def prices_of(given: Sequence[str], settings: Settings) -> dict[str, Price]:
    """Return prices from words such as `openai/some-model=0.15/0.60`.

    Raises:
        UsageError: one is malformed, names a model that does not take part, or is given twice.
    """
    from wsap_llm.kit import read_price  # deferred for weight

    field = {e.address for e in settings.entrants if e.kind == "model"}
    found: dict[str, Price] = {}
    for word in given:
        address, price = read_price(word)
        if address not in field:
            raise UsageError(f"--price names {address[:80]!r}, but no entrant is that model.")
        if address in found:
            raise UsageError(f"--price gives the price of {address[:80]!r} twice.")
        found[address] = price
    return found


def limits_of(words: Sequence[str], settings: Settings, prices: Mapping[str, Price]) -> BudgetLimits:
    """Return the limits for all models of a tournament together.

    Raises:
        UsageError: a limit is malformed, or one in US dollars needs the unknown price of a model.
    """
    from wsap_core.host import PluginHost  # deferred for weight, like the next one
    from wsap_llm.kit import ModelPool

    asked = [entrant.address for entrant in settings.entrants if entrant.kind == "model"]
    stated_by = "--price {address}=IN/OUT, in US dollars per million tokens"
    return ModelPool(PluginHost.discovered(), prices=prices).run_limits(words, asked, stated_by)
