"""OpenSimplex noise over arrays of points, bit for bit equal to ``opensimplex.noise3``.

A Crafter world requires noise at about 28,000 points, which takes most of a second with one Python call each. Here the
same arithmetic runs over arrays. The world generator compares noise with zero at points where it is zero except for
rounding, so each point requires the same operations in the same order on the same lattice vertices as in the library.

The library selects six to eight vertices by a tree of comparisons. Here the tree is a table: :func:`_cases` computes
the branch of every point, and :data:`_VERTICES` has the vertices of each branch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from opensimplex import OpenSimplex
from opensimplex.constants import GRADIENTS3, NORM_CONSTANT3, SQUISH_CONSTANT3, STRETCH_CONSTANT3

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_SLOTS = 8
_AXES = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
_NEAR = ((0, 0, 0), *_AXES)
_FAR = ((1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1))
_MIDDLE = (*_AXES, *_FAR[:3])

# The start of each region's branches in the table; a branch adds the point or pair of points that the library's
# comparisons select (bit 1 is x, 2 is y, 4 is z).
_NEAR_CASE, _FAR_CASE, _MIDDLE_CASE = 0, 8, 16

Vertex = tuple[int, int, int]


def _bits(point: int) -> Vertex:
    return point & 1, point >> 1 & 1, point >> 2 & 1


def _twice(point: int) -> Vertex:
    x, y, z = _bits(point)
    return 2 * x, 2 * y, 2 * z


def _opposite(point: int) -> Vertex:
    """Return (1, 1, 1) with -1 on the first axis that ``point`` lacks."""
    axis = 0 if not point & 1 else 1 if not point & 2 else 2
    x, y, z = (-1 if i == axis else 1 for i in range(3))
    return x, y, z


def _near_extra(chosen: int) -> tuple[Vertex, Vertex]:
    if chosen in (1, 2, 4):
        return {1: ((1, -1, 0), (1, 0, -1)), 2: ((-1, 1, 0), (0, 1, -1)), 4: ((-1, 0, 1), (0, -1, 1))}[chosen]
    return _bits(chosen), _opposite(chosen)


def _far_extra(chosen: int) -> tuple[Vertex, Vertex]:
    if chosen in (1, 2, 4):
        return _bits(chosen), _twice(chosen)
    return {3: ((2, 1, 0), (1, 2, 0)), 5: ((2, 0, 1), (1, 0, 2)), 6: ((0, 2, 1), (0, 1, 2))}[chosen]


def _middle_extra(a: int, b: int) -> tuple[Vertex, Vertex, bool]:
    """Return the two extra vertices, and whether the last one subtracts squish before step."""
    a_far, b_far = a in (3, 5, 6), b in (3, 5, 6)
    if a_far and b_far:
        return (1, 1, 1), _twice(a & b), False
    if not a_far and not b_far:
        return (0, 0, 0), _opposite(a | b), False
    far, near = (a, b) if a_far else (b, a)
    return _opposite(far), _twice(near), True


def _tables() -> tuple[Ints, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return vertices by (case, slot, axis), which slots count, and which cases subtract squish first."""
    cases = _MIDDLE_CASE + 64
    vertices = np.zeros((cases, _SLOTS, 3), np.int64)
    counted = np.zeros((cases, _SLOTS), bool)
    squish_first = np.zeros(cases, bool)

    def put(case: int, order: tuple[Vertex, ...], last: bool = False) -> None:
        vertices[case, : len(order)] = order
        counted[case, : len(order)] = True
        squish_first[case] = last

    for chosen in range(1, 7):
        put(_NEAR_CASE + chosen, (*_NEAR, *_near_extra(chosen)))
        put(_FAR_CASE + chosen, (*_FAR, *_far_extra(chosen)))
    for a in (1, 3, 4, 6):
        for b in (1, 2, 5, 6):
            if a != b:
                first, second, last = _middle_extra(a, b)
                put(_MIDDLE_CASE + 8 * a + b, (*_MIDDLE, first, second), last)
    return vertices, counted, squish_first


_VERTICES, _COUNTED, _SQUISH_FIRST = _tables()


def _near_cases(x: Floats, y: Floats, z: Floats, total: Floats) -> Ints:
    a_point, a_score, b_point, b_score = np.full(x.shape, 1), x.copy(), np.full(x.shape, 2), y.copy()
    into_b = (x >= y) & (z > y)
    into_a = (x < y) & (z > x)
    b_point[into_b], b_score[into_b] = 4, z[into_b]
    a_point[into_a], a_score[into_a] = 4, z[into_a]
    rest = 1 - total
    origin_is_close = (rest > a_score) | (rest > b_score)
    return np.where(origin_is_close, np.where(b_score > a_score, b_point, a_point), a_point | b_point)


def _far_cases(x: Floats, y: Floats, z: Floats, total: Floats) -> Ints:
    a_point, a_score, b_point, b_score = np.full(x.shape, 6), x.copy(), np.full(x.shape, 5), y.copy()
    into_b = (x <= y) & (z < y)
    into_a = (x > y) & (z < x)
    b_point[into_b], b_score[into_b] = 3, z[into_b]
    a_point[into_a], a_score[into_a] = 3, z[into_a]
    rest = 3 - total
    corner_is_close = (rest < a_score) | (rest < b_score)
    return np.where(corner_is_close, np.where(b_score < a_score, b_point, a_point), a_point & b_point)


def _middle_cases(x: Floats, y: Floats, z: Floats) -> Ints:
    pairs = (x + y, x + z, y + z)
    scores = [np.where(p > 1, p - 1, 1 - p) for p in pairs]
    a_point = np.where(pairs[0] > 1, 3, 4)
    b_point = np.where(pairs[1] > 1, 5, 2)
    third = np.where(pairs[2] > 1, 6, 1)
    into_a = (scores[0] <= scores[1]) & (scores[0] < scores[2])
    into_b = (scores[0] > scores[1]) & (scores[1] < scores[2])
    a_point = np.where(into_a, third, a_point)
    b_point = np.where(into_b, third, b_point)
    return 8 * a_point + b_point


def _cases(x: Floats, y: Floats, z: Floats) -> Ints:
    """Return each point's row in the table, from its position in its unit cell."""
    total = x + y + z
    cases = np.empty(x.shape, np.int64)
    near = total <= 1
    far = ~near & (total >= 2)
    middle = ~near & ~far
    cases[near] = _NEAR_CASE + _near_cases(x[near], y[near], z[near], total[near])
    cases[far] = _FAR_CASE + _far_cases(x[far], y[far], z[far], total[far])
    cases[middle] = _MIDDLE_CASE + _middle_cases(x[middle], y[middle], z[middle])
    return cases


def noise3_many(simplex: OpenSimplex, x: Floats, y: Floats, z: Floats) -> Floats:
    """Return the noise at each point of three flat coordinate arrays, equal to ``simplex.noise3`` to the last bit."""
    # The permutation is private; the library has no function for arrays of scattered points.
    private: Any = simplex
    perm, gradient_index = private._perm, private._perm_grad_index3
    stretch = (x + y + z) * STRETCH_CONSTANT3
    stretched = (x + stretch, y + stretch, z + stretch)
    base = [np.floor(s) for s in stretched]
    squish = (base[0] + base[1] + base[2]) * SQUISH_CONSTANT3
    d0 = [p - (b + squish) for p, b in zip((x, y, z), base, strict=True)]
    cases = _cases(*(s - b for s, b in zip(stretched, base, strict=True)))
    cell = [b.astype(np.int64) for b in base]
    value = np.zeros(x.shape)
    for slot in range(_SLOTS):
        rows = np.flatnonzero(_COUNTED[cases, slot])
        vertices = _VERTICES[cases[rows], slot]
        squish_first = _SQUISH_FIRST[cases[rows]] & (slot == _SLOTS - 1)
        _add_vertices(value, rows, vertices, squish_first, d0, cell, perm, gradient_index)
    result: Floats = value / NORM_CONSTANT3
    return result


def _add_vertices(
    value: Floats,
    rows: Ints,
    vertices: Ints,
    squish_first: npt.NDArray[np.bool_],
    d0: list[Floats],
    cell: list[Ints],
    perm: Ints,
    gradient_index: Ints,
) -> None:
    """Add the contribution of one lattice vertex of each point to ``value[rows]``."""
    squish = vertices.sum(1) * SQUISH_CONSTANT3
    attenuation = np.full(rows.shape, 2.0)
    deltas = []
    for axis in range(3):
        start, step = d0[axis][rows], vertices[:, axis]
        # The library subtracts step and squish in this order, except for one vertex of one region.
        delta = start - step - squish
        if squish_first.any():
            delta = np.where(squish_first, start - squish - step, delta)
        deltas.append(delta)
        attenuation = attenuation - delta * delta
    felt = np.flatnonzero(attenuation > 0)
    rows, vertices, attenuation = rows[felt], vertices[felt], attenuation[felt]
    corner = [cell[axis][rows] + vertices[:, axis] for axis in range(3)]
    index = gradient_index[(perm[(perm[corner[0] & 0xFF] + corner[1]) & 0xFF] + corner[2]) & 0xFF]
    slope = GRADIENTS3[index] * deltas[0][felt]
    slope = slope + GRADIENTS3[index + 1] * deltas[1][felt]
    slope = slope + GRADIENTS3[index + 2] * deltas[2][felt]
    squared = attenuation * attenuation
    value[rows] += squared * squared * slope
