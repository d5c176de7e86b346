"""What is recorded of a run's steps, choices and departures, read back from the event log; and its snapshots."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import Action, ActionResult
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.seams.agent import DecisionInfo, Usage
from wsap_nexus.runs.replay_order import LogPosition, position_after_event, position_of_event


@dataclass(frozen=True)
class LoggedChoice:
    """A recorded choice of a seat in a world of several."""

    seq: int
    seat: str
    episode: int
    step: int
    action: Action
    info: DecisionInfo | None
    after: int
    """The last event when the seat saw what it chose upon."""
    left: int | None = None
    """The event with which the seat was taken out before anything came of the choice; None if it was not."""

    @property
    def let_go(self) -> LogPosition | None:
        """When the world heard of the removal, if there was one."""
        return None if self.left is None else position_of_event(self.left, self.seat)

    @property
    def seen(self) -> LogPosition:
        """When the seat looked."""
        return position_after_event(self.after, self.seat)

    @property
    def made(self) -> LogPosition:
        """When the world heard of it."""
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
        """When the world heard of it."""
        return position_of_event(self.seq, self.seat)


@dataclass(frozen=True)
class LoggedStep:
    """A step as it was recorded."""

    seq: int
    seat: str
    episode: int
    step: int
    line: str
    """Its canonical line, as the trajectory hash takes it."""
    action: Action
    result: ActionResult
    info: DecisionInfo | None
    choice: LoggedChoice | None = None
    """The choice that it came of; None with one seat, and in runs that were recorded by older versions."""


Logged = LoggedStep | LoggedChoice | LoggedLeave
"""What is gone through again: a step, a choice whose step was not recorded any more, a departure."""


def read_choice(seq: int, seat: str, episode: int, step: int, body: bytes) -> LoggedChoice:
    """Return a recorded choice; WireError if the body is not one."""
    try:
        data = json.loads(body)
        action = Action(data["action"]["name"], data["action"]["parameters"], data["reasoning"])
        return LoggedChoice(seq, seat, episode, step, action, read_decision(data["decision"]), int(data["after"]))
    except (ValueError, KeyError, TypeError) as error:
        raise WireError(f"Event {seq} of the run is not a choice: {error}.") from error


def read_step(seq: int, episode: int, step: int, body: bytes, codec: Codec) -> LoggedStep:
    """Return a recorded step; WireError if the body is not one."""
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
    """Return the states of a recorded snapshot: the world's, each agent's, and each seat's, which its loop has.

    Raises:
        WireError: the body is not one.
    """
    try:
        data = json.loads(body)
        world = base64.b64decode(data["world"], validate=True)
        agents = {k: base64.b64decode(v, validate=True) for k, v in data["agents"].items()}
        return world, agents, {str(name): dict(state) for name, state in data.get("seats", {}).items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WireError(f"A recorded snapshot is damaged: {error}.") from error


def snapshot_body(world: bytes, agents: Mapping[str, bytes], seats: Mapping[str, Any] | None = None) -> str:
    """Return the body of a recorded snapshot."""
    states = {name: _b64(data) for name, data in agents.items()}
    return dumps({"world": _b64(world), "agents": states, "seats": dict(seats or {})})


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def decision_body(info: DecisionInfo | None) -> str:
    """Return how a decision came about, as canonical JSON."""
    return "null" if info is None else dumps(info)


def read_decision(data: Mapping[str, Any] | None) -> DecisionInfo | None:
    """Return how a recorded decision came about; KeyError or TypeError if it is damaged."""
    if data is None:
        return None
    # Runs that were recorded by older versions tell less.
    later = ("unconstrained", "cut", "resumption", "continued", "chosen", "cause")
    how = {name: data[name] for name in later if name in data}
    return DecisionInfo(bool(data["repaired"]), bool(data["forced"]), Usage(**data["usage"]), **how)
