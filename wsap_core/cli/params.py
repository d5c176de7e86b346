"""Option types that several commands share, refusal of options without effect, and completion of names."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import click

from wsap_core.untrusted import single_line

SEED_LIMIT = 2**31 - 1
"""The same as `wsap_core.seams.context.SEED_LIMIT`, without its imports; a test compares them."""


class WholeNumber(click.ParamType):  # type: ignore[type-arg]  # older versions of click have no types to choose from
    """A whole number from `low` to `high`, inclusive."""

    name = "integer"

    def __init__(self, low: int, high: int | None = None) -> None:
        self.low = low
        self.high = high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; `BadParameter` names the valid range."""
        try:
            # int() accepts "1_000" and digits of other scripts; a seed should have one notation only.
            number = value if isinstance(value, int) else int(value) if _is_plain(value) else None
        except ValueError:
            number = None  # thousands of digits
        if number is not None and self.low <= number and (self.high is None or number <= self.high):
            return number
        span = f"of at least {self.low}" if self.high is None else f"from {self.low} to {self.high}"
        raise click.BadParameter(f"{single_line(value)[:40]!r} is not a whole number {span}.", ctx, param)


def _is_plain(value: str) -> bool:
    return value.isascii() and value.removeprefix("-").isdigit()


class FiniteRange(click.FloatRange):
    """A number within limits, as click's; not `nan`, which every comparison lets through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number that was typed."""
        try:
            number = super().convert(value, param, ctx)
            if math.isfinite(number):
                return number
        except click.BadParameter:
            pass
        low = "" if self.min is None else f" above {self.min:g}" if self.min_open else f" from {self.min:g}"
        high = "" if self.max is None else f" to {self.max:g}"
        raise click.BadParameter(f"{single_line(value)[:40]!r} is not a number{low}{high}.", ctx, param)


SEED = WholeNumber(0, SEED_LIMIT)
"""`--seed`."""

STEPS = WholeNumber(1, 10**12)
"""`--steps` and other counts of at least one, with room to spare below what a database can count."""

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
"""Adds `--json`."""


def pairs(option: str, given: Iterable[str], *, example: str = "KEY=VALUE") -> dict[str, str]:
    """Return the values of a repeatable option KEY=VALUE; `UsageError` for another form or a repeated key."""
    from wsap_core.errors import UsageError  # deferred for weight

    found: dict[str, str] = {}
    for text in given:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key or not value:
            raise UsageError(f"{option} takes {example}, not {single_line(text)[:60]!r}.")
        if key in found:
            raise UsageError(f"{option} names {single_line(key)[:60]!r} twice.")
        found[key] = value
    return found


def typed_pairs(option: str, given: Iterable[str]) -> dict[str, Any]:
    """Return the result of `pairs`, with values that are JSON decoded."""
    from wsap_core.protocol.values import json_or_text  # deferred for weight

    return {key: json_or_text(text) for key, text in pairs(option, given).items()}


def refuse_given(why: str, *names: str) -> None:
    """Raise `UsageError` if one of these options of the current command was typed; `why` is, say, "with --json"."""
    from wsap_core.errors import UsageError  # deferred for weight

    if label := first_given(*names):
        raise UsageError(f"{label} has no effect {why}; leave it out.")


def first_given(*names: str) -> str:
    """Return the first of these parameters of the current command that was typed, as in the help; "" for none."""
    context = click.get_current_context()
    for name in names:
        if context.get_parameter_source(name) not in (click.core.ParameterSource.DEFAULT, None):
            shown = next(p for p in context.command.params if p.name == name).opts[0]
            return shown if shown.startswith("-") else shown.upper()
    return ""


def complete_games(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Return the installed games whose names start with `incomplete`."""
    from wsap_core.cli.cache import Catalogue  # deferred for weight

    return _completions(Catalogue.current().games, incomplete)


def complete_agents(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    """Return the installed agents whose names start with `incomplete`, which may have the form `SEAT=NAME`."""
    from wsap_core.cli.cache import Catalogue

    begun = incomplete.rpartition("=")[2]
    return _completions(Catalogue.current().agents, begun, before=incomplete.removesuffix(begun))


def _completions(rows: Iterable[Any], incomplete: str, *, before: str = "") -> list[Any]:
    from click.shell_completion import CompletionItem

    names = {row["name"]: row["summary"] for row in rows if row["name"].startswith(incomplete)}
    return [CompletionItem(before + name, help=summary) for name, summary in names.items()]
