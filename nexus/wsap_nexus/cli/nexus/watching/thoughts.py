"""What agents' models are asked and are writing, for `wsap nexus watch`, as the running nexus tells it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic import ValidationError

from wsap_core.errors import WsapError
from wsap_nexus import state
from wsap_nexus.cli.nexus.connection import NexusHttp
from wsap_nexus.store.events.passing import Thinking
from wsap_nexus.terminal.story import BEGUN, Writing

AGAIN = 2.0
"""Seconds before the nexus is asked again after its stream ended."""


@dataclass(frozen=True)
class Heard:
    """A request to an agent's model, and when it was heard of."""

    event: Thinking
    at: float
    """In monotonic seconds."""

    def line(self, now: float) -> str:
        """Return the state without a text: `reading 1,566 tokens, 43 s`."""
        return self.event.line(now - self.at)

    def writing(self, now: float) -> Writing:
        """Return the state for the screen; nothing of a request that has only begun."""
        event = self.event
        if event.text:
            return Writing(event.model, event.text, thinks=event.state == "thinking")
        begun = event.state == "reading" and event.seconds + now - self.at < BEGUN
        return Writing() if begun else Writing(event.model, state=self.line(now))


class Thoughts:
    """The requests of agents' models, heard in a thread of its own for as long as it is asked for them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard: dict[str, dict[int, Heard]] = {}
        self._thread: threading.Thread | None = None
        self._tried = -AGAIN

    def now(self, running: state.Running | None) -> Mapping[str, Heard]:
        """Return the latest request of each agent, of the nexus that runs now."""
        alive = self._thread is not None and self._thread.is_alive()
        if running is not None and not alive and self._clock() - self._tried >= AGAIN:
            self._tried = self._clock()
            self._heard = {}
            # A daemon: it waits for the network when the user leaves.
            self._thread = threading.Thread(
                target=self._listen, args=(NexusHttp(running), self._heard), name="thoughts", daemon=True
            )
            self._thread.start()
        return {agent: [*asked.values()][-1] for agent, asked in self._heard.copy().items() if asked}

    def _listen(self, nexus: NexusHttp, heard: dict[str, dict[int, Heard]]) -> None:
        try:
            for data in nexus.events("thinking"):
                self.take(data, heard)
        except (WsapError, ValidationError):
            pass  # it has stopped, or is of another version; the screen shows the rest
        heard.clear()

    def take(self, data: Mapping[str, object], heard: dict[str, dict[int, Heard]] | None = None) -> None:
        """Add what the nexus told."""
        body = data.get("body")
        event = Thinking.model_validate({**data, **(body if isinstance(body, dict) else {})})
        known = self._heard if heard is None else heard
        # Replaced rather than changed: another thread reads it.
        asked = {number: each for number, each in known.get(event.agent_id, {}).items() if number != event.request}
        known[event.agent_id] = asked if event.state == "done" else asked | {event.request: Heard(event, self._clock())}
