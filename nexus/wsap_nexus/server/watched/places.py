"""The worlds of a nexus in which there is something to see: occupied ones, and those that live by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from wsap_core.specs import AdapterSpec
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus


@dataclass(frozen=True)
class Place:
    """A world that is occupied, or that lives by itself."""

    id: str
    game: str
    run: str
    lives: bool
    """Whether it goes on without agents."""
    stays: tuple[LiveSession, ...]
    """The agents in it, by id."""
    spec: AdapterSpec | None
    """None while its world is not open."""

    @property
    def draws(self) -> bool:
        """Whether it has a view."""
        return self.spec is not None and "render" in self.spec.abilities


def places(nexus: Nexus) -> list[Place]:
    """Return the worlds with agents in them, by id, then those that live and have none."""
    stays: dict[str, list[LiveSession]] = {}
    for stay in sorted(nexus.live.sessions.values(), key=lambda stay: (stay.session.world_id, stay.session.agent_id)):
        stays.setdefault(stay.session.run_id, []).append(stay)
    kept = {one.run_id: one.record for one in nexus.kept.open}
    found = []
    for run in dict.fromkeys((*stays, *kept)):
        here = tuple(stays.get(run, ()))
        if run in kept:
            world, game = kept[run].id, kept[run].game
        else:
            world, game = here[0].session.world_id, here[0].session.game
        port = nexus.live.ports.get(run)
        found.append(Place(world, game, run, run in kept, here, None if port is None else port.spec))
    return found
