"""Parsing of an observation: the only module that knows the shape of Crafter's observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .grid import BY_NAME, MARGIN, WIDTH

if TYPE_CHECKING:
    # For its name only: the agent needs no adapter, and no game, to think.
    from wsap_crafter.observation import CrafterObservation


@dataclass(frozen=True, slots=True)
class Percept:
    """One moment as the agent sees it."""

    step: int
    """Game steps since the episode began."""
    cell: int
    """Where the player stands (see `grid`)."""
    facing: int
    """The direction looked in, one of `grid.DIRECTIONS`."""
    health: int
    """0 to 9, like food, drink and energy."""
    food: int
    """Falls by one in about 26 steps; at 0, health falls too."""
    drink: int
    """Falls by one in about 21 steps; at 0, health falls too."""
    energy: int
    """Falls by one in about 31 steps awake, rises by one in about 11 asleep."""
    inventory: Mapping[str, int]
    """Items carried; absent ones are left out."""
    sleeping: bool
    """Whether the player is asleep: then nothing that it does has an effect."""
    daylight: float
    """0 (deepest night) to 1 (noon)."""
    rows: tuple[str, ...]
    """The view, seven rows of nine characters, the player in the middle."""
    cows: tuple[int, ...]
    """Cells of the cows in view."""
    zombies: tuple[int, ...]
    """Cells of the zombies in view."""
    skeletons: tuple[int, ...]
    """Cells of the skeletons in view."""
    arrows: tuple[int, ...]
    """Cells of the arrows in view."""
    unlocked: tuple[str, ...]
    """Names of the achievements unlocked so far."""
    damage: int
    """Health lost to attacks in the last step."""

    @property
    def ahead(self) -> int:
        """The cell that the player looks at."""
        return self.cell + self.facing

    def has(self, item: str) -> int:
        """Return how many of an item are carried."""
        return self.inventory.get(item, 0)


def perceive(observation: CrafterObservation) -> Percept:
    """Return the agent's own view of an observation."""
    x, y = observation.location.coordinates[:2]
    cell = (int(y) + MARGIN) * WIDTH + int(x) + MARGIN
    found: dict[str, list[int]] = {"C": [], "Z": [], "S": [], "a": []}
    corner = cell - 3 * WIDTH - 4
    for number, row in enumerate(observation.local_map):
        for column, character in enumerate(row):
            if character in found:
                found[character].append(corner + number * WIDTH + column)
    status = observation.status
    return Percept(
        step=observation.step,
        cell=cell,
        facing=BY_NAME[observation.facing],
        health=int(status["health"]),
        food=int(status["food"]),
        drink=int(status["drink"]),
        energy=int(status["energy"]),
        inventory=observation.inventory,
        sleeping=observation.sleeping,
        daylight=observation.daylight,
        rows=observation.local_map,
        cows=tuple(found["C"]),
        zombies=tuple(found["Z"]),
        skeletons=tuple(found["S"]),
        arrows=tuple(found["a"]),
        unlocked=observation.achievements_unlocked,
        damage=observation.damage,
    )
