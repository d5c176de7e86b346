"""The conversation with an agent's model, and events and messages not shown to it yet.

A finished turn is part of the `Conversation`, whose newest turns are sent with each request. A turn that called a tool
of the world is a `PausedTurn` until the result is known. `Untold` holds the events and messages that must be added to
the next observation shown to the model.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from wsap_core.protocol import Action, ActionResult, AgentMessage, Event, Observation
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import Codec, encode
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Backend, FunctionCall, ImagePart, Message, Request
from wsap_core.seams.model_errors import ContextTooSmallError
from wsap_core.untrusted import sanitize
from wsap_llm.prompts import said_of, words_of
from wsap_llm.text.pictures import with_picture
from wsap_llm.text.quoting import Quoter
from wsap_llm.text.tokens import estimate_message, estimate_request
from wsap_llm.tools.lookup import LONGEST_RESULT, NO_RESULT, PendingCall, written

T = TypeVar("T")
SPOKEN = ("speech", "message", "chat", "whisper")
"""Types of events with text by others."""
MOST_UNTOLD = 24
"""Maximum number of events, and of messages, kept from steps without a decision."""


def quoted(observation: Observation, generator: random.Random) -> tuple[Observation, str]:
    """Return an observation with text by others in quotes, and the sentence that explains them, empty without quotes.
    The delimiters are drawn from the generator."""
    if not observation.messages and not any(e.type in SPOKEN for e in observation.recent_events):
        return observation, ""
    quoter = Quoter.draw(generator)
    messages = tuple(
        replace(m, sender=sanitize(m.sender, 60), content=quoter.quote(m.content)) for m in observation.messages
    )
    events = tuple(
        replace(e, description=quoter.quote(e.description)) if e.type in SPOKEN else e
        for e in observation.recent_events
    )
    explanation = quoter.explain(words_of(observation.language))
    return replace(observation, messages=messages, recent_events=events), explanation


def outcome_of(result: ActionResult, limit: int, words: Words = ENGLISH) -> str:
    """Return the result of an action in a few words for the model, its message cut to `limit` characters. That it
    worked is said if there is no message."""
    message = sanitize(result.message, limit)
    worked = result.success and result.outcome == "done"
    parts = ["" if worked and message else said_of(result, words), message]
    if result.achievements:
        parts.append(words.say("achieved: " + ", ".join(sanitize(name, 60) for name in result.achievements[:10])))
    if result.reward:
        parts.append(words.say(f"reward {result.reward:g}"))
    return "; ".join(part for part in parts if part).rstrip(".")


def report_of(action: Action, result: ActionResult, words: Words = ENGLISH) -> str:
    """Return the sentence about the last action's result that opens the next message to the model."""
    given = f" {sanitize(written(action.parameters, words), 300)}" if action.parameters else ""
    over = f" {words.say('The episode ended, and another one began.')}" if result.done else ""
    opening = words.say(f"Your last action, {action.name}{given}:")
    return f"{opening} {outcome_of(result, LONGEST_RESULT, words)}.{over}"


_PASSING = ("nearby_entities", "nearby_terrain", "local_map", "recent_events", "current_goals")
"""Fields of observations that no later request contains."""


def lasting_of(observation: Observation) -> list[str]:
    """Return the lines of an observation whose changes later requests contain: without what is near, and without goals
    and legal actions, which the newest observation shows."""
    passing: dict[str, Any] = {name: () for name in _PASSING if hasattr(observation, name)}  # Any: of several types
    text = replace(observation, available_actions=None, **passing).to_text()
    return [line for line in text.splitlines() if line.strip()]


@dataclass(frozen=True)
class Untold:
    """Events and messages of earlier observations. Worlds report an event and deliver a message once."""

    events: tuple[Event, ...] = ()
    messages: tuple[AgentMessage, ...] = ()
    left_out: int = 0
    """Number of events and messages dropped beyond `MOST_UNTOLD`."""

    @classmethod
    def of(cls, observation: Observation) -> Untold:
        """Return the events and messages of an observation."""
        return cls(tuple(observation.recent_events), tuple(observation.messages))

    def and_then(self, later: Untold) -> Untold:
        """Return these followed by later ones."""
        return Untold((*self.events, *later.events), (*self.messages, *later.messages), self.left_out)

    def without(self, *known: Untold) -> Untold:
        """Return the difference to the known ones, as multisets."""
        return Untold(
            _without(self.events, [e for k in known for e in k.events]),
            _without(self.messages, [m for k in known for m in k.messages]),
        )

    def missing(self, observation: Observation) -> Untold:
        """Return these and those of a step without a decision: only new events, at most `MOST_UNTOLD` of each kind."""
        known = {(e.type, e.description, e.source) for e in self.events}
        fresh = [e for e in observation.recent_events if (e.type, e.description, e.source) not in known]
        events, messages = (*self.events, *fresh), (*self.messages, *observation.messages)
        left_out = max(0, len(events) - MOST_UNTOLD) + max(0, len(messages) - MOST_UNTOLD)
        return Untold(events[-MOST_UNTOLD:], messages[-MOST_UNTOLD:], self.left_out + left_out)

    def before(self, observation: Observation) -> Observation:
        """Return an observation with these put first."""
        if not self.events and not self.messages:
            return observation
        events, messages = (*self.events, *observation.recent_events), (*self.messages, *observation.messages)
        return replace(observation, recent_events=events, messages=messages)


def _without(items: Sequence[T], known: Sequence[T]) -> tuple[T, ...]:
    left = list(known)
    found: list[T] = []
    for item in items:
        if item in left:
            left.remove(item)
        else:
            found.append(item)
    return tuple(found)


@dataclass(frozen=True)
class PausedTurn:
    """A turn without a final action yet: the text shown, and the pending call.

    It keeps its events and messages, so that none is lost to the model: those that arrived while it was open are shown
    with the next turn, or all if this turn is dropped.
    """

    shown: str
    """The user message."""
    step: int
    """The game's step at its start."""
    picture: ImagePart | None = None
    pending: PendingCall | None = None
    """None before the first call of a tool of the world."""
    told: Untold = field(default_factory=Untold)
    """Events and messages in the user message."""
    late: Untold = field(default_factory=Untold)
    """Events and messages that arrived later."""
    dropped: bool = False
    """Whether another action was taken meanwhile, so that it can't be resumed."""
    kept: str = ""
    """The user message as later requests contain it; empty in older snapshots, which kept all of it."""

    def resumes(self, observation: Observation) -> bool:
        """Return whether the turn resumes: the result is known, and the world is still at the same step."""
        answered = self.pending is not None and self.pending.result is not None
        return answered and not self.dropped and observation.step == self.step

    def with_result(self, result: ActionResult) -> PausedTurn:
        """Return the turn with the result of its call; dropped if the result is of another action."""
        if self.pending is None or self.pending.result is not None or result.done:
            return replace(self, dropped=True)
        return replace(self, pending=replace(self.pending, result=result.message.strip() or NO_RESULT))

    def hearing(self, observation: Observation) -> PausedTurn:
        """Return the turn with the new events and messages of an observation."""
        return replace(self, late=self.late.and_then(Untold.of(observation).without(self.told, self.late)))

    def left_over(self, observation: Observation) -> Untold:
        """Return the events and messages to show again if the turn is dropped, except those in the observation."""
        return self.told.and_then(self.late).without(Untold.of(observation))

    def to_json(self) -> dict[str, JsonValue]:
        """Return the turn as JSON-ready data for a snapshot."""
        data: dict[str, JsonValue] = encode(self)
        return {"thought": data.pop("pending"), **data, "picture": _picture_to_json(self.picture)}

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> PausedTurn:
        """Return the turn from `to_json`; raise ValueError, KeyError, TypeError or WireError if it is invalid."""
        turn = Codec().decode(cls, {**data, "pending": data["thought"], "picture": None})
        return replace(turn, picture=_picture_from_json(data["picture"]))


@dataclass(frozen=True)
class HistoryTurn:
    """A finished turn of the conversation."""

    user: str
    assistant: str
    picture: ImagePart | None = None
    """The picture shown after the text, as long as it is kept."""
    calls: tuple[FunctionCall, ...] = ()
    """The assistant's calls beside its text."""
    step: int | None = None
    """The game's step."""

    @cached_property
    def messages(self) -> tuple[Message, Message]:
        """The turn as messages, the same objects each time, so that their encoding is cached."""
        shown = Message("user", with_picture(self.user, self.picture))
        return shown, Message("assistant", self.assistant, self.calls)

    @cached_property
    def tokens(self) -> int:
        """The estimated tokens."""
        return sum(map(estimate_message, self.messages))

    def to_json(self) -> list[JsonValue]:
        """Return the turn as JSON-ready data for a snapshot."""
        return [self.user, self.assistant, _picture_to_json(self.picture), encode(self.calls), self.step]

    @classmethod
    def from_json(cls, data: Sequence[JsonValue]) -> HistoryTurn:
        """Return the turn from `to_json`; raise ValueError or TypeError if it is invalid."""
        user, assistant, picture, called, step = data
        calls = tuple(FunctionCall(**call) for call in called)
        return cls(str(user), str(assistant), _picture_from_json(picture), calls, None if step is None else int(step))


def _picture_to_json(picture: ImagePart | None) -> list[str] | None:
    return None if picture is None else [picture.base64, picture.media_type, picture.alt]


def _picture_from_json(data: Sequence[JsonValue] | None) -> ImagePart | None:
    return None if data is None else ImagePart(*map(str, data))


MORE_CONTEXT = (
    "Increase the context (`wsap models` suggests a size), shorten prompts (--agent-option profile=brief), or shorten "
    "replies (--agent-option max_tokens=N)."
)
"""What a person can do if a prompt does not fit even without past steps."""


class Conversation:
    """The system message and the newest turns of a session, which are sent with each request.

    Of a finished turn it keeps the result of the action before, events, messages and what changed, and the reply.
    Turns are appended until there are twice as many as `steps`; then all but the newest `steps` / 2 are cut. Between
    two cuts every request starts with the turns of the previous one, so that servers can reuse their prompt cache. If
    the model's context holds fewer turns, cuts are made in the same way, with one warning.

    Pictures are expensive, so that only the newest turns keep theirs. Removing one, at the end of its turn, invalidates
    the cache for the turns after it.

    Args:
        pictures: the number of newest turns that keep their picture.
        tell: receives the warning as one sentence; the log by default.
    """

    def __init__(self, backend: Backend, *, pictures: int = 0, tell: Callable[[str], None] | None = None) -> None:
        self._backend = backend
        self._steps = 0
        self._pictures = pictures
        self._tell = tell or logging.getLogger("wsap.llm").warning
        self._told = False
        self._opening = Message("system", "")
        self._turns: list[HistoryTurn] = []
        self._size = 0
        self.refused_size: int | None = None
        """The estimated tokens of the smallest request, with its reply, that the server refused as too large."""

    @property
    def system(self) -> str:
        """The system message; empty before the first session."""
        return self._opening.text()

    @property
    def turns(self) -> Sequence[HistoryTurn]:
        """The turns, oldest first."""
        return tuple(self._turns)

    @property
    def keeps(self) -> bool:
        """Whether turns are kept at all."""
        return self._steps > 0

    @property
    def steps_shown(self) -> set[int | None]:
        """The game's steps of the turns."""
        return {turn.step for turn in self._turns}

    def begin(self, system: str, *, steps: int) -> None:
        """Start a new conversation that keeps from half to twice `steps` turns."""
        self._steps = steps
        self._opening = Message("system", system)  # one object, so that its encoding is cached
        self._turns.clear()
        self._size = 0

    def restore(self, turns: Sequence[HistoryTurn]) -> None:
        """Replace all turns."""
        self._turns = list(turns)
        self._size = sum(turn.tokens for turn in self._turns)

    def add(self, turn: HistoryTurn) -> None:
        """Append a turn, and cut old ones if there are too many."""
        if not self._steps:
            return
        self._turns.append(turn)
        self._size += turn.tokens
        at = len(self._turns) - 1 - self._pictures
        if at >= 0 and (faded := self._turns[at]).picture is not None:
            self._turns[at] = plain = replace(faded, picture=None)
            self._size -= faded.tokens - plain.tokens
        if len(self._turns) > 2 * self._steps:
            self._drop(len(self._turns) - (self._steps + 1) // 2)

    def before(self, request: Request) -> Request:
        """Return the request with the system message and turns put before its messages, as many as fit into the model's
        context with the longest reply. Raises ContextTooSmallError if it does not fit even without turns."""
        context, whole = self._context(), self._with(request)
        reserve = request.sampling.max_tokens or 0
        if context is None or estimate_request(whole) + reserve <= context:
            return whole
        needed = estimate_tokens(self._opening.text()) + estimate_tokens(request.prefill) + reserve + 16
        needed += sum(map(estimate_message, request.messages))
        if needed > context:
            raise ContextTooSmallError(
                f"{self._backend.model} has a context of {context} tokens; the system message, this observation and "
                f"{reserve} tokens for the reply require about {needed}. {MORE_CONTEXT}"
            )
        before = len(self._turns)
        self._cut_to(context - needed)
        self._say(context, before - len(self._turns))
        return self._with(request)

    def refused(self, request: Request) -> None:
        """Cut the older half of the turns after the server refused a request from `before` as too large; keep later
        ones below its size."""
        before = len(self._turns)
        self.refused_size = estimate_request(request) + (request.sampling.max_tokens or 0)
        self._cut_to(self._size - 1)
        self._say(None, before - len(self._turns))

    def _context(self) -> int | None:
        """The context of the model by what its backend knows and what the server refused, in estimated tokens."""
        known = self._backend.abilities.context
        if self.refused_size is None:
            return known
        return self.refused_size - 1 if known is None else min(known, self.refused_size - 1)

    def _with(self, request: Request) -> Request:
        said = (message for turn in self._turns for message in turn.messages)
        whole = (self._opening, *said, *request.messages)
        return replace(request, messages=whole, shortens=bool(self._turns))

    def _cut_to(self, tokens: int) -> None:
        """Cut turns if they exceed a size, down to half of it, so that the next cut is some turns away."""
        if self._size <= tokens:
            return
        count, size = 0, self._size
        while count < len(self._turns) and size > tokens // 2:
            size -= self._turns[count].tokens
            count += 1
        self._drop(count)

    def _drop(self, count: int) -> None:
        self._size -= sum(turn.tokens for turn in self._turns[:count])
        del self._turns[:count]

    def _say(self, context: int | None, cut: int) -> None:
        left = len(self._turns)
        if self._told or not cut or left >= self._steps:
            return  # the requested number is left
        self._told = True
        known = "a context" if context is None else f"a context of {context} tokens,"
        self._tell(
            f"{self._backend.model} has {known} which is too small for {self._steps} steps of "
            f"history: older ones are cut from its prompt, which now holds the newest {left}. Increase the context "
            "(`wsap models` suggests a size), or reduce the history (--agent-option window=N)."
        )
