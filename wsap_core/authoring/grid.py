"""Observations of worlds of cells, with a map of characters."""

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
    """An observation of a world of cells; a game that sends it lists it in its spec's `wire_types`."""

    local_map: Sequence[str] = ()
    """The cells in view: rows of equal length, north (or the top) first."""
    legend: Mapping[str, str] = field(default_factory=dict)
    """Character -> meaning; may contain more than is on the map."""

    def to_text(self) -> str:
        """Return the observation as text for a language model, with the map."""
        present = set("".join(self.local_map))
        words = ", ".join(f"{'space' if c == ' ' else c} {word}" for c, word in self.legend.items() if c in present)
        rows = "\n".join(f"|{row}|" for row in self.local_map)
        sections = [("MAP (north up, one character a cell)", f"{rows}\n{words}" if rows else "")]
        return render_avatar(self) + "\n" + render_observation(self, extra_sections=sections)

    def to_view(self) -> View:
        """Return the map as a view."""
        return chart(self.local_map, self.legend)


def chart(rows: Sequence[str], legend: Mapping[str, str], title: str = "") -> View:
    """Return a map as a view, with the legend limited to what is on it."""
    present = set("".join(rows))
    return View([GridMapBlock(rows, {c: word for c, word in legend.items() if c in present}, title)], title)


def compass(east: float, south: float) -> str:
    """Return the nearest compass word, such as "northeast"; "here" for (0, 0)."""
    if not (east or south):
        return "here"
    return _COMPASS[round(math.atan2(south, east) / (math.pi / 4)) % 8]


def offset(east: int, south: int) -> str:
    """Return the offset to another cell in words, such as "2 east, 1 north"; "here" for (0, 0)."""
    return legs((east, "east", "west"), (south, "south", "north"), between=", ")
