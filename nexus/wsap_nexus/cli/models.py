"""`wsap models`: the language models that can be asked, and what they can do."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from wsap_nexus.cli.common import json_option

if TYPE_CHECKING:
    from wsap_core.llm.listing import Listing, ModelInfo
    from wsap_core.llm.types import Abilities

WAIT = 3.0
"""Seconds that each provider has to answer, unless `--timeout` says otherwise."""


@click.command()
@json_option
@click.option(
    "--timeout", "wait", type=click.FloatRange(0.1, 120), default=WAIT, show_default=True,
    help="Seconds that each provider has to answer.",
)  # fmt: skip
def models(*, as_json: bool, wait: float) -> None:
    """List the language models that can be asked, and what they can do.

    What is not known of a model is not claimed. Where a provider can't be reached, it says why.
    """
    from wsap_core.cli.output import print_json
    from wsap_core.host import PluginHost
    from wsap_nexus.backends.registry import list_models

    listings = asyncio.run(list_models(PluginHost.discovered(), within=wait))
    if as_json:
        print_json({"providers": [_provider(listing) for listing in listings]})
    else:
        _print(listings)


def _provider(listing: Listing) -> dict[str, Any]:
    return {
        "provider": listing.provider,
        "place": listing.place,
        "reachable": listing.reachable,
        "reason": listing.reason,
        "note": listing.note,
        "models": [
            {
                "model": info.address,
                "context": info.abilities.context,
                "abilities": _abilities(info.abilities),
                "detail": info.detail,
            }
            for info in listing.models
        ],
    }


def _abilities(abilities: Abilities) -> list[str]:
    """Return what a model can do, by the names of the fields."""
    names = ("json_schema", "regex", "prefill", "resume", "images", "thinking")
    return [name for name in names if getattr(abilities, name)]


def _print(listings: list[Listing]) -> None:
    from wsap_core.cli.output import print_table
    from wsap_core.untrusted import one_line

    rows = [_row(info) for listing in listings for info in listing.models]
    if rows:
        print_table(("MODEL", "CONTEXT", "CAN", "DETAIL"), rows)
    for listing in listings:
        place = f" at {one_line(listing.place)}" if listing.place else ""
        if not listing.reachable:
            click.echo(f"{listing.provider}: not reachable{place}: {one_line(listing.reason)}")
        elif not listing.models and not listing.note:
            click.echo(f"{listing.provider}: reachable{place}, and has no models.")
        if listing.note:
            click.echo(f"{listing.provider}: {one_line(listing.note)}")


def _row(info: ModelInfo) -> tuple[str, str, str, str]:
    context = info.abilities.context
    return (
        info.address,
        "-" if context is None else str(context),
        ", ".join(name.replace("_", " ") for name in _abilities(info.abilities)) or "-",
        info.detail or "-",
    )
