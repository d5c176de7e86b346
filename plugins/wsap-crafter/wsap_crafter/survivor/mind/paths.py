"""The cheapest path to a goal on the remembered map, including digging and bridging."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import lru_cache

from wsap_crafter.survivor.mind.grid import DIRECTIONS, SIZE
from wsap_crafter.survivor.mind.knowledge import COAL, DIAMOND, GRASS, IRON, PATH, SAND, STONE, TREE, WATER

FAR = 1 << 20
"""A price above that of any path."""
_MOST_STEP = 8
"""Maximum price of a single step in a cost table."""


@lru_cache(maxsize=64)
def cost_table(pickaxe: int, bridges: bool, dark: bool) -> tuple[int, ...]:
    """Return the price of entering each kind of ground, in game steps; 0 if it can't be entered.

    `pickaxe` is 0 for none, 1 for wood, 2 for stone, 3 for iron. Digging costs a turn or a hit besides the step. With a
    stone, and a pickaxe to collect it again, water is crossed stone by stone. At night grass is expensive because of
    zombies. Lava is never crossed: turning to it is walking into it.
    """
    table = [0] * 128
    table[SAND] = 1
    table[PATH] = 4 if dark else 2
    table[GRASS] = 8 if dark else 1
    table[TREE] = 4
    if pickaxe >= 1:
        table[STONE] = table[COAL] = 3
    if pickaxe >= 2:
        table[IRON] = 3
    if pickaxe >= 3:
        table[DIAMOND] = 3
    if pickaxe and bridges:
        table[WATER] = 5
    return tuple(table)


def costs_for(inventory: Mapping[str, int], dark: bool = False) -> tuple[int, ...]:
    """Return the cost table of a player with this inventory."""
    pickaxe = 0
    for level, tool in enumerate(("wood_pickaxe", "stone_pickaxe", "iron_pickaxe"), 1):
        if inventory.get(tool):
            pickaxe = level
    return cost_table(pickaxe, inventory.get("stone", 0) > 0, dark)


def find_route(
    ground: bytearray,
    start: int,
    costs: tuple[int, ...],
    *,
    wanted: bytes = b"",
    cells: Container[int] = (),
    blocked: Container[int] = (),
    kept: Container[int] = (),
    limit: int = FAR,
) -> list[int] | None:
    """Return the cheapest path as a list of cells from after the start to the goal; None if there is none.

    A goal is a cell whose ground is `wanted`, except `kept` cells, or one of `cells`; entering it costs 1 whatever is
    there, because goals such as trees and cows are used from beside them. `blocked` cells are entered only as goals.
    Ties go to the first direction in `grid.DIRECTIONS`. If the start is in `cells`, the path is empty.
    """
    if start in cells:
        return []
    best = [FAR] * SIZE
    parent = [0] * SIZE
    best[start] = 0
    buckets: list[list[int]] = [[] for _ in range(_MOST_STEP + 1)]
    buckets[0].append(start)
    goals: set[int] = set()
    price, waiting = 0, 1
    while waiting and price <= limit:
        bucket = buckets[price % (_MOST_STEP + 1)]
        for cell in bucket:
            waiting -= 1
            if best[cell] != price:
                continue
            if cell in goals:
                return _trace(parent, start, cell)
            for step in DIRECTIONS:
                near = cell + step
                if near in cells or (ground[near] in wanted and near not in kept):
                    cost = 1
                    goals.add(near)
                else:
                    cost = costs[ground[near]]
                    if not cost or near in blocked:
                        continue
                if price + cost < best[near]:
                    best[near] = price + cost
                    parent[near] = cell
                    buckets[(price + cost) % (_MOST_STEP + 1)].append(near)
                    waiting += 1
        bucket.clear()
        price += 1
    return None


def _trace(parent: list[int], start: int, cell: int) -> list[int]:
    way = []
    while cell != start:
        way.append(cell)
        cell = parent[cell]
    way.reverse()
    return way


def spread(
    ground: bytearray,
    start: int,
    costs: tuple[int, ...],
    visit: Callable[[int, int], bool],
    *,
    blocked: Container[int] = (),
    limit: int = FAR,
) -> None:
    """Call `visit(cell, price)` for every cell in reach, nearest first, until it returns True or `limit` is passed."""
    best = [FAR] * SIZE
    best[start] = 0
    buckets: list[list[int]] = [[] for _ in range(_MOST_STEP + 1)]
    buckets[0].append(start)
    price, waiting = 0, 1
    while waiting and price <= limit:
        bucket = buckets[price % (_MOST_STEP + 1)]
        for cell in bucket:
            waiting -= 1
            if best[cell] != price:
                continue
            if visit(cell, price):
                return
            for step in DIRECTIONS:
                near = cell + step
                cost = costs[ground[near]]
                if cost and price + cost < best[near] and near not in blocked:
                    best[near] = price + cost
                    buckets[(price + cost) % (_MOST_STEP + 1)].append(near)
                    waiting += 1
        bucket.clear()
        price += 1
