"""What the storage gives and takes: runs and events as plain frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from wsap_core.errors import StorageError


class RunStatus(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    """Being played, or its process died without a word: compare `RunRecord.updated`."""
    FINISHED = "finished"
    """Played to its end."""
    INTERRUPTED = "interrupted"
    """Stopped by a person or a limit; can be resumed."""
    FAILED = "failed"
    """Ended by an error, which the summary or the last event tells."""


@dataclass(frozen=True, kw_only=True)
class NewRun:
    """What is known of a run when it starts."""

    game: str
    """The game's name, or `path:attribute` for one that is not packaged."""
    agent: str
    """A label for a reader: the agent's name, or the seats and theirs."""
    seed: int = 0
    """From 0 to 2**31 - 1."""
    step_limit: int | None = None
    """`--steps`; None for one episode to its end."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Everything needed to start it again, JSON-ready."""


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """One run as the database has it."""

    id: str
    """Short, readable, sorted by day: `20261120-crafter-7f3a`."""
    game: str
    """The game's name."""
    agent: str
    """A label of who plays."""
    seed: int
    """The seed it was started with."""
    step_limit: int | None
    """The most steps it may take; None for one episode to its end."""
    config: Mapping[str, Any]
    """Everything needed to start it again."""
    status: RunStatus
    """How it stands."""
    created: str
    """When it started: wall clock, ISO 8601, UTC."""
    updated: str
    """When something of it was last committed: wall clock, ISO 8601, UTC."""
    wsap_version: str
    """The version of wsap-nexus that started it."""
    protocol_version: str
    """The protocol version of its bodies."""
    summary: Mapping[str, Any] | None
    """What `wsap play --json` printed at its end; None while there is none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EventRecord:
    """One event of a run, with its body exactly as it was appended."""

    run_id: str
    """The run it belongs to."""
    seq: int
    """Its number in the run: 0, 1, 2, ... without gaps."""
    kind: str
    """"episode", "step", "snapshot", "death", "end", "run", ...; open."""
    seat: str | None
    """Whose it is; None for the run's own."""
    episode: int
    """Counted from 0."""
    step: int | None
    """The step in the episode, where the event has one."""
    time: float
    """Wall clock when it was appended, seconds since 1970, UTC."""
    body: bytes
    """JSON text in UTF-8 or, where `is_text` is false, whatever bytes were appended."""
    is_text: bool
    """Whether it was appended as text."""

    @property
    def data(self) -> Any:
        """Return the body, decoded from JSON.

        Raises:
            StorageError: the body is not JSON.
        """
        # Any: bodies are open; who asks knows what the kind holds.
        try:
            return json.loads(self.body)
        except ValueError:
            raise StorageError(
                f"Event {self.seq} of run {self.run_id!r} ({self.kind}) has a body that is not JSON; read it as bytes."
            ) from None
