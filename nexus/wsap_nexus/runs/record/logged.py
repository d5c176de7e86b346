"""Recorded steps, choices, removals and snapshots of a run, read from the event log."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import Action, ActionResult
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.seams.agent import DecisionInfo, Usage
from wsap_nexus.runs.record.replay_order import LogPosition, position_after_event, position_of_event
from wsap_nexus.runs.record.trajectory import step_line


@dataclass(frozen=True)
class LoggedChoice:
    """A recorded choice, in a run of several seats."""

    seq: int
    seat: str
    episode: int
    step: int
    action: Action
    info: DecisionInfo | None
    after: int
    """The last event when the seat observed before it chose."""
    left: int | None = None
    """The event of the seat's removal before the choice was resolved; None if it was not removed."""

    @property
    def let_go(self) -> LogPosition | None:
        """When the world was told of the removal, if there was one."""
        return None if self.left is None else position_of_event(self.left, self.seat)

    @property
    def seen(self) -> LogPosition:
        """When the seat observed."""
        return position_after_event(self.after, self.seat)

    @property
    def made(self) -> LogPosition:
        """When the world was told of the choice."""
        return position_of_event(self.seq, self.seat)


@dataclass(frozen=True)
class LoggedLeave:
    """A recorded removal of a seat from the world."""

    seq: int
    seat: str
    episode: int
    step: int
    """The number of the step that would have come next."""

    @property
    def made(self) -> LogPosition:
        """When the world was told of the removal."""
        return position_of_event(self.seq, self.seat)


@dataclass(frozen=True)
class LoggedStep:
    """A recorded step."""

    seq: int
    seat: str
    episode: int
    step: int
    line: str
    """Its canonical line in the trajectory hash."""
    action: Action
    result: ActionResult
    info: DecisionInfo | None
    choice: LoggedChoice | None = None
    """Its choice; None with one seat."""

    def is_repeated_by(self, action: Action, result: ActionResult) -> bool:
        """Return whether an action and its result are the recorded ones.

        A game of a later version may say that the limit at which an episode ended was one.
        """
        if result.truncated and not self.result.truncated:
            result = replace(result, truncated=False)
        return step_line(self.seat, action, result) == self.line


Logged = LoggedStep | LoggedChoice | LoggedLeave
"""An item to replay: a step, a choice without a recorded step, or a removal."""


def read_choice(seq: int, seat: str, episode: int, step: int, body: bytes) -> LoggedChoice:
    """Return a recorded choice; WireError if the body is damaged."""
    try:
        data = json.loads(body)
        action = Action(data["action"]["name"], data["action"]["parameters"], data["reasoning"])
        return LoggedChoice(seq, seat, episode, step, action, read_decision(data["decision"]), int(data["after"]))
    except (ValueError, KeyError, TypeError) as error:
        raise WireError(f"Event {seq} of the run is not a choice: {error}.") from error


def read_step(seq: int, episode: int, step: int, body: bytes, codec: Codec) -> LoggedStep:
    """Return a recorded step; WireError if the body is damaged."""
    try:
        data = json.loads(body)
        line = data["step"]
        action = Action(line["action"]["name"], line["action"]["parameters"], data["reasoning"])
        result = codec.decode(
            ActionResult, {**line["result"], "observation": line["observation"]}, where="recorded step"
        )
        return LoggedStep(
            seq, line["seat"], episode, step, dumps(line), action, result, read_decision(data["decision"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise WireError(f"Event {seq} of the run is not a step: {error}.") from error


def read_snapshot(body: bytes) -> tuple[bytes, dict[str, bytes], dict[str, Mapping[str, Any]]]:
    """Return a recorded snapshot: the states of the world, the agents, and the seats' loops; WireError if damaged."""
    try:
        data = json.loads(body)
        world = base64.b64decode(data["world"], validate=True)
        agents = {k: base64.b64decode(v, validate=True) for k, v in data["agents"].items()}
        return world, agents, {str(name): dict(state) for name, state in data["seats"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WireError(f"A recorded snapshot is damaged: {error}.") from error


def snapshot_body(world: bytes, agents: Mapping[str, bytes], seats: Mapping[str, Any] | None = None) -> str:
    """Return the body of a recorded snapshot."""
    states = {name: _b64(data) for name, data in agents.items()}
    return dumps({"world": _b64(world), "agents": states, "seats": dict(seats or {})})


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


_OF_DECISION = tuple(each.name for each in fields(DecisionInfo))


def decision_body(info: DecisionInfo | None) -> str:
    """Return a decision's info as canonical JSON."""
    return "null" if info is None else dumps(info)


def read_decision(data: Mapping[str, Any] | None) -> DecisionInfo | None:
    """Return a recorded decision's info; KeyError or TypeError if it is damaged."""
    if data is None:
        return None
    return DecisionInfo(**{**{name: data[name] for name in _OF_DECISION}, "usage": Usage(**data["usage"])})
