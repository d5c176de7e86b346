"""Sends a story to a webhook as it is told: in order, signed, and at least once.

It reads the run's log and stores its position in a file, so that nothing is lost when the process is killed and ticks
never wait; a part sent twice has the same id.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wsap_core.errors import StorageError, UsageError
from wsap_core.seams.services import RunReader
from wsap_core.textfile import written_to
from wsap_nexus.http.webhook import Webhook
from wsap_sandbox.story.chapters import Cast, cast_of

_BATCH = 200


@dataclass(frozen=True)
class Cursor:
    """Position up to which a story was sent."""

    seq: int
    """The last event of the run that was handled; -1 before the first."""
    tick: int
    """The last tick up to there."""


@dataclass
class StorySender:
    """Sends the story of one run to a webhook.

    A file in `folder` holds the position; without one, sending starts after the tick `since`.
    """

    runs: RunReader
    run: str
    webhook: Webhook
    folder: Path
    since: int = 0
    _cast: tuple[int, Cast] | None = field(default=None, init=False)

    def sending(self) -> AbstractAsyncContextManager[None]:
        """Return a context manager that sends in the background, and on exit sends the rest for a few seconds."""
        return self.webhook.sending(self.send)

    async def send(self) -> int:
        """Send everything pending, retrying until it is accepted; return the number of parts.

        Raises StorageError if the position can't be read or stored.
        """
        sent = 0
        while True:
            path, cursor, events = await asyncio.to_thread(self._waiting)
            for message, after in self._messages(events, cursor):
                if message is not None:
                    await self.webhook.post(str(message["id"]), json.dumps(message, ensure_ascii=False).encode())
                    sent += 1
                if after != cursor:
                    await asyncio.to_thread(_keep, path, after)
                    cursor = after
            if len(events) < _BATCH:
                return sent

    def _waiting(self) -> tuple[Path, Cursor, list[Mapping[str, Any]]]:
        """Return the position's file, the position, and the events after it."""
        # Another run of the same name or another address has another file; its name reveals nothing.
        about = [self.run, self.runs.about(self.run)["created"], self.webhook.address]
        path = self.folder / f"{hashlib.sha256(json.dumps(about).encode()).hexdigest()[:24]}.json"
        cursor = _kept(path)
        if cursor is None:
            ticks = self.runs.history(self.run, "tick", first=self.since, last=self.since)
            cursor = Cursor(max((event["seq"] for event in ticks), default=-1), self.since)
            _keep(path, cursor)
        events = []
        for event in self.runs.events(self.run, "tick", "story", "rewound", after=cursor.seq):
            events.append(event)
            if len(events) >= _BATCH and event["kind"] == "tick":
                break
        return path, cursor, events

    def _messages(
        self, events: list[Mapping[str, Any]], cursor: Cursor
    ) -> Iterator[tuple[Mapping[str, Any] | None, Cursor]]:
        """Yield each part with the position after it; narration waits until its tick is recorded."""
        held: list[Mapping[str, Any]] = []
        for event in events:
            if event["kind"] == "story":
                if event["body"]["tick"] > cursor.tick:
                    held.append(event)
                    continue
                cursor = Cursor(event["seq"] if not held else cursor.seq, cursor.tick)
                yield self._story(event), cursor
                continue
            if event["kind"] == "tick":
                tick = int(event["body"]["number"])
                self._cast = tick, cast_of(event["body"]["body"])
                for story in held:
                    yield self._story(story), cursor
                message = None
            else:
                tick = int(event["body"]["to"])
                message = self._message(event, "rewound", tick)
            held, cursor = [], Cursor(event["seq"], tick)
            yield message, cursor

    def _story(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        body, tick = event["body"], int(event["body"]["tick"])
        if self._cast is None or self._cast[0] != tick:
            found = next(iter(self.runs.history(self.run, "tick", first=tick, last=tick)), None)
            self._cast = tick, Cast() if found is None else cast_of(found["body"]["body"])
        cast, place = self._cast[1], str(body["place"])
        about = {"title": cast.title, "language": cast.language, "place": {"id": place, "name": cast.name(place)}}
        return {**self._message(event, "story", tick), **about, "text": body["text"]}

    def _message(self, event: Mapping[str, Any], kind: str, tick: int) -> dict[str, Any]:
        return {"id": f"{self.run}/{event['seq']}", "kind": kind, "run": self.run, "tick": tick}


def _kept(path: Path) -> Cursor | None:
    try:
        data = json.loads(path.read_text("utf-8"))
        return Cursor(int(data["seq"]), int(data["tick"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"The webhook's position can't be read from {path} ({type(error).__name__}); delete the file to start over."
        ) from None


def _keep(path: Path, cursor: Cursor) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_to(path) as file:
            json.dump(asdict(cursor), file)
    except (OSError, UsageError) as error:
        raise StorageError(f"The webhook's position can't be stored: {error}") from error
