"""The settings of a nexus."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from wsap_core.errors import UsageError
from wsap_llm.middleware.budgets import Budgets
from wsap_nexus.store.entities import AGENT_ID
from wsap_nexus.worlds.workers.pool import Machines, WorkerTimeouts


@dataclass(frozen=True)
class KeptWorld:
    """A world that lives in a nexus, with or without agents."""

    name: str
    """Its id among the worlds of the nexus."""
    game: str
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> KeptWorld:
        """Parse `NAME=GAME,KEY=VALUE,...`, where NAME defaults to the game's name; UsageError if it is invalid."""
        first, *others = text.split(",")
        name, equals, game = first.partition("=")
        pairs = [part.partition("=") for part in others]
        if not equals:
            name, game = first.partition(":")[2] or first, first
        if not game or not all(key and sign for key, sign, _ in pairs):
            raise UsageError(f"Invalid world {text!r}; expected NAME=GAME or NAME=GAME,OPTION=VALUE.")
        if re.match(AGENT_ID, name) is None:
            raise UsageError(f"Invalid name of a world {name!r}; use lower case letters, digits, dots and dashes.")
        return cls(name, game, {key: value for key, _, value in pairs})


@dataclass(frozen=True)
class Settings:
    """The settings of a nexus."""

    seed: int = 0
    """The seed of everything random."""
    games: tuple[str, ...] | None = None
    """The games that agents may enter; None for all installed ones but families, whose members are named."""
    worlds: tuple[KeptWorld, ...] = ()
    """The worlds that live in it."""
    pace: float | None = None
    """Maximum decisions per second of each agent; None for no limit."""
    snapshot_every: int = 200
    """Decisions between two snapshots of a session's world."""
    lobby_seconds: float = 3.0
    """How long a game of several seats waits for agents before the empty seats are filled."""
    patience: float = 30.0
    """Seconds that a client has for a decision that others wait for, in a game without a deadline of its own."""
    thinking: float = 600.0
    """The same for agents that decide here, whose models may be slow."""
    max_failures: int = 3
    """Failures of a game within ten minutes after which it is taken offline."""
    workers: int = 0
    """Number of worker processes for worlds, and at least one for each game in play; 0 for worlds in this process."""
    machines: Machines | None = None
    """What runs the workers instead of this machine, in a number of its own."""
    living_in_workers: bool = False
    """Whether worlds that live run in workers, too; experimental."""
    timeouts: WorkerTimeouts = field(default_factory=WorkerTimeouts)
    logs: Path | None = None
    """The folder for the output of games in workers; None to discard it."""
    keep_bytes: int | None = None
    """The size of the database in bytes at which old records are deleted; None for no limit."""
    limits: Budgets = field(default_factory=Budgets)
    """Budgets of models, for each decision and for a day of the database."""
    game_hosts: tuple[str, ...] = ()
    """Allowed hosts of remote games besides this machine."""
