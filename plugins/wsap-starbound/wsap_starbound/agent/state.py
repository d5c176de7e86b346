"""What the settler remembers between decisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, field
from typing import Annotated

from pydantic import Field, TypeAdapter
from pydantic.dataclasses import dataclass

from wsap_core.protocol.values import JsonValue

WIDTH = 160
"""Columns of a planet's ring."""
Number = Annotated[int, Field(strict=True, ge=-(2**40), le=2**40)]


@dataclass
class State:
    """The settler's memory."""

    step: Number = -1
    """The step of the last observation."""
    maps: dict[str, dict[str, str]] = field(default_factory=dict)
    """Planet -> "x,y" -> character last seen there."""
    shafts: dict[str, Number] = field(default_factory=dict)
    """Planet -> column of the shaft."""
    offsets: dict[str, Number] = field(default_factory=dict)
    """Planet -> how many columns to the left of the lens the ground is dry."""
    tunnels: dict[str, list[list[Number]]] = field(default_factory=dict)
    """Planet -> row and side of the tunnels that are finished."""
    taken: list[str] = field(default_factory=list)
    """Planets whose lens was taken."""
    last: str = ""
    """The last action and where it was taken, to notice that it changed nothing."""
    stuck: Number = 0
    """How often in a row the same was tried in vain."""
    fallback: Number = 0
    """Number of the next way out when stuck."""
    side: Number = -1
    """Where it looks for trees."""
    refused: list[str] = field(default_factory=list)
    """Actions that were refused where it stands."""

    def to_json(self) -> JsonValue:
        """Return it as JSON-ready data."""
        return asdict(self)


_STATE = TypeAdapter(State)


def load_state(data: JsonValue) -> State:
    """Return the state of `to_json`; `ValueError` if the untrusted data is invalid."""
    state: State = _STATE.validate_python(data)
    return state


class Chart:
    """The remembered map of one planet, around a position."""

    def __init__(self, cells: dict[str, str], x: int, y: int) -> None:
        self.cells, self.x, self.y = cells, x, y

    def at(self, dx: int, dy: int) -> str:
        """Return the character at an offset from the feet; "?" if it was never seen."""
        return self.cells.get(f"{(self.x + dx) % WIDTH},{self.y + dy}", "?")

    def take_in(self, rows: Sequence[str], corner: Sequence[int], *, figures: str) -> None:
        """Remember what is on a map; where a creature or body is drawn, what was known stays."""
        left, top = corner
        for row, line in enumerate(rows):
            for column, char in enumerate(line):
                if char == "?":
                    continue
                key = f"{(left + column) % WIDTH},{top + row}"
                if char in figures:
                    self.cells.setdefault(key, " ")
                else:
                    self.cells[key] = char
