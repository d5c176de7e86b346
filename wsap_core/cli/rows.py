"""Specs and plugins as rows of JSON-ready data, for listings and the cache."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, TypedDict, TypeVar, cast

from wsap_core.host import PluginHost, Registration, Registry
from wsap_core.specs import AdapterSpec

R = TypeVar("R")


class PluginRow(TypedDict):
    """An installed plugin, as `wsap plugins --json` prints it; see `wsap_core.host.PluginReport`."""

    name: str
    distribution: str
    version: str
    module: str
    status: str
    reasons: list[str]
    provides: dict[str, list[str]]


class OfferRow(TypedDict):
    """The common fields of the rows below; see `wsap_core.specs` for the others."""

    name: str
    summary: str
    plugin: str
    """The plugin's name in the entry-point group."""
    distribution: str
    usable: bool
    """False if several plugins claim the name."""


OptionRow = dict[str, str]
"""An option of a game or an agent: the fields of `wsap_core.specs.OptionDef`."""


class AchievementRow(TypedDict):
    """An achievement of a game."""

    name: str
    description: str
    rarity: str | None


class GameRow(OfferRow):
    """An installed game, as `wsap games --json` prints it."""

    title: str
    seats: list[int]
    """Minimum and maximum."""
    timing: str
    abilities: list[str]
    default_agent: str
    scores: list[str]
    """The names of its metrics."""
    achievements: list[AchievementRow]
    terms: dict[str, list[str]]
    genre: str
    dimensions: str
    persistent: bool
    family: str
    former_names: list[str]
    options: list[OptionRow]


class AgentRow(OfferRow):
    """An installed agent, as `wsap agents --json` prints it."""

    games: list[str]
    abilities: list[str]
    interactive: bool
    options: list[OptionRow]


class CommandRow(OfferRow):
    """A subcommand of `wsap` from a plugin."""

    factory: str
    """`module:attribute`, or empty if the plugin registered an object."""


def plugins(host: PluginHost) -> list[PluginRow]:
    """Return a row for each plugin, in the order of loading."""
    return [cast(PluginRow, asdict(row)) for row in host.rows]


def games(host: PluginHost) -> list[GameRow]:
    """Return a row for each game, sorted by name."""
    return [game(host, entry) for entry in host.games.all()]


def game(host: PluginHost, entry: Registration[AdapterSpec]) -> GameRow:
    """Return the row of one game."""
    spec = entry.spec
    achievements = [{name: getattr(a, name) for name in AchievementRow.__annotations__} for a in spec.achievements]
    scores = [metric.name for metric in spec.score_metrics]
    return _row(GameRow, host.games, entry, title=spec.display_title, scores=scores, achievements=achievements)


def agents(host: PluginHost) -> list[AgentRow]:
    """Return a row for each agent, sorted by name."""
    return [_row(AgentRow, host.agents, entry) for entry in host.agents.all()]


def commands(host: PluginHost) -> list[CommandRow]:
    """Return a row for each subcommand, sorted by name."""
    found = [(entry, entry.spec.factory) for entry in host.commands.all()]
    return [_row(CommandRow, host.commands, entry, factory=f if isinstance(f, str) else "") for entry, f in found]


def _row(shape: Callable[..., R], registry: Registry[Any], entry: Registration[Any], **known: Any) -> R:
    """Return a row with the fields of `shape`: from `known`, else the spec's fields of the same names."""
    usable = entry.spec.name.partition(":")[0] in registry.names()
    known |= {"plugin": entry.plugin, "distribution": entry.distribution, "usable": usable}
    row = {name: known[name] if name in known else getattr(entry.spec, name) for name in shape.__annotations__}
    return shape(**json.loads(json.dumps(row, default=asdict)))
