"""What is typed about the models of a tournament: limits, prices, and whether to play after the estimate."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wsap_core.errors import UsageError

if TYPE_CHECKING:
    from wsap_llm.wrappers import Price
    from wsap_tossim.tournament.forecast import Forecast
    from wsap_tossim.tournament.plan import Settings
    from wsap_tossim.tournament.spending import Limits

__all__ = ["Approval", "approved", "prices_of"]


@dataclass(frozen=True)
class Approval:
    """What came of the estimate."""

    go: bool
    """Whether to play."""
    prices: Mapping[str, Price]
    """Address -> what a model costs, as far as it is known."""


def prices_of(given: Sequence[str], settings: Settings) -> dict[str, Price]:
    """Return prices from words such as `openai/some-model=0.15/0.60`.

    Raises:
        UsageError: one is no such word, is of a model that does not take part, or is given twice.
    """
    from wsap_llm.wrappers import Price  # deferred for weight

    field = {e.address for e in settings.entrants if e.kind == "model"}
    found: dict[str, Price] = {}
    for word in given:
        address, equals, amounts = word.rpartition("=")
        low, slash, high = amounts.partition("/")
        try:
            price = Price(float(low), float(high))
        except ValueError:
            price = Price(-1, -1)
        if not equals or not slash or not (0 <= price.prompt < 1e9 and 0 <= price.completion < 1e9):
            raise UsageError(
                "--price takes ADDRESS=IN/OUT, US dollars for a million tokens of prompts and of replies, "
                f"not {word[:80]!r}."
            )
        if address not in field:
            raise UsageError(f"--price is of {address[:80]!r}, and no entrant is that model.")
        if address in found:
            raise UsageError(f"--price gives what {address[:80]!r} costs twice.")
        found[address] = price
    return found


def approved(
    folder: Path,
    settings: Settings,
    games: int,
    limits: Limits,
    prices: Mapping[str, Price],
    *,
    only: bool,
    yes: bool,
    as_json: bool,
) -> Approval:
    """Say what the models will take, and return whether to play.

    From 100 calls or a dollar on it is said on standard error. Only a person at a terminal is asked, and only from
    a dollar on, with neither `--yes` nor a limit in money.

    Args:
        folder: of the tournament; it may not be there yet, and is not made.
        settings: of the tournament.
        games: how many there are to be in all.
        limits: what was typed.
        prices: what was typed.
        only: say it on standard output, and play nothing.
        yes: ask nobody.
        as_json: leave standard output alone, or say it as JSON.

    Raises:
        UsageError: a limit in money can't be kept; or only an estimate is wanted, and no model takes part.
        WsapError: a model can't be asked with these options, or the folder is of another tournament.
    """
    from wsap_tossim.tournament.forecast import DEAR, LONG, foretell
    from wsap_tossim.tournament.ledger import SETTINGS, Ledger
    from wsap_tossim.tournament.plan import fixture

    if not any(e.kind == "model" for e in settings.entrants):
        if only:
            raise UsageError("--estimate is about what language models take, and no entrant is one.")
        return Approval(True, prices)
    lines = []
    if os.path.exists(folder / SETTINGS):  # noqa: PTH110 - it never raises; whether it can be used is said later
        with Ledger(folder, settings) as ledger:
            lines = ledger.lines()
    played = {line["game"] for line in lines}
    missing = [n for n in range(games) if n not in played and fixture(settings, n).has_models(settings.entrants)]
    if not missing:
        if only:
            click.echo("No game with a model is left to play, so nothing would be asked.")
        return Approval(not only, prices)
    found = foretell(settings, missing, lines, prices)
    if limits.cost is not None and found.unpriced:
        model = found.unpriced[0]
        raise UsageError(
            f"--max-cost can't be kept: what {model} costs is not known; say it with --price {model}=IN/OUT, in US "
            "dollars for a million tokens, or limit calls or tokens."
        )
    said = [*found.lines(), *_held(found, limits)]
    total = found.total
    if only:
        click.echo(json.dumps(found.to_json(), indent=2) if as_json else "\n".join(said))
        return Approval(False, found.prices)
    dear = total.cost is not None and total.cost >= DEAR
    if total.calls >= LONG or dear:
        click.echo("\n".join(said), err=True)
    person = sys.stdin.isatty() and sys.stderr.isatty()
    ask = dear and person and not yes and limits.cost is None
    go = not ask or click.confirm(f"It would cost about ${total.cost:.2f}. Play?", err=True)
    if not go:
        click.echo("Nothing was played.", err=True)
    return Approval(go, found.prices)


def _held(found: Forecast, limits: Limits) -> list[str]:
    """Return which limits would end it before all games are played, in sentences."""
    total = found.total
    takes = {
        "calls": (limits.calls, total.calls),
        "tokens": (limits.tokens, total.prompt_tokens + total.completion_tokens),
        "cost": (limits.cost, total.cost),
    }
    return [
        f"--max-{name} {limit:g} may end it before all games are played."
        for name, (limit, amount) in takes.items()
        if limit is not None and amount is not None and amount > limit
    ]
