"""Runs and events as plain frozen data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import PurePath
from typing import Any

from wsap_core.protocol.values import JsonValue
from wsap_nexus.store.errors import UnreadableError
from wsap_nexus.store.json_values import read_json


class RunStatus(StrEnum):
    """The status of a run."""

    RUNNING = "running"
    """Being played, or its process was killed: compare `RunRecord.updated`."""
    FINISHED = "finished"
    """Played to its end."""
    INTERRUPTED = "interrupted"
    """Stopped by a person or a limit; can be resumed."""
    FAILED = "failed"
    """Ended by an error, which is in the summary or the last event."""


TOTALS = "totals"
"""The kind of the event with everything counted up to it; its `step` is the number of steps so far."""


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """The description of a run at its start."""

    game: str
    """The game's name, or `path:attribute` for an unpackaged one."""
    agent: str
    """A label: the agent's name, or the seats with their agents."""
    seed: int = 0
    """From 0 to 2**31 - 1."""
    step_limit: int | None = None
    """`--steps`; None for one episode to its end."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Everything needed to start it again, JSON-ready."""
    id: str | None = None
    """The requested id, of lower-case letters, digits, dots, dashes and underscores; None to generate one."""


@dataclass(frozen=True, kw_only=True)
class RunRecord(NewRun):
    """A run in the database."""

    id: str
    """Short, readable, sorted by day: `20261120-crafter-7f3a`."""
    status: RunStatus
    created: str
    """Start time, ISO 8601, UTC."""
    updated: str
    """Time of the last commit, ISO 8601, UTC."""
    wsap_version: str
    """The version of wsap-nexus that started it."""
    protocol_version: str
    """The protocol version of its bodies."""
    summary: Mapping[str, Any] | None
    """The output of `wsap play --json`; None before the end."""

    def __repr__(self) -> str:
        return (
            f"RunRecord({self.id!r}, game={self.game!r}, agent={self.agent!r}, seed={self.seed}, "
            f"status={self.status.value!r}, created={self.created!r})"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class EventRecord:
    """An event of a run, with its body as it was appended."""

    run_id: str
    seq: int
    """Its number in the run: 0, 1, 2, ... without gaps."""
    kind: str
    """"episode", "step", "snapshot", "death", "end", "run", ...; an open set."""
    seat: str | None
    """None for an event of the whole run."""
    episode: int
    """Counted from 0."""
    step: int | None
    """The step in the episode, if any."""
    time: float
    """When it was appended: seconds since 1970."""
    body: bytes
    """JSON text in UTF-8, or any bytes if `is_text` is false."""
    is_text: bool

    @property
    def data(self) -> JsonValue:
        """The body, decoded from JSON; UnreadableError if it is not JSON."""
        try:
            return read_json(self.body)
        except ValueError:
            raise UnreadableError(
                f"Event {self.seq} of run {self.run_id!r} ({self.kind}) has a body that is not JSON; read it as bytes."
            ) from None


SEAT, EVERYONE = "seat", "everyone"
"""The audiences of moments: the owner with whoever may see what is private to the player, and everybody."""


@dataclass(frozen=True, slots=True)
class NewMoment:
    """Something that happened in a step and is worth telling, as it is written with the step."""

    kind: str
    """`achievement`, `again` (one that the player has achieved before), `died` or `hit`."""
    weight: float
    """How much it draws the eye, from 0 to 100."""
    audience: str
    """Who may read it: `SEAT` or `EVERYONE`."""
    words: Mapping[str, str]
    """Language, `en` or `ru` -> what follows the player's name in the sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MomentRecord:
    """A moment of a run in the database."""

    run_id: str
    seq: int
    """The event that it was written with."""
    number: int
    """Its number among the moments of that event, from 0."""
    seat: str
    agent: str
    """The agent of the nexus in the seat; elsewhere the seat."""
    step: int
    """The number of the seat's decision in the run, from 1."""
    time: float
    """When the event was appended: seconds since 1970."""
    kind: str
    weight: float
    audience: str
    words: Mapping[str, str]
    """As in `NewMoment`."""

    def told(self, language: str) -> str:
        """Return what follows the player's name, in English where the language is not known."""
        return self.words.get(language) or self.words.get("en", "")


_LONGEST_SLUG = 24


def new_run_id(game: str, now: datetime, token: str) -> str:
    """Return a run id such as `20261120-crafter-7f3a`; `token` is its last part, which makes it unique."""
    return f"{now:%Y%m%d}-{_slug(game)}-{token}"


def _slug(game: str) -> str:
    path, _, attribute = game.rpartition(":")
    name = attribute if path else game
    name = PurePath(name).stem if "/" in name or "\\" in name else name
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower())[:_LONGEST_SLUG].strip("-")
    return slug or "game"
