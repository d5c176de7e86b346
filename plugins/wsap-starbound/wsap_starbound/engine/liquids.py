"""Sand and liquids fall by whole tiles; none appears or vanishes but where lava meets water."""

from __future__ import annotations

from collections.abc import Collection

from wsap_starbound.engine.place import AIR, FLOW, LAVA, NUMBER, SPREAD, WATER, Cell, Place

MOST_MOVES = 200
"""Most tiles that move in one beat; the others wait."""


def settle(place: Place, taken: Collection[Cell]) -> None:
    """Let sand and liquids move by one tile. Nothing moves into the cells that are `taken` by bodies or creatures."""
    if not place.restless:
        return
    cells = sorted(place.restless, key=lambda cell: (-cell[1], cell[0]))
    place.restless.clear()
    place.restless.update(cells[MOST_MOVES:])
    for x, y in cells[:MOST_MOVES]:
        flow = FLOW[place.at(x, y)]
        if flow:
            _move(place, x, y, flow, taken)


def _move(place: Place, x: int, y: int, flow: str, taken: Collection[Cell]) -> None:
    tile = place.at(x, y)
    below = place.at(x, y + 1)
    if _meets(place, x, y, tile):
        return
    if below == AIR or (flow == "sand" and below in (WATER, LAVA)):
        if _free(place, x, y + 1, flow, taken):
            _swap(place, x, y, x, y + 1)
        elif (x, y + 1) in taken:
            place.restless.add((x, y))
        return
    if flow == "sand":
        return
    for side in (-1, 1):
        for far in range(1, SPREAD + 1):
            ax = place.wrap(x + side * far)
            if place.at(ax, y) != AIR:
                break
            if place.at(ax, y + 1) == AIR:
                if _free(place, place.wrap(x + side), y, flow, taken):
                    _swap(place, x, y, place.wrap(x + side), y)
                return


def _free(place: Place, x: int, y: int, flow: str, taken: Collection[Cell]) -> bool:
    """Whether a tile may move there: sand stays out of bodies, liquids do not."""
    return place.inside(x, y) and (flow != "sand" or (x, y) not in taken)


def _swap(place: Place, x: int, y: int, ax: int, ay: int) -> None:
    one, other = place.at(x, y), place.at(ax, ay)
    place.put(ax, ay, one)
    place.put(x, y, other)


def _meets(place: Place, x: int, y: int, tile: int) -> bool:
    """Turn lava beside water into basalt; the water is gone."""
    if tile not in (WATER, LAVA):
        return False
    other = LAVA if tile == WATER else WATER
    for ax, ay in ((x, y + 1), (x - 1, y), (x + 1, y), (x, y - 1)):
        if place.at(ax, ay) == other:
            hot, wet = ((x, y), (ax, ay)) if tile == LAVA else ((ax, ay), (x, y))
            place.put(*hot, NUMBER["basalt"])
            place.put(*wet, AIR)
            return True
    return False
