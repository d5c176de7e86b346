"""What plugins offer, as rows of JSON-ready data: what the listings print and the catalogue keeps."""

from __future__ import annotations

from typing import Any, TypedDict

from wsap_core.host import PluginRow, Registered, Shelf
from wsap_core.specs import AdapterSpec, AgentSpec, CommandSpec


class PluginEntry(TypedDict):
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


class Offer(TypedDict):
    """What all entries below have in common."""

    name: str
    summary: str
    plugin: str
    """The plugin that offers it, by its name in the entry-point group."""
    distribution: str
    """The package it came with."""
    usable: bool
    """False where several plugins claim the name."""


class GameEntry(Offer):
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


class AgentEntry(Offer):
    """An installed agent, as `wsap agents --json` prints it."""

    games: list[str]
    """The games it knows how to play; empty for any."""
    abilities: list[str]
    interactive: bool
    """True if it needs a person at the terminal."""


class CommandEntry(Offer):
    """A subcommand of `wsap` that a plugin brings."""

    factory: str
    """`module:attribute`, or empty where the plugin registered an object."""


def plugin_entry(row: PluginRow) -> PluginEntry:
    """Return a plugin's row."""
    return PluginEntry(
        name=row.name,
        distribution=row.distribution,
        version=row.version,
        module=row.module,
        status=row.status,
        reasons=list(row.reasons),
        provides={kind: list(names) for kind, names in row.provides.items()},
    )


def game_entry(entry: Registered[AdapterSpec], shelf: Shelf[AdapterSpec]) -> GameEntry:
    """Return a game's row."""
    spec = entry.spec
    return GameEntry(
        **_offer(shelf, entry),
        title=spec.display_title,
        seats=list(spec.seats),
        timing=spec.timing,
        abilities=list(spec.abilities),
        default_agent=spec.default_agent,
        scores=[metric.name for metric in spec.score_metrics],
        achievements=len(spec.achievements),
        genre=spec.genre,
        dimensions=spec.dimensions,
        persistent=spec.persistent,
    )


def agent_entry(entry: Registered[AgentSpec], shelf: Shelf[AgentSpec]) -> AgentEntry:
    """Return an agent's row."""
    spec = entry.spec
    return AgentEntry(
        **_offer(shelf, entry),
        games=list(spec.games),
        abilities=list(spec.abilities),
        interactive=spec.interactive,
    )


def command_entry(entry: Registered[CommandSpec], shelf: Shelf[CommandSpec]) -> CommandEntry:
    """Return a command's row."""
    factory = entry.spec.factory
    return CommandEntry(**_offer(shelf, entry), factory=factory if isinstance(factory, str) else "")


def _offer(shelf: Shelf[Any], entry: Registered[Any]) -> Offer:
    # Any: a spec of any kind has a name and a summary.
    return Offer(
        name=entry.spec.name,
        summary=entry.spec.summary,
        plugin=entry.plugin,
        distribution=entry.distribution,
        usable=entry.spec.name in shelf.names(),
    )
