"""Where a run is played: in a world of its own, or in one of the nexus."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from wsap_core.protocol import Entry
from wsap_core.seams.clock import Clock
from wsap_core.seams.context import Context
from wsap_core.seams.options import Options, check_used
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import World
from wsap_llm.secrets import with_secrets
from wsap_nexus.worlds.port import LocalWorld
from wsap_nexus.worlds.seats import SeatPort


class Venue(Protocol):
    """A world with seats, as a run uses it."""

    @property
    def world(self) -> World | None:
        """The world, if it is open and in this process."""
        ...

    @property
    def can_snapshot(self) -> bool:
        """Whether it has snapshots."""
        ...

    @property
    def one_episode(self) -> bool:
        """Whether play ends with the episode, however many decisions are left."""
        ...

    async def open(self, seats: Sequence[str], seed: int) -> Mapping[str, SeatPort]:
        """Begin an episode from a seed and return the open seats by name."""
        ...

    async def reset(self, seed: int) -> None:
        """Begin another episode."""
        ...

    @property
    def living(self) -> World | None:
        """The world, if it is open and lives."""
        ...

    async def snapshot(self) -> bytes:
        """Return the world's whole state."""
        ...

    async def restore(self, data: bytes) -> None:
        """Restore a snapshot."""
        ...


@dataclass(eq=False)
class OwnVenue:
    """A world in this process, made for one run.

    Args:
        skills: gives the skills of the agent in a seat, domain -> level; a game with transit is told of them
            at the start of each episode.
        offline: nobody outside is asked, so that no variable with a key in it is needed.
    """

    spec: AdapterSpec
    seed: int
    options: Mapping[str, Any]
    clock: Clock
    services: Services
    skills: Callable[[str], Mapping[str, float]] | None = None
    offline: bool = False
    world: World | None = field(default=None, init=False)
    """The world, once it is open."""

    @property
    def can_snapshot(self) -> bool:
        """Whether it has snapshots."""
        return self.world is not None and self.world.can_snapshot

    @property
    def one_episode(self) -> bool:
        """False: there is always another."""
        return False

    async def open(self, seats: Sequence[str], seed: int) -> Mapping[str, SeatPort]:
        """Make the world, begin an episode, and open the seats."""
        options = Options(self.options if self.offline else with_secrets(self.options, os.environ))
        context = Context.create(self.seed, config=options, clock=self.clock, services=self.services)
        world = World.create(self.spec, context)
        check_used(f"The game {self.spec.name!r}", options)
        self.world = world
        await world.reset(seed)
        opened = {name: world.open_seat(name) for name in seats}
        await self._admit(seed)
        return opened

    async def reset(self, seed: int) -> None:
        """Begin another episode."""
        await self._open.reset(seed)
        await self._admit(seed)

    async def _admit(self, seed: int) -> None:
        """Hand a game with transit the skills of its agents; they bring no items."""
        world = self._open
        face = LocalWorld.of(world)
        for seat in world.seats:
            if self.skills and "transit" in self.spec.abilities and (skills := dict(self.skills(seat))):
                entry = Entry(f"{seat}-{seed}", seat, skills)
                await face.admit(world.avatar_of(seat).avatar_id, entry)

    @property
    def living(self) -> World | None:
        """The world, if it is open and lives."""
        return self.world if self.world is not None and self.world.lives else None

    async def snapshot(self) -> bytes:
        """Return the world's whole state."""
        return self._open.snapshot()

    async def restore(self, data: bytes) -> None:
        """Restore a snapshot."""
        self._open.restore(data)

    @property
    def _open(self) -> World:
        assert self.world is not None  # whoever asks has opened it
        return self.world
