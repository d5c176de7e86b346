"""An observation for worlds of cells: the protocol's, with a map in characters of what is in view."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from wsap_core.protocol import EmbodiedObservation, GridMapBlock, View
from wsap_core.protocol.avatars import render_avatar
from wsap_core.protocol.lines import legs
from wsap_core.protocol.observation import render_observation

_COMPASS = ("east", "southeast", "south", "southwest", "west", "northwest", "north", "northeast")


@dataclass(frozen=True, kw_only=True)
class GridObservation(EmbodiedObservation):
    """What is perceived in a world of cells; a world that sends it names it in its spec's `wire_types`."""

    local_map: Sequence[str] = ()
    """What is in view: equal rows of characters, north (or the top) first."""
    legend: Mapping[str, str] = field(default_factory=dict)
    """Character -> what it stands for; may name more than is on the map."""

    def to_text(self) -> str:
        """Return the observation as text for a language model, with the map and what is possible."""
        present = set("".join(self.local_map))
        words = ", ".join(f"{'space' if c == ' ' else c} {word}" for c, word in self.legend.items() if c in present)
        rows = "\n".join(f"|{row}|" for row in self.local_map)
        sections = [("MAP (north up, one character a cell)", f"{rows}\n{words}" if rows else "")]
        return render_avatar(self) + "\n" + render_observation(self, extra_sections=sections)

    def to_view(self) -> View:
        """Return the map, with a legend of what is on it."""
        return chart(self.local_map, self.legend)


def chart(rows: Sequence[str], legend: Mapping[str, str], title: str = "") -> View:
    """Return a map for viewers, with a legend of what is on it."""
    present = set("".join(rows))
    return View([GridMapBlock(rows, {c: word for c, word in legend.items() if c in present}, title)], title)


def compass(east: float, south: float) -> str:
    """Return the compass word nearest to a direction: "northeast"; "here" for none at all."""
    if not (east or south):
        return "here"
    return _COMPASS[round(math.atan2(south, east) / (math.pi / 4)) % 8]


def offset(east: int, south: int) -> str:
    """Return how to count the cells to another one: "2 east, 1 north"; "here" for none at all."""
    return legs((east, "east", "west"), (south, "south", "north"), between=", ")
