"""Values as text, for comparing what a game said at two times or in two places."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import EmbodiedObservation, Observation
from wsap_core.protocol.wire import dumps

# Any, in this module: whatever a game put into its observations.


def text_of(value: Any) -> str:
    """Return a value's canonical text on the wire, or its fresh text where the wire can't carry it."""
    try:
        return dumps(value)
    except WireError:
        return fresh_text(value)


def fresh_text(value: Any) -> str:
    """Return a text of everything in a value as it is at this moment.

    Unlike `dumps` it keeps nothing with the value, so it notices what was changed behind a frozen
    dataclass's back, and it has a word for what JSON has none for.
    """
    return json.dumps(_plain(value), sort_keys=True)


def without_biography(observation: Observation) -> Observation:
    """Return an observation without what a body keeps of its earlier lives.

    Playing time, deaths and the like rightly differ between the first and a later episode.
    """
    if not isinstance(observation, EmbodiedObservation):
        return observation
    avatar = replace(
        observation.avatar, total_playtime=0, death_count=0, created_at="", last_active="", respawn_point=None
    )
    return replace(observation, avatar=avatar)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, Enum):
        return _plain(value.value)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
        return {"$class": type(value).__qualname__, **parts}
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return {"$set": sorted(json.dumps(_plain(item), sort_keys=True) for item in value)}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return f"<{type(value).__qualname__}>"
