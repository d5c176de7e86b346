"""Shows what an agent's model is asked, and its replies while they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

from wsap_core.seams.model import Draft, OnText, Reply, Request
from wsap_core.untrusted import single_line
from wsap_llm.middleware import Ask, streamed
from wsap_llm.reply.written import in_words
from wsap_llm.text.tokens import estimate_request

NOTHING = Draft()


def state_line(waiting: str, tokens: int, seconds: float) -> str:
    """Return the state of a request without a text: `reading 1,566 tokens, 43 s`; `waiting` as in `Draft`."""
    return f"{waiting or f'reading {tokens:,} tokens'}, {int(seconds)} s"


@dataclass(eq=False)
class Thought:
    """A request to a model that has no whole reply yet."""

    seat: str
    model: str
    """The address of the model."""
    request: Request
    now: Callable[[], float]
    """Returns monotonic seconds."""
    run: str = ""
    """The id of the recorded run; empty outside a run."""
    draft: Draft = field(default=NOTHING, init=False)
    """What has been written so far."""
    since: float = field(init=False)
    """When the request was sent, or began to wait."""

    def __post_init__(self) -> None:
        self.since = self.now()

    @cached_property
    def tokens(self) -> int:
        """The estimated tokens of the prompt."""
        return estimate_request(self.request)

    @property
    def seconds(self) -> float:
        """Seconds for which the request has been with the server, or waiting."""
        return self.now() - self.since

    @property
    def text(self) -> str:
        """What has been written, in words, or thought if nothing is written yet."""
        return in_words(self.draft.text) or self.draft.thinking

    @property
    def state(self) -> str:
        """The state as text while there is nothing else to show: `reading 1,566 tokens, 43 s`."""
        return state_line(self.draft.waiting, self.tokens, self.seconds)

    def move(self, draft: Draft) -> None:
        """Set what has been written."""
        if draft.waiting != self.draft.waiting:
            self.since = self.now()
        self.draft = draft


@runtime_checkable
class ShowsThoughts(Protocol):
    """A display, the service `views`, that shows what models are asked and what they write."""

    def began(self, thought: Thought) -> bool:
        """Show a request; return whether its reply should be shown while it is written."""

    def moved(self, thought: Thought) -> None:
        """Show that a request waits or is sent again, or more of its reply."""

    def ended(self, thought: Thought) -> None:
        """Show the request no longer: its reply is whole, or it failed."""


class Waited:
    """The requests of a pool of models that have no reply yet, for commands without a view of each seat."""

    def __init__(self) -> None:
        self._open: dict[Thought, None] = {}
        self.shown = False
        """Whether they are shown, so that they are told how far their replies are."""

    def began(self, thought: Thought) -> bool:
        """Add a request; return whether requests are shown."""
        self._open[thought] = None
        return self.shown

    def moved(self, thought: Thought) -> None:
        """Nothing is to be done: a request knows how far it is."""

    def ended(self, thought: Thought) -> None:
        """Drop a request."""
        self._open.pop(thought, None)

    def line(self) -> str:
        """Return the request that is longest with its server, and the number of others; empty without requests:
        `openai/qwen: reading 1,566 tokens, 43 s; 3 others wait`."""
        waiting = [*self._open]  # at once, since a thread may show it
        waiting.sort(key=lambda thought: (bool(thought.draft.waiting), thought.since))
        if not waiting:
            return ""
        first, others = waiting[0], len(waiting) - 1
        state = f"writing, {int(first.seconds)} s" if first.text and not first.draft.waiting else first.state
        also = f"; {others} {'other waits' if others == 1 else 'others wait'}" if others else ""
        return single_line(f"{first.model}: {state}{also}")


@dataclass(frozen=True)
class Show:
    """Shows the requests of one seat to one model until they have their replies."""

    views: ShowsThoughts
    seat: str
    model: str
    """The address of the model."""
    now: Callable[[], float]
    """Returns monotonic seconds."""
    run: str = ""

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply."""
        thought = Thought(self.seat, self.model, request, self.now, self.run)

        def show(draft: Draft) -> None:
            thought.move(draft)
            self.views.moved(thought)
            if on_text is not None:
                on_text(draft)

        wanted = self.views.began(thought)
        try:
            with streamed(wanted or on_text is not None):
                return await ask(request, show)
        finally:
            self.views.ended(thought)
