"""Noise and chance in whole numbers, the same on every machine."""

from __future__ import annotations

_MASK = (1 << 64) - 1


def mix(*parts: int) -> int:
    """Return a number from 0 to 2**32 - 1 that depends on all parts."""
    state = 0x9E3779B97F4A7C15
    for part in parts:
        state = (state ^ (part & _MASK)) * 0xBF58476D1CE4E5B9 & _MASK
        state ^= state >> 29
        state = state * 0x94D049BB133111EB & _MASK
        state ^= state >> 32
    return state & 0xFFFFFFFF


def ring(seed: int, width: int, step: int) -> list[int]:
    """Return smooth noise along a ring: `width` values from 0 to 1000; `step` is the distance of its support points."""
    count = width // step
    points = [mix(seed, i) % 1001 for i in range(count)]
    values = []
    for x in range(width):
        i, part = divmod(x, step)
        here, there = points[i % count], points[(i + 1) % count]
        values.append(here + (there - here) * part // step)
    return values


def field(seed: int, width: int, height: int, step: int) -> list[list[int]]:
    """Return smooth noise on a cylinder: rows of values from 0 to 1000."""
    rows = [ring(mix(seed, j), width, step) for j in range(height // step + 2)]
    out = []
    for y in range(height):
        j, part = divmod(y, step)
        upper, lower = rows[j], rows[j + 1]
        out.append([a + (b - a) * part // step for a, b in zip(upper, lower, strict=True)])
    return out


class Chance:
    """A stream of random numbers whose whole state is one number."""

    def __init__(self, state: int) -> None:
        self.state = state & _MASK

    def below(self, limit: int) -> int:
        """Return a number from 0 to `limit` - 1."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & _MASK
        return mix(self.state) % limit
