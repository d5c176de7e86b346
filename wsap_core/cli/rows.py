"""What plugins offer, as rows of JSON-ready data: what the listings print and the cache stores."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypedDict, cast

from wsap_core.host import PluginHost, Registration, Registry
from wsap_core.specs import AdapterSpec, OptionDef


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
    return {
        **_offer(host.games, entry),
        "title": entry.spec.display_title,
        "seats": list(entry.spec.seats),
        "timing": entry.spec.timing,
        "abilities": list(entry.spec.abilities),
        "default_agent": entry.spec.default_agent,
        "scores": [metric.name for metric in entry.spec.score_metrics],
        "achievements": len(entry.spec.achievements),
        "genre": entry.spec.genre,
        "dimensions": entry.spec.dimensions,
        "persistent": entry.spec.persistent,
        "family": entry.spec.family,
        "options": _options(entry.spec.options),
    }


def agents(host: PluginHost) -> list[AgentRow]:
    """Return a row for each agent, sorted by name."""
    return [
        {
            **_offer(host.agents, entry),
            "games": list(entry.spec.games),
            "abilities": list(entry.spec.abilities),
            "interactive": entry.spec.interactive,
            "options": _options(entry.spec.options),
        }
        for entry in host.agents.all()
    ]


def commands(host: PluginHost) -> list[CommandRow]:
    """Return a row for each subcommand, sorted by name."""
    return [
        {**_offer(host.commands, entry), "factory": entry.spec.factory if isinstance(entry.spec.factory, str) else ""}
        for entry in host.commands.all()
    ]


def _options(options: Iterable[OptionDef]) -> list[OptionRow]:
    return [{"name": o.name, "summary": o.summary, "default": o.default, "values": o.values} for o in options]


def _offer(registry: Registry[Any], entry: Registration[Any]) -> OfferRow:
    return {
        "name": entry.spec.name,
        "summary": entry.spec.summary,
        "plugin": entry.plugin,
        "distribution": entry.distribution,
        "usable": entry.spec.name.partition(":")[0] in registry.names(),
    }
