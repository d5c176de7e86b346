"""Observations of MiniGrid, with a brief text and phrases for actions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from typing_extensions import override

from wsap_core.authoring import grid
from wsap_core.protocol.lines import legs
from wsap_minigrid.catalogue import THINGS

ARROWS = ">v<^"
"""The player on the map, by MiniGrid's number of the facing."""
AHEAD = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Offset (east, south) of the cell ahead, by the number of the facing."""
OPEN = ".G_"
"""Map characters of safe cells that can be entered."""


@dataclass(frozen=True, kw_only=True)
class GridObservation(grid.GridObservation):
    """The kernel's grid observation, with the same name in recordings."""

    @override
    def to_brief(self) -> str:
        status = self.status
        things = "; ".join(
            f"{name} {legs((ahead, 'ahead', 'behind'), (right, 'right', 'left'))}"
            for name, ahead, right in self._things()
        )
        goal = self.current_goals[0].description if self.current_goals else "none is left"
        return "\n".join(
            [
                f"Goal: {goal}.",
                f"In your hand: {status.get('in_hand')}. Ahead: {status.get('ahead')}.",
                f"You see: {things or 'walls and floor'}.",
                f"Free cells ahead: {self._free()}.",
            ]
        )

    @override
    def phrases(self) -> Mapping[str, str]:
        things, status = list(self._things()), self.status
        ahead, hand = str(status.get("ahead")), str(status.get("in_hand"))
        in_front = next((name for name, forward, right in things if forward > abs(right)), "")
        left = next((name for name, forward, right in things if right < 0 and forward <= -right), "")
        right = next((name for name, forward, side in things if side > 0 and forward <= side), "")
        verb = "close" if ahead.startswith("open") else "open"
        return {
            "turn_left": f"turn left to the {left}" if left else "turn left",
            "turn_right": f"turn right to the {right}" if right else "turn right",
            "forward": f"go forward to the {in_front}" if in_front else "go forward",
            "pickup": f"pick up the {ahead}",
            "drop": f"put down the {hand}",
            "toggle": f"{verb} the {ahead.removeprefix('open ').removeprefix('closed ')}",
        }

    def _things(self) -> Iterator[tuple[str, int, int]]:
        """Yield all on the map except walls and floor as (name, cells ahead, cells to the right), by distance."""
        names = iter(self.nearby_entities)
        found = [
            (str(next(names).name) if character in THINGS else self.legend[character], column, row)
            for row, cells in enumerate(self.local_map)
            for column, character in enumerate(cells)
            if character in THINGS or character in "G~"
        ]
        x, y, facing = self._place()
        east, south = AHEAD[facing]
        seen = [(n, (c - x) * east + (r - y) * south, (r - y) * east - (c - x) * south) for n, c, r in found]
        yield from sorted(seen, key=lambda thing: abs(thing[1]) + abs(thing[2]))

    def _place(self) -> tuple[int, int, int]:
        """Return the player's column and row on the map, and facing."""
        return next((r.index(c), y, ARROWS.index(c)) for y, r in enumerate(self.local_map) for c in r if c in ARROWS)

    def _free(self) -> int:
        """Return the number of free cells ahead in view."""
        (x, y, facing), rows = self._place(), self.local_map
        east, south = AHEAD[facing]
        count = 0
        while 0 <= (y := y + south) < len(rows) and 0 <= (x := x + east) < len(rows[y]) and rows[y][x] in OPEN:
            count += 1
        return count
