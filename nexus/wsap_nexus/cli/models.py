"""`wsap models`: lists the available language models and what they can do."""

from __future__ import annotations

import asyncio
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import FiniteRange, json_option
from wsap_core.untrusted import single_line
from wsap_nexus.cli.model_options import VARIABLE, default_model

if TYPE_CHECKING:
    from wsap_core.seams.listing import Listing, ModelInfo
    from wsap_core.seams.model import Abilities
    from wsap_llm.backends.fitting import Fit

WAIT = 3.0
"""The default of `--timeout`, in seconds."""

NARROW = 80
"""Columns below which each model is printed on several lines."""


@click.command(cls=GroupedCommand, examples=("wsap models", "wsap models --timeout 10 --json"))
@json_option
@click.option(
    "--timeout", "wait", type=FiniteRange(0.1, 120), default=WAIT, show_default=True,
    help="Seconds to wait for each provider.",
)  # fmt: skip
def models(*, as_json: bool, wait: float) -> None:
    """List the available language models and what they can do.

    An unreachable provider is listed with the reason. An asterisk marks the default model, which the
    environment variable WSAP_MODEL names.

    NUM_CTX is the suggested context of a model on your own machine, within the model's limit and the
    available memory; set it with --model-option num_ctx=N.
    """
    from wsap_core.host import PluginHost
    from wsap_llm.backends.pool import list_models

    listings = asyncio.run(list_models(PluginHost.discovered(), within=wait))
    if as_json:
        from wsap_core.cli.output import print_json

        fits = _fits(listings)
        print_json({"default": default_model(), "providers": [_provider(listing, fits) for listing in listings]})
    else:
        _print(listings)


def _fits(listings: Sequence[Listing]) -> Mapping[str, Fit]:
    from wsap_llm.backends.fitting import fit, memory_here
    from wsap_llm.backends.places import is_here

    here = memory_here()
    return {
        info.address: fit(info, here if is_here(listing.place) else None)
        for listing in listings
        for info in listing.models
        if info.sizable
    }


def _provider(listing: Listing, fits: Mapping[str, Fit]) -> dict[str, Any]:
    default = default_model()
    return {
        "provider": listing.provider,
        "place": listing.place,
        "reachable": listing.reachable,
        "reason": listing.reason,
        "note": listing.note,
        "models": [
            {
                "model": info.address,
                "default": info.address == default,
                "context": info.abilities.context,
                "suggested": {"num_ctx": fit.tokens, "reason": fit.reason} if (fit := fits.get(info.address)) else None,
                "abilities": _abilities(info.abilities),
                "tools": info.tools,
                "bytes": info.weights,
                "context_bytes": info.context_bytes,
                "detail": info.detail,
            }
            for info in listing.models
        ],
    }


def _abilities(abilities: Abilities) -> list[str]:
    names = ("json_schema", "regex", "prefill", "resume", "images", "thinking")
    return [name for name in names if getattr(abilities, name)]


def _print(listings: Sequence[Listing]) -> None:
    from wsap_core.cli.output import at_terminal, print_table

    default, fits = default_model(), _fits(listings)
    rows: list[tuple[str, str, str, str, str, str]] = []
    notes: list[tuple[str, ...]] = []
    for listing in listings:
        for info in listing.models:
            fit = fits.get(info.address)
            rows.append(_row(info, fit, default=info.address == default))
            notes.append((f"num_ctx: {fit.reason}",) if fit is not None and fit.reason else ())
    if rows:
        if at_terminal() and shutil.get_terminal_size().columns < NARROW:
            told = [
                (f"context {context}, num_ctx {size}, {detail}", f"can: {can}", *more)
                for (_, _, context, size, detail, can), more in zip(rows, notes, strict=True)
            ]
            print_table(("", "MODEL"), [row[:2] for row in rows], notes=told)
        else:
            print_table(("", "MODEL", "CONTEXT", "NUM_CTX", "DETAIL", "CAN"), rows, notes=notes)
    for listing in listings:
        place = f" at {single_line(listing.place)}" if listing.place else ""
        if not listing.reachable:
            _say(f"{listing.provider}: not reachable{place}: {single_line(listing.reason)}")
        elif not listing.models and not listing.note:
            _say(f"{listing.provider}: reachable{place}, but has no models.")
        if listing.note:
            _say(f"{listing.provider}: {single_line(listing.note)}")
    if default is not None:
        listed = any(info.address == default for listing in listings for info in listing.models)
        _say(f"Default: {single_line(default)}, from {VARIABLE}{'' if listed else ', which is not listed now'}.")


def _say(sentence: str) -> None:
    """Print a sentence, wrapped to the width of a terminal."""
    for line in textwrap.wrap(sentence, shutil.get_terminal_size().columns) if sys.stdout.isatty() else [sentence]:
        click.echo(line)


def _row(info: ModelInfo, fit: Fit | None, *, default: bool) -> tuple[str, str, str, str, str, str]:
    context = info.abilities.context
    can = [name.replace("_", " ") for name in _abilities(info.abilities)] + ["tools"] * info.tools
    return (
        "*" if default else "",
        info.address,
        "-" if context is None else str(context),
        "-" if fit is None else str(fit.tokens),
        info.detail or "-",
        ", ".join(can) or "-",
    )
