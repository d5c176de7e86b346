"""How a nexus is run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wsap_core.errors import UsageError
from wsap_llm.middleware.budgets import Budgets
from wsap_nexus.store.entities import AGENT_ID
from wsap_nexus.worlds.workers.pool import WorkerTimeouts


@dataclass(frozen=True)
class KeptWorld:
    """A world that lives in a nexus, whether somebody is in it or not."""

    name: str
    """Its id among the worlds of the nexus."""
    game: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> KeptWorld:
        """Return the world of a text `NAME=GAME,KEY=VALUE,...`; without NAME it is called like the game.

        Raises:
            UsageError: the text is of another form, or the name none of a world.
        """
        first, *others = text.split(",")
        name, equals, game = first.partition("=")
        pairs = [part.partition("=") for part in others]
        if not equals:
            name, game = first.partition(":")[2] or first, first
        if not game or not all(key and sign for key, sign, _ in pairs):
            raise UsageError(f"{text!r} names no world; give it as NAME=GAME or NAME=GAME,OPTION=VALUE.")
        if re.match(AGENT_ID, name) is None:
            raise UsageError(f"{name!r} can't be a world's name: use lower case, digits, dots and dashes.")
        return cls(name, game, {key: value for key, _, value in pairs})


@dataclass(frozen=True)
class Settings:
    """How a nexus is run."""

    seed: int = 0
    """What everything that is decided by chance follows from."""
    games: tuple[str, ...] | None = None
    """The games that agents may enter; None for all that are installed."""
    worlds: tuple[KeptWorld, ...] = ()
    """The worlds that live in it."""
    pace: float | None = None
    """Most decisions a second of each agent; None for as fast as it goes."""
    snapshot_every: int = 200
    """Decisions between two saved states of a stay."""
    lobby_seconds: float = 3.0
    """How long a game of several seats waits for others, before their seats are filled."""
    max_failures: int = 3
    """Failures of a game within the window after which it is taken offline."""
    failure_window: float = 600.0
    """Seconds that a failure counts."""
    workers: int = 0
    """Most worker processes that worlds run in; 0 for worlds in this process."""
    timeouts: WorkerTimeouts = field(default_factory=WorkerTimeouts)
    """How long is waited for workers."""
    logs: Path | None = None
    """The folder for what games in workers print; None keeps nothing of it."""
    keep_bytes: int | None = None
    """The size of the database at which old records are deleted; None for no limit."""
    limits: Budgets = field(default_factory=Budgets)
    """Limits of models, for each decision and for a day of the database."""
    game_hosts: tuple[str, ...] = ()
    """Hosts besides this machine that games in other processes may be on."""
