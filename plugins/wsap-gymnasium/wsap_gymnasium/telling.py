"""Observations and actions of Gymnasium environments in words and numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from wsap_core.untrusted import strip_control

# Any, in this module: whatever an environment observes.

MOST_NUMBERS = 64
"""Maximum number of numbers that are told."""


def numbers_in(space: spaces.Space[Any]) -> int | None:
    """Return how many numbers an observation of a space is; None if it can't be told in numbers and words."""
    match space:
        case spaces.Discrete() | spaces.Text():
            return 1
        case spaces.Box() | spaces.MultiDiscrete() | spaces.MultiBinary():
            return int(np.prod(space.shape))
        case spaces.Tuple():
            parts: Sequence[spaces.Space[Any]] = space.spaces
        case spaces.Dict():
            parts = list(space.spaces.values())
        case _:
            return None
    counts = [numbers_in(part) for part in parts]
    return None if any(count is None for count in counts) else sum(count or 0 for count in counts)


def told(value: Any, names: Sequence[str], prefix: str = "") -> dict[str, Any]:
    """Return an observation as names and values, with the names of its numbers where these are known."""
    if isinstance(value, Mapping):
        return {key: each for name, part in value.items() for key, each in told(part, (), f"{prefix}{name}").items()}
    if isinstance(value, tuple):
        parts = [told(part, (), names[i] if i < len(names) else f"{prefix}{i}") for i, part in enumerate(value)]
        return {key: each for part in parts for key, each in part.items()}
    if isinstance(value, np.ndarray) and value.ndim:
        flat = [_plain(each) for each in value.ravel().tolist()]
        if len(flat) == len(names):
            return dict(zip(names, flat, strict=True))
        return {f"{prefix or 'x'}{number}": each for number, each in enumerate(flat)}
    return {names[0] if len(names) == 1 else prefix or "state": _plain(value)}


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return strip_control(value)
    number = value.item() if hasattr(value, "item") else value
    return round(number, 4) if isinstance(number, float) else number


def lines_of(doc: str, heading: str) -> str:
    """Return a section of an environment's documentation, without its heading; empty if there is none."""
    found = re.search(rf"^\s*#+\s*{heading}\s*$(?P<text>.*?)(?=^\s*#+\s|\Z)", doc, re.MULTILINE | re.DOTALL)
    return found["text"].strip() if found else ""


def names_of_numbers(doc: str) -> list[str]:
    """Return the names of observed numbers in the table that environments of the classic kind document."""
    rows = re.findall(r"^\s*\|\s*(\d+)\s*\|\s*([^|]+?)\s*\|", lines_of(doc, "Observation Space"), re.MULTILINE)
    return [name for _, name in rows]


def names_of_actions(doc: str, count: int) -> list[str]:
    """Return words for the actions in an environment's documentation (`- 0: Move left`); empty if some are missing."""
    found = re.findall(r"^\s*[-*|]?\s*`?(\d+)`?\s*[:|]\s*([^|\n]+)", lines_of(doc, "Action Space"), re.MULTILINE)
    words = {int(number): word.strip() for number, word in found}
    return [words[number] for number in range(count)] if set(range(count)) <= set(words) else []


def word(text: str) -> str:
    """Return a name of an action from words about it: "Move left" is move_left."""
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")[:40]
