"""Checks that the observations and results of a game hold what their types declare."""

from __future__ import annotations

import math
from collections.abc import Mapping

from wsap_core.protocol import (
    ActionAvailability,
    ActionResult,
    Effect,
    Entity,
    Event,
    Goal,
    Location,
    Observation,
    Terrain,
)
from wsap_core.untrusted import single_line

_PARTS: Mapping[str, type] = {
    "nearby_entities": Entity,
    "nearby_terrain": Terrain,
    "active_effects": Effect,
    "current_goals": Goal,
    "recent_events": Event,
    "available_actions": ActionAvailability,
}
"""List in an observation -> type of its items."""


def wrong_in_result(result: ActionResult) -> str:
    """Return what is invalid in a result, in words that follow "answered with"; "" if nothing is."""
    observation: object = result.observation  # a game may put anything into any field
    message: object = result.message
    if not isinstance(observation, Observation):
        return f"a result whose observation is a {type(observation).__name__}"
    if not isinstance(message, str):
        return f"a message that is a {type(message).__name__}, not a text"
    if not all(isinstance(name, str) for name in result.achievements):
        return "achievements that are not all names"
    try:
        finite = math.isfinite(result.reward)
    except (TypeError, ValueError, OverflowError):
        finite = False
    if not finite:
        return f"a reward that is not a finite number: {single_line(repr(result.reward))[:40]}"
    return wrong_in_observation(observation)


def wrong_in_observation(seen: Observation) -> str:
    """Return what is invalid in an observation, in words that follow "observed"; "" if nothing is."""
    location: object = seen.location
    step: object = seen.step
    if not isinstance(location, Location):
        return f"a location that is a {type(location).__name__}, not a Location"
    if type(step) is not int or step < 0:
        return f"a step that does not count from 0: {single_line(repr(step))[:40]}"
    for name in ("status", "inventory"):
        if not isinstance(getattr(seen, name), Mapping):
            return f"{name} that is a {type(getattr(seen, name)).__name__}, not a mapping"
    for name, kind in _PARTS.items():
        for part in getattr(seen, name) or ():
            if not isinstance(part, kind):
                return f"{name} with a {type(part).__name__} among them, where each is of the type {kind.__name__}"
    return ""
