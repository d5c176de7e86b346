"""What agents' models are asked and are writing now. It is held in memory only."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from types import TracebackType
from typing import Literal

from wsap_core.untrusted import strip_control
from wsap_llm.middleware.show import Thought
from wsap_nexus.hub.context import LiveState
from wsap_nexus.store.events.passing import Thinking

PERIOD = 0.2
"""Seconds within which changes are told together."""

LONGEST = 600
"""Maximum characters of a text, from its end."""


class _Asked:
    """A request: its number, its agent once that is known, and how often it has changed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.agent: str | None = None
        self.changes = 0


class Thoughts:
    """The requests of agents' models in a nexus that have no reply yet: the service `views` of its agents.

    Replies are streamed only while somebody watches. Those who watch are woken at most once per `PERIOD`.
    """

    def __init__(self, live: LiveState) -> None:
        self._live = live
        self._numbers = count(1)
        self._open: dict[Thought, _Asked] = {}
        self._numbers_open: set[int] = set()
        self._wake: list[Callable[[], None]] = []
        self._waking: asyncio.TimerHandle | None = None
        self.watchers = 0
        """How many watch."""

    def listen(self, wake: Callable[[], None]) -> None:
        """Call a function after changes while somebody watches."""
        self._wake.append(wake)

    def began(self, thought: Thought) -> bool:
        """Add a request; return whether somebody watches."""
        asked = self._open[thought] = _Asked(next(self._numbers))
        self._numbers_open.add(asked.number)
        self._changed()
        return self.watchers > 0

    def moved(self, thought: Thought) -> None:
        """Note that a request waits or is sent again, or more of its reply."""
        if (asked := self._open.get(thought)) is not None:
            asked.changes += 1
            self._changed()

    def ended(self, thought: Thought) -> None:
        """Drop a request."""
        self._numbers_open.discard(self._open.pop(thought).number)
        self._changed()

    def watch(self) -> Watcher:
        """Return a watcher, which counts within its `with` block."""
        return Watcher(self)

    def changed(self, known: Mapping[int, int]) -> Iterator[tuple[int, int, Thinking]]:
        """Yield the requests that have changed, each with its number and how often that was; `known` has the latter by
        number."""
        for thought, asked in self._open.items():
            asked.agent = asked.agent or self._agent_of(thought)
            if asked.agent is not None and known.get(asked.number) != asked.changes:
                yield asked.number, asked.changes, _event(thought, asked.number, asked.agent)

    def is_open(self, number: int) -> bool:
        """Return whether a request has no reply yet."""
        return number in self._numbers_open

    def _agent_of(self, thought: Thought) -> str | None:
        seat, live = thought.seat, self._live
        if not thought.run or live.visits.get(seat) == thought.run:
            return seat  # outside a run it speaks or writes its diary
        own = live.sessions.get(seat)
        stays = live.sessions.values() if own is None or own.session.run_id != thought.run else (own,)
        return next((s.session.agent_id for s in stays if (s.session.run_id, s.seat_name) == (thought.run, seat)), None)

    def _changed(self) -> None:
        if self.watchers and self._waking is None:
            self._waking = asyncio.get_running_loop().call_later(PERIOD, self._woken)

    def _woken(self) -> None:
        self._waking = None
        for wake in self._wake:
            wake()


class Watcher:
    """Somebody who watches, and what was told already."""

    def __init__(self, thoughts: Thoughts) -> None:
        self._thoughts = thoughts
        self._known: dict[int, int] = {}
        self._told: dict[int, Thinking] = {}

    def __enter__(self) -> Watcher:
        self._thoughts.watchers += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thoughts.watchers -= 1

    def news(self) -> list[Thinking]:
        """Return the requests that are new, have changed or are done since the last call."""
        told: list[Thinking] = []
        for number in [number for number in self._told if not self._thoughts.is_open(number)]:
            del self._known[number]
            told.append(self._told.pop(number).model_copy(update={"state": "done", "text": "", "waiting": ""}))
        for number, changes, event in self._thoughts.changed(self._known):
            self._known[number], self._told[number] = changes, event
            told.append(event)
        return told


def _event(thought: Thought, number: int, agent: str) -> Thinking:
    draft = thought.draft
    state: Literal["waiting", "reading", "thinking", "writing"] = (
        "waiting" if draft.waiting else "writing" if draft.text else "thinking" if draft.thinking else "reading"
    )
    return Thinking(
        agent_id=agent,
        request=number,
        model=strip_control(thought.model)[:200],
        purpose=thought.request.purpose,
        tokens=thought.tokens,
        state=state,
        waiting=strip_control(draft.waiting)[:LONGEST],
        seconds=round(thought.seconds, 1),
        text=strip_control(thought.text[-LONGEST:]),
    )
