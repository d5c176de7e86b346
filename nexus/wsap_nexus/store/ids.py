"""Ids of runs: short enough to type, sorted by day, with the game's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from pathlib import PurePath

_LONGEST_SLUG = 24


def new_run_id(game: str, now: datetime, token: Callable[[], str]) -> str:
    """Return a run id such as `20261120-crafter-7f3a`.

    Args:
        game: the game's name, or `path:attribute`; only letters and digits of it are used.
        now: the day is taken from it.
        token: returns the last part, which distinguishes runs of one day.
    """
    return f"{now:%Y%m%d}-{_slug(game)}-{token()}"


def _slug(game: str) -> str:
    path, _, attribute = game.rpartition(":")
    name = attribute if path else game
    name = PurePath(name).stem if "/" in name or "\\" in name else name
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_LONGEST_SLUG].strip("-")
    return slug or "game"
