"""`wsap models`: the language models that can be asked, what they can do, and which one goes without saying."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import textwrap
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from wsap_core.untrusted import one_line
from wsap_nexus.cli.common import json_option
from wsap_nexus.models import remembered

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_core.seams.model import Abilities, Listing, ModelInfo
    from wsap_llm.backends.fitting import Fit
    from wsap_nexus.models.prompt_size import PromptSize
    from wsap_nexus.models.remembered import Remembered

WAIT = 3.0
"""Seconds that each provider has to answer, unless `--timeout` says otherwise."""

NARROW = 80
"""Columns below which each model gets a line of its own, and what is told of it others."""

GAME = "crafter"
"""The game whose prompts a suggested context is to hold, where it is installed and no other is named."""


@click.group(invoke_without_command=True)
@json_option
@click.option(
    "--timeout", "wait", type=click.FloatRange(0.1, 120), default=WAIT, show_default=True,
    help="Seconds that each provider has to answer.",
)  # fmt: skip
@click.option("--game", metavar="GAME", help="The game that a suggested context is for; crafter if not given.")
@click.pass_context
def models(context: click.Context, *, as_json: bool, wait: float, game: str | None) -> None:
    """List the language models that can be asked, and what they can do.

    What is not known of a model is not claimed. Where a provider can't be reached, it says why. An
    asterisk marks the model that is meant where none is named: the one used last, or the one that
    was chosen with `use`.

    NUM_CTX is the context that is suggested for a model of one's own machine: what the game's
    prompts need at their longest, as far as the model was made for it and its memory allows.
    """
    if context.invoked_subcommand is not None:
        return
    from wsap_core.host import PluginHost
    from wsap_llm.backends.registry import list_models

    host = PluginHost.discovered()
    listings = asyncio.run(list_models(host, within=wait))
    sized = any(info.sizable for listing in listings for info in listing.models)
    found = _Found(listings, remembered.read(os.environ), _need(host, game) if sized or game else None)
    if as_json:
        from wsap_core.cli.output import print_json

        print_json(_as_json(found))
    else:
        _print(found)


@models.command("use")
@click.argument("address")
@click.option("--price-in", type=float, help="US dollars for a million tokens of prompt, to be remembered.")
@click.option("--price-out", type=float, help="US dollars for a million tokens of reply, to be remembered.")
def use(*, address: str, price_in: float | None, price_out: float | None) -> None:
    """Choose the model that is meant where none is named.

    ADDRESS is one that `wsap models` lists, or any other. It stays the default until `forget`, or
    until another is chosen; without a choice it is the model that was used last.
    """
    from wsap_core.errors import UsageError
    from wsap_core.host import PluginHost
    from wsap_llm.backends.registry import find_backend

    address = address.strip()
    find_backend(PluginHost.discovered(), address)
    for option, price in (("--price-in", price_in), ("--price-out", price_out)):
        if price is not None and not 0 <= price < 1e9:
            raise UsageError(f"{option} is US dollars for a million tokens, at least 0, not {price:g}.")
    kept = remembered.chosen(remembered.read(os.environ), address, price_in=price_in, price_out=price_out)
    remembered.write(kept, os.environ)
    click.echo(f"{one_line(address)} is the default now; play with it: wsap play crafter --agent llm")


@models.command("forget")
def forget() -> None:
    """Have no default model, until one is used or chosen again."""
    kept = remembered.read(os.environ)
    if kept.default is None and not kept.damage:
        click.echo("There is no default model.")
        return
    remembered.write(remembered.forgotten(kept), os.environ)
    click.echo(f"{one_line(kept.default or 'What could not be read')} is forgotten.")


# --- what was found ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Need:
    """What the prompts of a game need."""

    game: str
    size: PromptSize | None
    reason: str = ""
    """Why it could not be measured."""


@dataclass(frozen=True)
class _Found:
    listings: list[Listing]
    kept: Remembered
    need: _Need | None
    fits: dict[str, Fit] = field(default_factory=dict)

    def __post_init__(self) -> None:
        size = self.need.size if self.need is not None else None
        if size is None:
            return
        from wsap_llm.backends.fitting import fit, is_here, memory_here
        from wsap_nexus.cli.estimate import reply_tokens

        here = memory_here()
        for listing in self.listings:
            memory = here if is_here(listing.place) else None
            for info in listing.models:
                if info.sizable:
                    reply, _ = reply_tokens(self.kept.known(info.address), size)
                    self.fits[info.address] = fit(info, size.whole(round(reply)), size.least, memory)


def _need(host: PluginHost, game: str | None) -> _Need:
    from wsap_core.errors import WsapError
    from wsap_nexus.cli.estimate import measured_prompt

    name = game or game_for_size(host)
    try:
        return _Need(name, measured_prompt(name, host))
    except WsapError as error:
        if game is not None:
            raise
        return _Need(name, None, one_line(error))


def game_for_size(host: PluginHost) -> str:
    """Return the game whose prompts are measured where none is named."""
    names = host.games.names()
    return GAME if GAME in names or not names else names[0]


# --- how it is shown -----------------------------------------------------------------------------


def _as_json(found: _Found) -> dict[str, Any]:
    kept, need = found.kept, found.need
    size = need.size if need is not None else None
    return {
        "default": None if kept.default is None else {
            "model": kept.default, "chosen": kept.chosen, "since": kept.since,
        },
        "prompt": None if need is None or size is None else {
            "game": need.game, "system": size.system, "step": size.turn, "reply": size.reply, "window": size.window,
            "least": size.least,
        },
        "providers": [_provider(listing, found) for listing in found.listings],
    }  # fmt: skip


def _provider(listing: Listing, found: _Found) -> dict[str, Any]:
    return {
        "provider": listing.provider,
        "place": listing.place,
        "reachable": listing.reachable,
        "reason": listing.reason,
        "note": listing.note,
        "models": [
            {
                "model": info.address,
                "default": info.address == found.kept.default,
                "context": info.abilities.context,
                "suggested": _suggested(found.fits.get(info.address)),
                "abilities": _abilities(info.abilities),
                "tools": info.tools,
                "bytes": info.weights,
                "context_bytes": info.context_bytes,
                "detail": info.detail,
            }
            for info in listing.models
        ],
    }


def _suggested(fit: Fit | None) -> dict[str, Any] | None:
    return None if fit is None else {"num_ctx": fit.tokens, "enough": fit.enough, "reason": fit.reason}


def _abilities(abilities: Abilities) -> list[str]:
    """Return what a model can do, by the names of the fields."""
    names = ("json_schema", "regex", "prefill", "resume", "images", "thinking")
    return [name for name in names if getattr(abilities, name)]


def _print(found: _Found) -> None:
    from wsap_core.cli.output import at_terminal, print_table

    rows: list[tuple[str, str, str, str, str, str]] = []
    notes: list[tuple[str, ...]] = []
    for listing in found.listings:
        for info in listing.models:
            fit = found.fits.get(info.address)
            rows.append(_row(info, fit, default=info.address == found.kept.default))
            notes.append((f"num_ctx: {fit.reason}",) if fit is not None and not fit.enough else ())
    if rows:
        if at_terminal() and shutil.get_terminal_size().columns < NARROW:
            told = [
                (f"context {context}, num_ctx {size}, {detail}", f"can: {can}", *more)
                for (_, _, context, size, detail, can), more in zip(rows, notes, strict=True)
            ]
            print_table(("", "MODEL"), [row[:2] for row in rows], notes=told)
        else:
            print_table(("", "MODEL", "CONTEXT", "NUM_CTX", "DETAIL", "CAN"), rows, notes=notes)
    for listing in found.listings:
        place = f" at {one_line(listing.place)}" if listing.place else ""
        if not listing.reachable:
            _say(f"{listing.provider}: not reachable{place}: {one_line(listing.reason)}")
        elif not listing.models and not listing.note:
            _say(f"{listing.provider}: reachable{place}, and has no models.")
        if listing.note:
            _say(f"{listing.provider}: {one_line(listing.note)}")
    _print_need(found)
    if found.kept.damage:
        _say(f"{found.kept.damage} `wsap models forget` writes it anew.")
    if found.kept.default is not None:
        listed = any(info.address == found.kept.default for listing in found.listings for info in listing.models)
        missing = "" if listed else ", which is not listed now"
        _say(f"Default: {one_line(found.kept.default)}, {found.kept.how()}{missing}.")


def _print_need(found: _Found) -> None:
    if found.need is None:
        return
    size, game = found.need.size, one_line(found.need.game)
    if size is None:
        _say(f"No context is suggested: the prompts of {game} could not be measured: {found.need.reason}")
        return
    _say(
        f"NUM_CTX holds {game}'s prompts with {size.window} to {2 * size.window} steps: {size.system} tokens of rules, "
        f"{size.turn} a step, replies, {size.reply} kept free; set it with --model-option num_ctx=N. "
        f"A decision takes {size.least} at least."
    )


def _say(sentence: str) -> None:
    """Print a sentence, broken between words at a terminal."""
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
