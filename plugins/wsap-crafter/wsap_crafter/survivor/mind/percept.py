"""Parsing of observations; the only module that depends on the class of Crafter's observations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from wsap_crafter.survivor.mind.grid import BY_NAME, MARGIN, WIDTH

if TYPE_CHECKING:
    # Only for types: the agent runs without adapter and game.
    from wsap_crafter.perception.observation import CrafterObservation


@dataclass(frozen=True, slots=True)
class Percept:
    """A parsed observation; creatures and arrows are the cells of those in view."""

    step: int
    """Game steps since the start of the episode."""
    cell: int
    """The player's cell (see `grid`)."""
    facing: int
    """The player's direction, one of `grid.DIRECTIONS`."""
    health: int
    """0 to 9, like food, drink and energy."""
    food: int
    """Falls by one in about 26 steps; at 0, health falls too."""
    drink: int
    """Falls by one in about 21 steps; at 0, health falls too."""
    energy: int
    """Falls by one in about 31 steps awake, rises by one in about 11 asleep."""
    inventory: Mapping[str, int]
    """Items without zero counts."""
    sleeping: bool
    """Whether the player is asleep, so that actions have no effect."""
    daylight: float
    """0 (deepest night) to 1 (noon)."""
    rows: tuple[str, ...]
    """The view, seven rows of nine characters, with the player in the middle."""
    cows: tuple[int, ...]
    zombies: tuple[int, ...]
    skeletons: tuple[int, ...]
    arrows: tuple[int, ...]
    unlocked: tuple[str, ...]
    """Names of the achievements unlocked so far."""
    damage: int
    """Health lost to attacks in the last step."""

    @property
    def ahead(self) -> int:
        """The cell that the player faces."""
        return self.cell + self.facing

    def has(self, item: str) -> int:
        """Return the number of an item in the inventory."""
        return self.inventory.get(item, 0)


def perceive(observation: CrafterObservation) -> Percept:
    """Parse an observation."""
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
