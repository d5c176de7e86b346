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
    """Yield a run line by line, without line ends: a description, then one line for each event.

    Each line is canonical JSON; `docs/reference/event-log.md` describes them. The same run gives the same lines.

    Args:
        run_id: its id, or another name for `Repository.get_run`.
        kinds: only events of these kinds; None for all.

    Raises:
        UnknownNameError: there is no such run.
        StorageError: the database can't be read, or a body is damaged.
    """
    run = repository.get_run(run_id)
    yield wire.dumps(_header(run))
    for event in repository.read_events(run.id, kinds=kinds):
        yield wire.dumps(event_data(event))


class RecordedRuns:
    """Reads recorded runs: the kernel's `RunReader`."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def events(self, run: str, *kinds: str, after: int = -1) -> Iterator[Mapping[str, Any]]:
        """Yield the events of a run, oldest first, as the lines of the export; see `RunReader`.

        Raises:
            UnknownNameError: there is no such run.
        """
        run_id = self._repository.get_run(run).id
        for event in self._repository.read_events(run_id, from_seq=after + 1, kinds=kinds or None):
            yield event_data(event)

    def about(self, run: str) -> Mapping[str, Any]:
        """Return what a run is, as the first line of its export; UnknownNameError if there is no such run."""
        return _header(self._repository.get_run(run))

    def ticks(self, run: str) -> int:
        """Return the number of a run's newest tick, once what was rewound is left out; see `RunReader`.

        Raises:
            UnknownNameError: there is no such run.
        """
        return newest_tick(self._repository, self._repository.get_run(run))

    def history(self, run: str, *kinds: str, first: int = 1, last: int | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield the events of ticks as they now stand; see `wsap_core.seams.services.RunReader`.

        Raises:
            UnknownNameError: there is no such run.
        """
        for event in read_history(self._repository, self._repository.get_run(run), kinds, first, last):
            yield event_data(event)

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
    """Return an event as JSON-ready data.

    The body is under `body` if it is strict JSON, else under `body_text`; bytes are under `body_base64`.
    """
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
