"""Which worlds live in a nexus, and which of them agents can enter."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeVar

from wsap_core.errors import UsageError
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_nexus.errors import GameUnavailableError


def no_world(spec: AdapterSpec) -> str:
    """Return the sentence that no world of a game lives in the nexus, and how to change that."""
    return f"No world of {spec.display_title} lives here; start the nexus with --world NAME={spec.name}"


class InPlay(Protocol):
    """A world in play."""

    @property
    def game(self) -> str:
        """The name of its game."""

    @property
    def names_seats(self) -> bool:
        """Whether its game names its seats."""

    @property
    def seats(self) -> Sequence[str]:
        """The seats that the game names, and those of agents that came as themselves."""

    def has_seat(self, seat: str) -> bool:
        """Return whether an agent may ask for a seat: any, if the game names none."""


World = TypeVar("World", bound=InPlay)


@dataclass
class LivingWorlds(Generic[World]):
    """The worlds that live in a nexus, by name."""

    waiting: Mapping[str, object]
    """Those that wait for their model."""
    games: dict[str, str] = field(default_factory=dict)
    """The game of each that was to be played."""
    in_play: dict[str, World] = field(default_factory=dict)
    again: dict[asyncio.Task[None], str] = field(default_factory=dict)
    """Those that have failed, by the task that waits until they can be started again."""

    def entered(self, game: str) -> dict[str, World]:
        """Return the worlds of a game that can be entered: those in play that do not wait for their model."""
        return {name: world for name, world in self.in_play.items() if world.game == game and name not in self.waiting}

    def seats(self, game: str) -> dict[str, Sequence[str]]:
        """Return the worlds of a game that can be entered, with their seats if the game names its seats."""
        return {name: world.seats if world.names_seats else () for name, world in self.entered(game).items()}

    def closed(self, spec: AdapterSpec) -> tuple[Literal["offline", "maintenance"], str] | None:
        """Return the status of a game that lives but has no world in play here, and the reason; None if it is open."""
        if "lives" not in spec.abilities or self.entered(spec.name):
            return None
        own = [world for world, game in self.games.items() if game == spec.name]
        for world in own:
            if world in self.waiting:
                return "maintenance", f"The world {world!r} waits for its model."
        for world in own:
            if world in self.again.values():
                return "maintenance", f"The world {world!r} has failed and will be started again."
        return "offline", no_world(spec)

    def check(self, spec: AdapterSpec, world: str | None, seat: str | None) -> None:
        """Refuse a world or seat that a game does not have.

        Raises:
            UsageError: the game has no such world, or the world knows its seats and has no such one.
            GameUnavailableError: the world can't be entered at the moment.
        """
        if "lives" not in spec.abilities:
            if world is not None or seat is not None:
                raise UsageError(
                    f"{spec.display_title} has no worlds that live; leave out world and seat. Choose a body of yours "
                    "with avatar."
                )
            return
        entered = self.entered(spec.name)
        if world is not None and world not in entered:
            if self.games.get(world) == spec.name:
                why = "waits for its model" if world in self.waiting else "is not in play at the moment"
                raise GameUnavailableError(f"The world {world!r} {why}.")
            raise UsageError(f"{spec.display_title} has no world {world!r}; there are: {', '.join(entered)}.")
        possible = {world: entered[world]} if world is not None else entered
        if seat is None or not possible:
            return
        if any(each.has_seat(seat) for each in possible.values()):
            return
        there = {name: ", ".join(each.seats) for name, each in possible.items()}
        which, seats = f"No world of {spec.display_title} has a seat", "; ".join(f"{n}: {s}" for n, s in there.items())
        if len(there) == 1:
            ((name, seats),) = there.items()
            which = f"The world {name!r} has no seat"
        raise UsageError(
            f"{which} {single_line(seat)[:60]!r}; there are: {seats}. Leave out seat to enter as yourself."
        )
