"""Crafter's clock: a day of 300 steps, from late morning through a night to the next morning."""

from __future__ import annotations

import math

DAY = 300
"""Steps in a day."""


def daylight_at(step: int) -> float:
    """Return the light at a step as ``crafter.Env`` computes it, rounded to 3 digits: 1 at step 60 of each day, 0
    at step 210."""
    return _DAYLIGHT[step % DAY]


def phase_at(step: int) -> str:
    """Return "day", "dusk" or "dawn" below a light of 0.5, where the game's picture gets noisy, "night" below 0.2."""
    return _PHASES[step % DAY]


def turn_at(step: int) -> str | None:
    """Return a sentence such as "It is getting dark." if another phase starts at this step, or None."""
    return _TURNS.get(step % DAY)


def _daylight(step: int) -> float:
    return round(1 - abs(math.cos(math.pi * (step / DAY + 0.3))) ** 3, 3)


def _phase(step: int) -> str:
    light = _DAYLIGHT[step]
    if light >= 0.5:
        return "day"
    if light < 0.2:
        return "night"
    return "dusk" if step < 210 else "dawn"


_DAYLIGHT = tuple(_daylight(step) for step in range(DAY))
_PHASES = tuple(_phase(step) for step in range(DAY))
_SAYINGS = {
    "dusk": "It is getting dark.",
    "night": "Night has fallen.",
    "dawn": "The day is breaking.",
    "day": "It is day again.",
}
_TURNS = {step: _SAYINGS[_PHASES[step]] for step in range(DAY) if step and _PHASES[step] != _PHASES[step - 1]}
