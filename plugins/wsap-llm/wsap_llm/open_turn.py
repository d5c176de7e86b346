"""A turn that waits for what a tool of the world answers, and is gone on with then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from wsap_core.protocol import ActionResult, AgentMessage, Event, Observation
from wsap_core.protocol.wire import Codec, encode
from wsap_core.seams.model import ImagePart
from wsap_llm.lookup import NO_RESULT, PendingCall

__all__ = ["PausedTurn"]

T = TypeVar("T")


@dataclass(frozen=True)
class PausedTurn:
    """What was shown when a turn began, and the call that it waits for.

    Worlds tell an event and deliver a message once. Those of the observation that began the turn,
    and those that come while it is open, are kept, so that none is lost to the model: the later
    ones are for the next turn, and all of them if this one is dropped.
    """

    shown: str
    """The user message."""
    step: int
    """The game's step at which it began."""
    picture: ImagePart | None = None
    pending: PendingCall | None = None
    """None before the first call of a tool of the world."""
    told: Observation = field(default_factory=Observation)
    """Events and messages that are in the user message."""
    late: Observation = field(default_factory=Observation)
    """Those that came afterwards."""
    dropped: bool = False
    """Whether something else was done meanwhile, so that it can't be gone on with."""

    @classmethod
    def begin(cls, observation: Observation, shown: str, picture: ImagePart | None) -> PausedTurn:
        """Return a turn that begins with an observation."""
        return cls(shown, observation.step, picture, told=_heard(observation))

    def goes_on(self, observation: Observation) -> bool:
        """Return whether the turn goes on: the world has answered, and is still at the same step."""
        answered = self.pending is not None and self.pending.result is not None
        return answered and not self.dropped and observation.step == self.step

    def with_result(self, result: ActionResult) -> PausedTurn:
        """Return the turn after something was done: the call that it waits for, or else what ends it."""
        if self.pending is None or self.pending.result is not None or result.done:
            return replace(self, dropped=True)
        return replace(self, pending=replace(self.pending, result=result.message.strip() or NO_RESULT))

    def hearing(self, observation: Observation) -> PausedTurn:
        """Return the turn with the events and messages that are new in an observation."""
        return replace(self, late=_together(self.late, _new(observation, self.told, self.late)))

    def left_over(self, observation: Observation) -> Observation:
        """Return the events and messages that are to be told again if the turn is dropped: all but the present ones."""
        return _new(_together(self.told, self.late), observation)

    def to_json(self) -> dict[str, Any]:
        """Return it as data, for a snapshot (Any: JSON)."""
        seen = self.picture
        return {
            "shown": self.shown,
            "step": self.step,
            "picture": None if seen is None else [seen.base64, seen.media_type, seen.alt],
            "thought": None if self.pending is None else self.pending.to_json(),
            "told": _to_json(self.told),
            "late": _to_json(self.late),
            "dropped": self.dropped,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> PausedTurn:
        """Return what `to_json` gave.

        Raises:
            ValueError, KeyError, TypeError, WireError: it is something else.
        """
        return cls(
            str(data["shown"]),
            int(data["step"]),
            None if data["picture"] is None else ImagePart(*map(str, data["picture"])),
            None if data["thought"] is None else PendingCall.from_json(data["thought"]),
            _from_json(data["told"]),
            _from_json(data["late"]),
            bool(data["dropped"]),
        )


def _heard(observation: Observation) -> Observation:
    return Observation(recent_events=observation.recent_events, messages=observation.messages)


def _together(one: Observation, other: Observation) -> Observation:
    return Observation(
        recent_events=(*one.recent_events, *other.recent_events), messages=(*one.messages, *other.messages)
    )


def _new(observation: Observation, *known: Observation) -> Observation:
    return Observation(
        recent_events=_without(observation.recent_events, [e for k in known for e in k.recent_events]),
        messages=_without(observation.messages, [m for k in known for m in k.messages]),
    )


def _without(items: Sequence[T], known: Sequence[T]) -> list[T]:
    left = list(known)
    found: list[T] = []
    for item in items:
        if item in left:
            left.remove(item)  # each is known as often as it was told
        else:
            found.append(item)
    return found


def _to_json(observation: Observation) -> dict[str, Any]:
    return {"events": encode(observation.recent_events), "messages": encode(observation.messages)}


def _from_json(data: Mapping[str, Any]) -> Observation:
    codec = Codec()
    return Observation(
        recent_events=[codec.decode(Event, event) for event in data["events"]],
        messages=[codec.decode(AgentMessage, message) for message in data["messages"]],
    )
