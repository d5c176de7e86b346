"""Recorded steps, and canonical texts to compare them between worlds and processes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import Action, ActionResult, EmbodiedObservation, Observation
from wsap_core.protocol.wire import dumps

# Any, in this module: anything that a game put into its observations.


def text_of(value: Any) -> str:
    """Return a value's canonical JSON, or its `fresh_text` if it has none."""
    try:
        return dumps(value)
    except WireError:
        return fresh_text(value)


def fresh_text(value: Any) -> str:
    """Return a text of everything in a value. Unlike `dumps` it is not cached, so that it reveals changes inside a
    frozen dataclass, and it supports values that JSON does not."""
    return json.dumps(_plain(value), sort_keys=True)


def without_biography(observation: Observation) -> Observation:
    """Return an observation without the avatar's playtime, deaths and so on, which may differ between episodes."""
    if not isinstance(observation, EmbodiedObservation):
        return observation
    avatar = replace(
        observation.avatar, total_playtime=0, death_count=0, created_at="", last_active="", respawn_point=None
    )
    return replace(observation, avatar=avatar)


@dataclass(frozen=True)
class Step:
    """One decision and its result."""

    seed: int
    episode: int
    number: int
    """Number of the seat's step in this episode, from 0."""
    seat: str
    before: Observation
    action: Action
    result: ActionResult

    @property
    def where(self) -> str:
        """The step's place, for findings."""
        return place(self.seed, self.episode, self.number, self.seat, self.action)

    def text(self) -> str:
        """Return the step as canonical text."""
        return f"{self.seat}\t{text_of(self.before)}\t{text_of(self.action)}\t{text_of(self.result)}"


def place(seed: int, episode: int, number: int, seat: str = "", action: Action | None = None) -> str:
    """Return a place in play, for findings."""
    parts = [f"seed {seed}", *([f"episode {episode}"] if episode else []), f"step {number}"]
    parts += [f"seat {seat}"] if seat else []
    if action is not None:
        given = ", ".join(f"{k}={str(v)[:40]!r}" for k, v in action.parameters.items())
        parts.append(f"action {action.name}({given})" if given else f"action {action.name}")
    return ", ".join(parts)


def first_difference(one: Sequence[Step], other: Sequence[Step]) -> tuple[str, str] | None:
    """Return the first difference between two traces and its place, or None if they are equal."""
    for a, b in zip(one, other, strict=False):
        if text_of(a.before) != text_of(b.before):
            return _difference(a.before, b.before), place(a.seed, a.episode, a.number, a.seat)
        if text_of(a.action) != text_of(b.action):
            return f"the actions {a.action.name} and {b.action.name}", a.where
        if text_of(a.result) != text_of(b.result):
            return _difference(a.result, b.result), a.where
    if len(one) == len(other):
        return None
    short, long = sorted((len(one), len(other)))
    return f"one is over after {short} steps, the other after {long}", (one or other)[max(short - 1, 0)].where


def difference_by_seat(one: Sequence[Step], other: Sequence[Step]) -> tuple[str, str] | None:
    """Return the first difference between the steps of the same seat in two traces, up to the shorter length."""
    for name in sorted({step.seat for step in one}):
        mine, theirs = ([s for s in trace if s.seat == name] for trace in (one, other))
        length = min(len(mine), len(theirs))
        if found := first_difference(mine[:length], theirs[:length]):
            return found
    return None


def _difference(one: object, other: object, what: str = "observation.") -> str:
    if isinstance(one, ActionResult) and isinstance(other, ActionResult):
        if text_of(one.observation) != text_of(other.observation):
            return "result." + _difference(one.observation, other.observation)
        what = "result."
    if type(one) is not type(other):
        return f"{what}a {type(one).__name__} and a {type(other).__name__}"
    for name in sorted(name for name in vars(one) if not name.startswith("_")):
        a, b = text_of(getattr(one, name)), text_of(getattr(other, name, None))
        if a != b:
            return f"{what}{name}: {a[:120]} and {b[:120]}"
    return f"{what}something"


_ATOMS = frozenset({type(None), bool, int, str})


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind in _ATOMS:  # most values; the others take their time
        return value
    if names := _field_names(kind):  # type: ignore[arg-type]  # classes hash
        return {"$class": kind.__qualname__, **{name: _plain(getattr(value, name)) for name in names}}
    if kind is list or kind is tuple:
        return [item if type(item) in _ATOMS else _plain(item) for item in value]
    if isinstance(value, int | str):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, set | frozenset):
        return {"$set": sorted(json.dumps(_plain(item), sort_keys=True) for item in value)}
    return _plain(value.tolist()) if hasattr(value, "tolist") else f"<{kind.__qualname__}>"


@lru_cache(maxsize=1024)
def _field_names(kind: type) -> tuple[str, ...]:
    """Return the names of a dataclass' fields; none for another class, an enumeration too."""
    return tuple(f.name for f in fields(kind)) if is_dataclass(kind) and not issubclass(kind, Enum) else ()
