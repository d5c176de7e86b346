"""What an agent's model has been shown, and what has not been told to it yet.

A finished turn is part of the `Conversation`, whose newest turns go along with each request. A turn
that called a tool of the world is a `PausedTurn` until the world has answered. `Untold` holds the
events and messages that the next observation shown to the model has to include.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from wsap_core.protocol import Action, ActionResult, AgentMessage, Event, Observation
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import Codec, encode
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Backend, ImagePart, Message, Request
from wsap_core.seams.model_errors import ContextTooSmallError
from wsap_core.untrusted import sanitize
from wsap_llm.lookup import LONGEST_RESULT, NO_RESULT, PendingCall, written
from wsap_llm.pictures import with_picture
from wsap_llm.prompts import said_of, words_of
from wsap_llm.quoting import Quoter
from wsap_llm.tokens import estimate_message, estimate_request

T = TypeVar("T")
SPOKEN = ("speech", "message", "chat", "whisper")
"""Kinds of events whose text somebody else wrote."""
MOST_UNTOLD = 24
"""Events, and messages, of steps without a decision that are kept for the next one."""


def quoted(observation: Observation, generator: random.Random) -> tuple[Observation, str]:
    """Return an observation with what others wrote in quotes, and the sentence that explains the quotes, whose
    delimiters are drawn from the generator; nothing is drawn if nobody wrote anything."""
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
    """Return what came of an action in a few words for the model, its message cut at so many characters."""
    parts = [said_of(result, words), sanitize(result.message, limit)]
    if result.achievements:
        parts.append(words.say("achieved: " + ", ".join(sanitize(name, 60) for name in result.achievements[:10])))
    if result.reward:
        parts.append(words.say(f"reward {result.reward:g}"))
    return "; ".join(part for part in parts if part).rstrip(".")


def report_of(action: Action, result: ActionResult, words: Words = ENGLISH) -> str:
    """Return the sentence that opens the next message to the model: what came of the last action."""
    given = f" {sanitize(written(action.parameters, words), 300)}" if action.parameters else ""
    over = f" {words.say('The episode ended, and another one began.')}" if result.done else ""
    opening = words.say(f"Your last action, {action.name}{given}:")
    return f"{opening} {outcome_of(result, LONGEST_RESULT, words)}.{over}"


@dataclass(frozen=True)
class Untold:
    """Events and messages of earlier observations. Worlds tell an event and deliver a message once."""

    events: tuple[Event, ...] = ()
    messages: tuple[AgentMessage, ...] = ()
    left_out: int = 0
    """How many had no room."""

    @classmethod
    def of(cls, observation: Observation) -> Untold:
        """Return the events and messages of an observation."""
        return cls(tuple(observation.recent_events), tuple(observation.messages))

    def and_then(self, later: Untold) -> Untold:
        """Return these and later ones."""
        return Untold((*self.events, *later.events), (*self.messages, *later.messages), self.left_out)

    def without(self, *known: Untold) -> Untold:
        """Return those that are not among the known ones; one that is there twice has to be known twice."""
        return Untold(
            _without(self.events, [e for k in known for e in k.events]),
            _without(self.messages, [m for k in known for m in k.messages]),
        )

    def missing(self, observation: Observation) -> Untold:
        """Return these and those of a step without a decision: new events alone, and no more than there is room for."""
        known = {(e.type, e.description, e.source) for e in self.events}
        fresh = [e for e in observation.recent_events if (e.type, e.description, e.source) not in known]
        events, messages = (*self.events, *fresh), (*self.messages, *observation.messages)
        left_out = max(0, len(events) - MOST_UNTOLD) + max(0, len(messages) - MOST_UNTOLD)
        return Untold(events[-MOST_UNTOLD:], messages[-MOST_UNTOLD:], self.left_out + left_out)

    def before(self, observation: Observation) -> Observation:
        """Return an observation that these come first in."""
        if not self.events and not self.messages:
            return observation
        events, messages = (*self.events, *observation.recent_events), (*self.messages, *observation.messages)
        return replace(observation, recent_events=events, messages=messages)


def _without(items: Sequence[T], known: Sequence[T]) -> tuple[T, ...]:
    left = list(known)
    found: list[T] = []
    for item in items:
        if item in left:
            left.remove(item)  # each is known as often as it was told
        else:
            found.append(item)
    return tuple(found)


@dataclass(frozen=True)
class PausedTurn:
    """A turn before it has come to an action that ends it: what was shown, and the call that it waits for.

    The events and messages that it began with, and those that come while it is open, are kept, so that none is lost
    to the model: the later ones are for the next turn, and all of them if this one is dropped.
    """

    shown: str
    """The user message."""
    step: int
    """The game's step at which it began."""
    picture: ImagePart | None = None
    pending: PendingCall | None = None
    """None before the first call of a tool of the world."""
    told: Untold = field(default_factory=Untold)
    """Events and messages that are in the user message."""
    late: Untold = field(default_factory=Untold)
    """Those that came afterwards."""
    dropped: bool = False
    """Whether something else was done meanwhile, so that it can't be resumed."""

    def resumes(self, observation: Observation) -> bool:
        """Return whether the turn resumes: the world has answered, and is still at the same step."""
        answered = self.pending is not None and self.pending.result is not None
        return answered and not self.dropped and observation.step == self.step

    def with_result(self, result: ActionResult) -> PausedTurn:
        """Return the turn after something was done: the call that it waits for, or else what drops it."""
        if self.pending is None or self.pending.result is not None or result.done:
            return replace(self, dropped=True)
        return replace(self, pending=replace(self.pending, result=result.message.strip() or NO_RESULT))

    def hearing(self, observation: Observation) -> PausedTurn:
        """Return the turn with the events and messages that are new in an observation."""
        return replace(self, late=self.late.and_then(Untold.of(observation).without(self.told, self.late)))

    def left_over(self, observation: Observation) -> Untold:
        """Return what has to be told again if the turn is dropped: all but what is in the observation."""
        return self.told.and_then(self.late).without(Untold.of(observation))

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as JSON-ready data, for a snapshot."""
        data: dict[str, JsonValue] = encode(self)
        return {"thought": data.pop("pending"), **data, "picture": _picture_to_json(self.picture)}

    @classmethod
    def from_json(cls, data: Mapping[str, JsonValue]) -> PausedTurn:
        """Return what `to_json` gave; raise ValueError, KeyError, TypeError, WireError if it is something else."""
        turn = Codec().decode(cls, {**data, "pending": data["thought"], "picture": None})
        return replace(turn, picture=_picture_from_json(data["picture"]))


@dataclass(frozen=True)
class HistoryTurn:
    """A finished turn of the conversation: what was shown and what was answered."""

    user: str
    assistant: str
    picture: ImagePart | None = None
    """What was shown beside the text, as long as it is kept."""

    @cached_property
    def messages(self) -> tuple[Message, Message]:
        """The turn as messages; the same objects each time, whose encoding is kept with them."""
        shown = Message("user", with_picture(self.user, self.picture))
        return shown, Message("assistant", self.assistant)

    @cached_property
    def tokens(self) -> int:
        """About how many tokens it takes."""
        return sum(map(estimate_message, self.messages))

    def to_json(self) -> list[JsonValue]:
        """Return the turn as JSON-ready data, for a snapshot."""
        return [self.user, self.assistant, *([] if self.picture is None else [_picture_to_json(self.picture)])]

    @classmethod
    def from_json(cls, data: Sequence[JsonValue]) -> HistoryTurn:
        """Return what `to_json` gave; raise ValueError, TypeError if it is something else."""
        user, assistant, *more = data
        return cls(str(user), str(assistant), _picture_from_json(more[0]) if more else None)


def _picture_to_json(picture: ImagePart | None) -> list[str] | None:
    return None if picture is None else [picture.base64, picture.media_type, picture.alt]


def _picture_from_json(data: Sequence[JsonValue] | None) -> ImagePart | None:
    return None if data is None else ImagePart(*map(str, data))


class Conversation:
    """The system message and the newest turns of a session, as they go along with each request.

    Turns are only ever added at the end, until twice as many are there as are wanted; then all but the newest half of
    what is wanted go at once. Between two such cuts every request begins with the one before, which providers and local
    servers reuse: with 16 steps, 24 of 25 requests do. The same holds where the model's context has room for fewer;
    that is told once.

    Pictures are expensive, so only the newest turns keep theirs. A turn that loses its picture stays the same up to the
    picture, which is its end; what comes after it has to be computed anew.

    Args:
        pictures: how many of the newest turns keep their picture.
        tell: told, in a sentence and once, what was cut; the log of warnings for None.
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

    @property
    def system(self) -> str:
        """The system message; empty before a session begins."""
        return self._opening.text()

    @property
    def turns(self) -> Sequence[HistoryTurn]:
        """The turns that are kept, oldest first."""
        return tuple(self._turns)

    def begin(self, system: str, *, steps: int) -> None:
        """Begin anew, with this system message, and keep about so many turns: from half to twice as many."""
        self._steps = steps
        self._opening = Message("system", system)  # the same each time: its encoding is kept with it
        self._turns.clear()
        self._size = 0

    def news_of(self, observation: Observation) -> str:
        """Return an observation as text, without its goals where a turn that is kept tells the same ones."""
        text = observation.to_text()
        if not observation.current_goals or not self._turns:
            return text
        short = replace(observation, current_goals=()).to_text()
        rest = set(short.splitlines())
        goals = "\n".join(line for line in text.splitlines() if line not in rest)
        return short if any(goals in turn.user for turn in self._turns) else text

    def restore(self, turns: Sequence[HistoryTurn]) -> None:
        """Become a conversation with these turns."""
        self._turns = list(turns)
        self._size = sum(turn.tokens for turn in self._turns)

    def add(self, turn: HistoryTurn) -> None:
        """Add a turn at the end, and cut old ones off if there are too many."""
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
        """Return the request with the system message and the turns before its messages; only with so many turns that
        it and the longest reply fit into the model's context. Raises ContextTooSmallError if they don't fit even
        without any turn."""
        context, whole = self._backend.abilities.context, self._with(request)
        reserve = request.sampling.max_tokens or 0
        if context is None or estimate_request(whole) + reserve <= context:
            return whole
        needed = estimate_tokens(self._opening.text()) + estimate_tokens(request.prefill) + reserve + 16
        needed += sum(map(estimate_message, request.messages))
        if needed > context:
            raise ContextTooSmallError(
                f"{self._backend.model} has a context of {context} tokens; the system message, this observation and "
                f"{reserve} tokens for the reply need about {needed}. Give it more context (`wsap models` suggests "
                "how much), or allow shorter replies (--agent-option max_tokens=N)."
            )
        before = len(self._turns)
        self._cut_to(context - needed)
        self._say(context, before - len(self._turns))
        return self._with(request)

    def _with(self, request: Request) -> Request:
        said = (message for turn in self._turns for message in turn.messages)
        return replace(request, messages=(self._opening, *said, *request.messages))

    def _cut_to(self, tokens: int) -> None:
        """Cut turns off if there is no room for them, down to half of it, so that the next cut is some turns away."""
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

    def _say(self, context: int, cut: int) -> None:
        left = len(self._turns)
        if self._told or not cut or left >= self._steps:
            return  # as many as were asked for are still there
        self._told = True
        self._tell(
            f"{self._backend.model} has a context of {context} tokens, which is too little for {self._steps} steps of "
            f"history: older ones are cut from its prompt, and now it holds the newest {left}. Give it more context "
            "(`wsap models` suggests how much), or ask for less history (--agent-option window=N)."
        )
