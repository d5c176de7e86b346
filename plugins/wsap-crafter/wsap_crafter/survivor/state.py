"""The agent's state: the map, the current path, and its current aims."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from wsap_core.protocol.values import JsonValue

from .memory import Memory


class Decision(NamedTuple):
    """The next action, and why."""

    action: str
    """The name of one of Crafter's actions."""
    reason: str
    """One short sentence for people."""


@dataclass
class State:
    """Everything that the agent carries from one decision to the next."""

    memory: Memory = field(default_factory=Memory)
    errand: str = ""
    """The aim of the current path; a new path is planned when the errand changes."""
    way: list[int] = field(default_factory=list)
    """The cells still to walk, the last one first."""
    hopeless: dict[str, int] = field(default_factory=dict)
    """Errands for which no way was found, and the step from which to try again."""
    resting: str = ""
    """Why the agent seeks rest (`sleep`, `heal`, `night`), or nothing."""
    refuge: tuple[int, ...] = ()
    """The two cells of the shelter chosen, or nothing."""
    drinking: bool = False
    """Whether to drink on to the full."""
    lookout: int = 0
    """The cell to explore from, or 0."""
    lookout_unknown: int = 0
    """How many unknown cells could be seen from there when it was chosen."""
    chase_began: int = -1
    """The step at which the present hunt began, or -1."""
    home: tuple[int, ...] = ()
    """The four cells of the home's room, or nothing (see `site`)."""
    plots: tuple[int, ...] = ()
    """Cells beside it that hold plants, or will."""
    door: int = 0
    """The cell through which one enters, closed with a stone."""
    well: int = 0
    """The cell of its wall that holds water, or 0."""
    far_shore: int = 0
    """The cell behind it that arrows may come from and that can't be reached, or 0."""
    shut: bool = False
    """Whether the well is to be walled up."""
    settled: bool = False
    """Whether its building has begun."""
    complete: bool = False
    """Whether it stands, with all its plants and walls."""
    homing: bool = False
    """Whether the agent means to be at home now."""
    last_cell: int = 0
    """Where the agent stood at the last decision."""
    standing: int = 0
    """Decisions made in a row on the same cell, resting aside."""
    step: int = -1
    """The game step of the last decision."""
    unlocked: tuple[str, ...] = ()
    """The achievements unlocked at the last decision."""
    doing: str = ""
    """The reason of the last decision."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the state as JSON values, `from_json`'s counterpart."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "memory"}
        return {**values, "hopeless": list(self.hopeless.items()), "memory": self.memory.to_json()}

    @classmethod
    def from_json(cls, data: dict[str, JsonValue]) -> State:
        """Return the state that `to_json` wrote."""
        return cls(**{
            **data,
            "memory": Memory.from_json(data["memory"]),
            "hopeless": dict(data["hopeless"]),
            "refuge": tuple(data["refuge"]),
            "home": tuple(data.get("home", ())),
            "plots": tuple(data.get("plots", ())),
            "unlocked": tuple(data["unlocked"]),
        })  # fmt: skip
