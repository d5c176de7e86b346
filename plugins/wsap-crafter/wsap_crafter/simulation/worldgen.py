"""Crafter's world generator over arrays: the same map and creatures in a thirtieth of the time.

The formulas are those of ``crafter.worldgen``: noise fields determine the kind of ground of a cell, and some kinds then
draw random numbers. Noise is computed for arrays, and only for the cells that need it; random numbers are drawn cell by
cell in the game's order, so that the same seed gives the same world. The tests compare whole worlds with the original.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from opensimplex import OpenSimplex

from wsap_crafter.simulation.game import Object, Player, constants
from wsap_crafter.simulation.noise import Floats, noise3_many
from wsap_crafter.simulation.world import OrderedWorld

Mask = npt.NDArray[np.bool_]
Maker = Callable[[str, tuple[int, int]], Object]
"""Creates a "Cow", "Zombie" or "Skeleton" at a position."""

# Kinds of cells whose material depends on random numbers.
_TREE, _ROCK = 1, 2


class _Fields:
    """Noise over the cells of one world by the game's parameters (z, sizes)."""

    def __init__(self, simplex: OpenSimplex, area: tuple[int, int]) -> None:
        self._simplex = simplex
        x, y = np.meshgrid(np.arange(area[0]), np.arange(area[1]), indexing="ij")
        self.x, self.y = x.ravel().astype(float), y.ravel().astype(float)

    def everywhere(self, *requests: tuple[float, float]) -> list[Floats]:
        """Return the noise of each (z, size) for all cells."""
        x = np.concatenate([self.x / size for _, size in requests])
        y = np.concatenate([self.y / size for _, size in requests])
        z = np.concatenate([np.full(self.x.size, float(depth)) for depth, _ in requests])
        return np.split(noise3_many(self._simplex, x, y, z), len(requests))

    def where(self, mask: Mask, depth: float, size: float, *, x_scale: float = 1, y_scale: float = 1) -> Floats:
        """Return the noise of one field for the cells of ``mask``, and -1 elsewhere. ``x_scale`` and ``y_scale``
        multiply the coordinates; if below 1 they divide them by a whole number."""
        cells = np.flatnonzero(mask)
        x, y = self.x[cells], self.y[cells]
        x = x * x_scale if x_scale >= 1 else x / round(1 / x_scale)
        y = y * y_scale if y_scale >= 1 else y / round(1 / y_scale)
        out = np.full(mask.size, -1.0)
        out[cells] = noise3_many(self._simplex, x / size, y / size, np.full(cells.size, float(depth)))
        return out


def generate_world(world: OrderedWorld, player: Player, make: Maker) -> None:
    """Fill ``world`` with ground and creatures, drawing from ``world.random``."""
    simplex = OpenSimplex(seed=world.random.randint(0, 2**31 - 1))
    tunnels = _set_materials(world, player, _Fields(simplex, world.area))
    _set_creatures(world, player, tunnels, make)


def _set_materials(world: OrderedWorld, player: Player, fields: _Fields) -> Mask:
    """Set every cell's material and return a mask of the tunnels."""
    px, py = (int(v) for v in player.pos)
    noises = fields.everywhere((8, 3), (3, 15), (3, 5), (0, 15), (0, 5))
    n_start, n_water, n_ripple, n_mountain, n_crag = noises
    start = 4 - np.sqrt((fields.x - px) ** 2 + (fields.y - py) ** 2)
    start = start + 2 * n_start
    start = 1 / (1 + np.exp(-start))
    water = (1 * n_water + 0.15 * n_ripple) + 0.1
    water = water - 2 * start
    mountain = (1 * n_mountain + 0.3 * n_crag) / (1 + 0.3)
    mountain = mountain - (4 * start + 0.3 * water)

    ids = world.material_ids
    out = np.full(start.size, ids["grass"], np.uint8)
    wild = ~(start > 0.5)
    rock = wild & (mountain > 0.15)
    cave = rock & (mountain > 0.3)
    cave &= fields.where(cave, 6, 7) > 0.15
    solid = rock & ~cave
    horizontal = solid & (fields.where(solid, 7, 3, x_scale=2, y_scale=1 / 5) > 0.4)
    solid &= ~horizontal
    vertical = solid & (fields.where(solid, 7, 3, x_scale=1 / 5, y_scale=2) > 0.4)
    solid &= ~vertical
    tunnels: Mask = horizontal | vertical
    out[cave | tunnels] = ids["path"]

    lowland = wild & ~rock
    shore = lowland & (water > 0.25) & (water <= 0.35)
    sand = shore & (fields.where(shore, 4, 9) > -0.2)
    lake = lowland & ~sand & (water > 0.3)
    out[sand], out[lake] = ids["sand"], ids["water"]
    meadow = lowland & ~sand & ~lake
    wooded = meadow & (fields.where(meadow, 5, 7) > 0)

    draws = np.zeros(start.size, np.uint8)
    draws[wooded], draws[solid] = _TREE, _ROCK
    coal = solid & (fields.where(solid, 1, 8) > 0)
    iron = solid & (fields.where(solid, 2, 6) > 0.4)
    deep = solid & (mountain > 0.3)
    lava = deep & (fields.where(deep, 6, 5) > 0.35)
    gem = solid & (mountain > 0.18)
    _draw_materials(world, out, draws, coal, iron, gem, lava)
    world.set_materials(out.reshape(world.area))
    return tunnels


def _draw_materials(
    world: OrderedWorld,
    out: npt.NDArray[np.uint8],
    draws: npt.NDArray[np.uint8],
    coal: Mask,
    iron: Mask,
    gem: Mask,
    lava: Mask,
) -> None:
    """Set trees and ores, drawing from the game's generator in the game's order of cells."""
    ids, uniform = world.material_ids, world.random.uniform
    cells = np.flatnonzero(draws)
    columns = [column[cells].tolist() for column in (draws, coal, iron, gem, lava)]
    for cell, kind, may_coal, may_iron, may_gem, is_lava in zip(cells.tolist(), *columns, strict=True):
        if kind == _TREE:
            if uniform() > 0.8:
                out[cell] = ids["tree"]
        elif may_coal and uniform() > 0.85:
            out[cell] = ids["coal"]
        elif may_iron and uniform() > 0.75:
            out[cell] = ids["iron"]
        elif may_gem and uniform() > 0.994:
            out[cell] = ids["diamond"]
        else:
            out[cell] = ids["lava"] if is_lava else ids["stone"]


def _set_creatures(world: OrderedWorld, player: Player, tunnels: Mask, make: Maker) -> None:
    """Add cows, zombies and skeletons on walkable cells, drawing in the game's order of cells."""
    px, py = (int(v) for v in player.pos)
    uniform, height = world.random.uniform, world.area[1]
    ids = world.material_ids
    grass, path = ids["grass"], ids["path"]
    ground = world.materials.ravel()
    cells = np.flatnonzero(np.isin(ground, [ids[name] for name in constants.walkable]))
    columns = (cells.tolist(), ground[cells].tolist(), tunnels[cells].tolist())
    for cell, material, tunnel in zip(*columns, strict=True):
        x, y = divmod(cell, height)
        squared = (x - px) ** 2 + (y - py) ** 2
        if squared > 9 and material == grass and uniform() > 0.985:
            world.add(make("Cow", (x, y)))
        elif squared > 100 and uniform() > 0.993:
            world.add(make("Zombie", (x, y)))
        elif tunnel and material == path and uniform() > 0.95:
            world.add(make("Skeleton", (x, y)))
