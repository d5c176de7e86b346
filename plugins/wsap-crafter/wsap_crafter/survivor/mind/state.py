"""The agent's state: the map, the current path, and its current aims."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from wsap_core.protocol.values import JsonValue
from wsap_crafter.survivor.mind.memory import Memory


class Decision(NamedTuple):
    """The next action with its reason."""

    action: str
    """The name of one of Crafter's actions."""
    reason: str
    """One short sentence for people."""


@dataclass
class State:
    """The agent's state between decisions."""

    memory: Memory = field(default_factory=Memory)
    errand: str = ""
    """The aim of the current path; a new path is planned when the errand changes."""
    way: list[int] = field(default_factory=list)
    """The remaining cells of the path, the last one first."""
    hopeless: dict[str, int] = field(default_factory=dict)
    """Errand without a path -> the step from which to try again."""
    resting: str = ""
    """Why the agent seeks rest (`sleep`, `heal`, `night`), or empty."""
    refuge: tuple[int, ...] = ()
    """The two cells of the shelter, or empty."""
    drinking: bool = False
    """Whether to keep drinking up to the maximum."""
    lookout: int = 0
    """The cell to explore from, or 0."""
    lookout_unknown: int = 0
    """The number of unknown cells in view from there when it was chosen."""
    chase_began: int = -1
    """The step at which the current hunt started, or -1."""
    home: tuple[int, ...] = ()
    """The four cells of the home's room, or empty (see `site`)."""
    plots: tuple[int, ...] = ()
    """Cells beside it for plants."""
    door: int = 0
    """The cell of its door, closed with a stone."""
    well: int = 0
    """The cell of its water, or 0."""
    far_shore: int = 0
    """The cell behind the well from which arrows may come and that can't be reached, or 0."""
    shut: bool = False
    """Whether the well must be walled up."""
    settled: bool = False
    """Whether building has started."""
    complete: bool = False
    """Whether the home is finished."""
    homing: bool = False
    """Whether the agent wants to be at home now."""
    last_cell: int = 0
    """The agent's cell at the last decision."""
    standing: int = 0
    """Number of consecutive decisions on the same cell, except while resting."""
    step: int = -1
    """The game step of the last decision."""
    unlocked: tuple[str, ...] = ()
    """The achievements unlocked at the last decision."""
    doing: str = ""
    """The reason of the last decision."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the state as JSON values."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "memory"}
        return {**values, "hopeless": list(self.hopeless.items()), "memory": self.memory.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, JsonValue]) -> State:
        """Return the state from `to_json`."""
        return cls(**{
            **data,
            "memory": Memory.from_json(data["memory"]),
            "hopeless": dict(data["hopeless"]),
            "refuge": tuple(data["refuge"]),
            "home": tuple(data.get("home", ())),
            "plots": tuple(data.get("plots", ())),
            "unlocked": tuple(data["unlocked"]),
        })  # fmt: skip
