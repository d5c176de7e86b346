"""Events that are told as they happen and are not in the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from typing_extensions import override

from wsap_core.protocol.values import JsonValue
from wsap_llm.middleware.show import state_line
from wsap_nexus.store.events.base import BY_ID, AgentEvent, Names, NexusEvent, short


class Thinking(AgentEvent):
    """A model is asked something for an agent, or has written more of its reply.

    It has no number, and only those get it who ask for its kind.
    """

    kind: Literal["thinking"] = "thinking"
    request: int
    """The number of the request since the start of the nexus."""
    model: str
    """The address of the model."""
    purpose: str = ""
    """Its purpose: `decide`, `plan`, `reflect`, `talk`, `diary`."""
    tokens: int = 0
    """The estimated tokens of the prompt."""
    state: Literal["waiting", "reading", "thinking", "writing", "done"]
    """`waiting` in a queue or before another attempt; `done` once the reply is whole or the request has failed."""
    waiting: str = ""
    """Why it waits."""
    seconds: float = 0.0
    """For how long it has been with the model, or waiting."""
    text: str = ""
    """The end of what the model has written so far, or thought if nothing is written yet."""

    def line(self, later: float = 0.0) -> str:
        """Return the state without a text, some seconds after the event: `reading 1,566 tokens, 43 s`."""
        return state_line(self.waiting, self.tokens, self.seconds + later)

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        what = f"is {self.state}: {short(self.text)}" if self.text else self.line()
        return f"{short(self.model, 80)} for {names.them(self.agent_id)}: {short(what)}"


class Pulse(NexusEvent):
    """What has gone on in worlds since the last such event; told at most five times a second, and when it is quiet.

    It has no number, and only those get it who ask for its kind.
    """

    kind: Literal["pulse"] = "pulse"
    agents: tuple[Mapping[str, JsonValue], ...] = ()
    """The sessions of agents that have made a decision, latest first, for those who may see them."""
    worlds: tuple[str, ...] = ()
    """The worlds in which they did."""
    rate: float
    """Decisions per second in worlds, over the last five seconds."""
    decisions: int
    """Decisions in worlds since the start of the nexus."""
    in_worlds: int
    """The number of agents in worlds."""
    held: str = ""
    """Why agents are held, such as a full disk; empty if they are not."""

    @override
    def sentence(self, names: Names = BY_ID) -> str:
        return f"{self.rate:g} decisions a second in worlds"
