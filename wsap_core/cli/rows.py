"""What plugins offer, as rows of JSON-ready data: what the listings print and the cache stores."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypedDict, TypeVar, cast

from wsap_core.host import PluginHost, Registration, Registry
from wsap_core.specs import AdapterSpec

R = TypeVar("R")


class PluginRow(TypedDict):
    """An installed plugin, as `wsap plugins --json` prints it."""

    name: str
    """Its name in the entry-point group; how a user blocks it."""
    distribution: str
    """The package it came with, as pip names it."""
    version: str
    module: str
    status: str
    """"ok", "warning" (works, with a remark), "broken" or "disabled"."""
    reasons: list[str]
    """What is wrong, one sentence each."""
    provides: dict[str, list[str]]
    """Kind ("games", "agents", ...) -> names."""


class OfferRow(TypedDict):
    """What the rows below have in common."""

    name: str
    summary: str
    plugin: str
    """The plugin that offers it, by its name in the entry-point group."""
    distribution: str
    """The package it came with."""
    usable: bool
    """False where several plugins claim the name."""


class OptionRow(TypedDict):
    """An option that a game or an agent takes."""

    name: str
    summary: str
    default: str
    """What holds where it is not given; empty where nothing does."""
    values: str
    """What may be given; empty for any text."""


class GameRow(OfferRow):
    """An installed game, as `wsap games --json` prints it."""

    title: str
    """Its name for people."""
    seats: list[int]
    """Fewest and most."""
    timing: str
    abilities: list[str]
    default_agent: str
    scores: list[str]
    """The metrics by which it measures play."""
    achievements: int
    """How many its catalogue has."""
    genre: str
    dimensions: str
    persistent: bool
    family: str
    """The option that is NAME in `game:NAME`; empty for a game that is one."""
    options: list[OptionRow]


class AgentRow(OfferRow):
    """An installed agent, as `wsap agents --json` prints it."""

    games: list[str]
    """The games it knows how to play; empty for any."""
    abilities: list[str]
    interactive: bool
    """True if it needs a person at the terminal."""
    options: list[OptionRow]


class CommandRow(OfferRow):
    """A subcommand of `wsap` that a plugin brings."""

    factory: str
    """`module:attribute`, or empty where the plugin registered an object."""


def plugins(host: PluginHost) -> list[PluginRow]:
    """Return a row for each plugin that was found, in the order it was loaded."""
    return [cast(PluginRow, asdict(row)) for row in host.rows]


def games(host: PluginHost) -> list[GameRow]:
    """Return a row for each game, sorted by name."""
    return [game(host, entry) for entry in host.games.all()]


def game(host: PluginHost, entry: Registration[AdapterSpec]) -> GameRow:
    """Return the row of one game."""
    spec = entry.spec
    counted = {"scores": [metric.name for metric in spec.score_metrics], "achievements": len(spec.achievements)}
    return _row(GameRow, host.games, entry, title=spec.display_title, **counted)


def agents(host: PluginHost) -> list[AgentRow]:
    """Return a row for each agent, sorted by name."""
    return [_row(AgentRow, host.agents, entry) for entry in host.agents.all()]


def commands(host: PluginHost) -> list[CommandRow]:
    """Return a row for each subcommand, sorted by name."""
    found = [(entry, entry.spec.factory) for entry in host.commands.all()]
    return [_row(CommandRow, host.commands, entry, factory=f if isinstance(f, str) else "") for entry, f in found]


def _row(shape: Callable[..., R], registry: Registry[Any], entry: Registration[Any], **known: Any) -> R:
    """Return a row of that shape: with what is known here, and else the spec's fields of the same names."""
    usable = entry.spec.name.partition(":")[0] in registry.names()
    known |= {"plugin": entry.plugin, "distribution": entry.distribution, "usable": usable}
    row = {name: known[name] if name in known else getattr(entry.spec, name) for name in shape.__annotations__}
    return shape(**json.loads(json.dumps(row, default=asdict)))
