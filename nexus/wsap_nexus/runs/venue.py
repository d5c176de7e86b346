"""The world of a run: one of its own, or one of the nexus."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from wsap_core.protocol import Entry
from wsap_core.seams.clock import Clock
from wsap_core.seams.context import Context
from wsap_core.seams.services import Services
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import World
from wsap_nexus.runs.record.world_calls import WorldJournal
from wsap_nexus.worlds.port import LivingPort, LocalWorld, WorldPort
from wsap_nexus.worlds.seats import SeatPort


class Venue:
    """A world with seats, as a run uses it."""

    port: WorldPort
    """The world, once it is open."""
    world: World | None = None
    """The same, once open, if it is the run's own and in this process."""
    living: LivingPort | None = None
    """The same, once open, if it lives."""
    one_episode = True
    """Whether play ends with the first episode."""

    async def open(self, seats: Sequence[str], seed: int) -> Mapping[str, SeatPort]:
        """Start an episode from a seed and return the open seats by name."""
        raise NotImplementedError

    async def reset(self, seed: int) -> None:
        """Start another episode."""
        raise NotImplementedError

    def keep_calls(self, journal: WorldJournal) -> None:
        """Record the world's own model calls in the journal of the run; one of the run's own does so already."""


class LivingVenue(Venue):
    """A world that lives, in this process or a worker, created for one run; agents come into it in play.

    Args:
        make: makes the world, given the game's context.
    """

    one_episode = False

    def __init__(self, make: Callable[[Context], LivingPort], context: Context) -> None:
        self._make, self._context = make, context

    @override
    async def open(self, seats: Sequence[str], seed: int) -> Mapping[str, SeatPort]:
        self.port = self.living = port = self._make(self._context)
        self.world = port.world if isinstance(port, LocalWorld) else None
        await port.begin(seed)
        return {name: await port.open_seat(name) for name in seats}

    @override
    async def reset(self, seed: int) -> None:
        await self.port.begin(seed)


@dataclass(eq=False)
class OwnVenue(Venue):
    """A world in this process, created for one run.

    Args:
        skills: returns the skills of a seat's agent, domain -> level, which a game with transit gets at the start of
            each episode.
        offline: no external service is called, so no API key is needed.
    """

    spec: AdapterSpec
    seed: int
    options: Mapping[str, Any]
    clock: Clock
    services: Services
    skills: Callable[[str], Mapping[str, float]] | None = None
    offline: bool = False
    port: LocalWorld = field(init=False)
    world: World | None = field(default=None, init=False)
    living: LivingPort | None = field(default=None, init=False)
    one_episode = False

    @override
    async def open(self, seats: Sequence[str], seed: int) -> Mapping[str, SeatPort]:
        context = Context(clock=self.clock, services=self.services)
        self.port = LocalWorld(self.spec, self.seed, self.options, context, offline=self.offline)
        world = self.world = self.port.world
        self.living = self.port if world.lives else None
        await world.reset(seed)
        opened = {name: world.open_seat(name) for name in seats}
        await self._admit(world, seed)
        return opened

    @override
    async def reset(self, seed: int) -> None:
        await self.port.world.reset(seed)
        await self._admit(self.port.world, seed)

    async def _admit(self, world: World, seed: int) -> None:
        """Admit the agents with their skills, without items, to a game with transit."""
        for seat in world.seats:
            if self.skills and "transit" in self.spec.abilities and (skills := dict(self.skills(seat))):
                entry = Entry(f"{seat}-{seed}", seat, skills)
                await self.port.admit(world.avatar_of(seat).avatar_id, entry)
