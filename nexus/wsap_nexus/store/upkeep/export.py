"""A run as JSON lines, for analysis and training."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from wsap_core.protocol import wire
from wsap_nexus.store.history import newest_tick, read_history
from wsap_nexus.store.records import EventRecord, RunRecord
from wsap_nexus.store.repository import Repository

FORMAT = "wsap-run"
"""The format's name in the first line."""
FORMAT_VERSION = 1
"""Increased by each incompatible change."""


def export_jsonl(repository: Repository, run_id: str, *, kinds: Collection[str] | None = None) -> Iterator[str]:
    """Yield a run as lines of canonical JSON without line ends: a header, then one line per event.

    `docs/reference/event-log.md` describes them; the same run gives the same lines. `run_id` is any name that
    `Repository.get_run` accepts.

    Raises:
        UnknownNameError: there is no such run.
        StorageError: the database can't be read, or a body is damaged.
    """
    run = repository.get_run(run_id)
    yield wire.dumps(_header(run))
    for event in repository.read_events(run.id, kinds=kinds):
        yield wire.dumps(event_data(event))


class RecordedRuns:
    """The kernel's `RunReader`: each method raises UnknownNameError if there is no such run."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def events(self, run: str, *kinds: str, after: int = -1) -> Iterator[Mapping[str, Any]]:
        """Yield the events of a run, oldest first, as in the export."""
        # Most callers have the whole id, and a prefix takes longer to find.
        run_id = run if self._repository.has_run(run) else self._repository.get_run(run).id
        for event in self._repository.read_events(run_id, from_seq=after + 1, kinds=kinds or None):
            yield event_data(event)

    def about(self, run: str) -> Mapping[str, Any]:
        """Return a run's header, the first line of its export."""
        return _header(self._repository.get_run(run))

    def ticks(self, run: str) -> int:
        """Return the number of a run's newest tick that was not rewound."""
        return newest_tick(self._repository, self._repository.get_run(run))

    def history(self, run: str, *kinds: str, first: int = 1, last: int | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield the events of ticks, without rewound ones; see `wsap_core.seams.services.RunReader`."""
        for event in read_history(self._repository, self._repository.get_run(run), kinds, first, last):
            yield event_data(event)

    def waiting(self, run: str) -> Sequence[Mapping[str, Any]]:
        """Return the influences that wait for the next tick of a run, oldest first."""
        return [body for _, body in self._repository.inbox(self._repository.get_run(run).id)]

    def runs(self) -> Sequence[str]:
        """Return the ids of all runs, newest first."""
        return [run.id for run in self._repository.list_runs()]


def _header(run: RunRecord) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "run": run.id,
        **{name: value for name, value in vars(run).items() if name != "id"},
        "status": run.status.value,
    }


def event_data(event: EventRecord) -> dict[str, Any]:
    """Return an event as JSON-ready data, its body as `body` if strict JSON, else `body_text` or `body_base64`."""
    names = ("seq", "kind", "seat", "episode", "step", "time")
    head: dict[str, Any] = {"run": event.run_id, **{name: getattr(event, name) for name in names}}
    if not event.is_text:
        return {**head, "body_base64": base64.b64encode(event.body).decode()}
    try:
        # json.loads accepts Infinity and NaN, which are not JSON.
        return {**head, "body": json.loads(event.body, parse_constant=_refuse, parse_float=_finite)}
    except ValueError:
        return {**head, "body_text": event.body.decode(errors="replace")}


def _refuse(text: str) -> float:
    raise ValueError(text)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)
