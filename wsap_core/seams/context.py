"""The context of a factory: seed, options, clock, ids, random generator and services."""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.seams.services import Services

if TYPE_CHECKING:
    from wsap_core.specs import AdapterSpec

SEED_LIMIT = 2**31 - 1
"""The highest seed; the lowest is 0. Every random generator in use accepts this range."""


def derive_seed(seed: int, *path: int | str) -> int:
    """Return the seed of a part or episode, from 0 to `SEED_LIMIT`, by SHA-256 of the arguments' text; the seed itself
    for an empty path or episode 0."""
    if not path or path == (0,):
        return seed
    text = ":".join(str(part) for part in (seed, *path))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") % (SEED_LIMIT + 1)


def id_sequence(prefix: str = "id") -> Callable[[], str]:
    """Return a generator of ids: `id-1`, `id-2`, ..."""
    counter = itertools.count(1)
    return lambda: f"{prefix}-{next(counter)}"


@dataclass(frozen=True)
class Context:
    """Everything that a game, agent or tool may use from outside itself."""

    seed: int = 0
    """From 0 to `SEED_LIMIT`."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The options of this instance, as the user gave them."""
    clock: Clock = field(default_factory=SystemClock)
    new_id: Callable[[], str] = field(default_factory=id_sequence)
    """Returns a new id; the same sequence for the same seed."""
    random: random.Random = field(default_factory=lambda: random.Random(0))  # play, not secrets
    """This instance's generator."""
    services: Services = field(default_factory=Services)
    """The runtime's services; each is None if only the kernel is installed."""
    agent_id: str | None = None
    """For an agent: its id in the world."""
    world: str = ""
    """For an agent: the name of its game."""
    game: AdapterSpec | None = None
    """For an agent: the spec of its game, if known."""

    @classmethod
    def create(
        cls,
        seed: int = 0,
        *path: int | str,
        config: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        services: Services | None = None,
        agent_id: str | None = None,
        world: str = "",
        game: AdapterSpec | None = None,
    ) -> Self:
        """Return a context whose generator and ids depend only on the seed and the path."""
        own = derive_seed(seed, *path)
        return cls(
            seed=own,
            config={} if config is None else config,
            clock=clock or SystemClock(),
            new_id=id_sequence("-".join(str(p) for p in path) or "id"),
            random=random.Random(own),  # play, not secrets
            services=services or Services(),
            agent_id=agent_id,
            world=world,
            game=game,
        )
