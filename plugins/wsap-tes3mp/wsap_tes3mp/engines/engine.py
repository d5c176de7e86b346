"""The interfaces of engines and bridges; the rest of the plugin does not know which ones it is using."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import UnionType
from typing import Any, Literal, Protocol, TypeVar, get_args

from wsap_core.seams.clock import Clock
from wsap_tes3mp.protocol.bridge import AgentInfo, BridgeStatus, ItemsReceipt, ItemsRequest, JoinRequest
from wsap_tes3mp.protocol.commands import CommandAccepted, CommandInput, Outcome
from wsap_tes3mp.protocol.errors import PROTOCOL_VERSION, SchemaMismatchError, first_problem
from wsap_tes3mp.protocol.perception import Payload, PerceptionOutput

T = TypeVar("T")

EngineAbility = Literal["join", "respawn", "items", "snapshot", "stepped"]
"""Optional features: bodies on request, respawning, item transfers, snapshots (the kernel's `Snapshots`), and time that
advances only with commands."""
End = Literal["confirmed", "failed", "unknown"]
"""The outcome of a command."""


@dataclass(frozen=True)
class EngineView:
    """An engine's view of the world for one agent, unchecked."""

    timestamp: datetime
    """By the engine's clock: the machine's, or logical if time is stepped."""
    sequence: int
    """Increases with each change of the view, within one boot."""
    body: Mapping[str, Any]
    """The fields of `PerceptionOutput` except version, time, agent, boot and sequence. Any: JSON, unchecked."""

    @staticmethod
    def check(view: Any, engine: Engine, agent_id: str) -> PerceptionOutput:
        """Return a view (Any: whatever the engine returned) as a perception.

        Raises:
            SchemaMismatchError: it does not fit the schema.
        """
        try:
            head = {
                "protocol_version": PROTOCOL_VERSION,
                "timestamp": view.timestamp,
                "agent_id": agent_id,
                "boot_id": engine.boot_id,
                "sequence": view.sequence,
            }
            found = PerceptionOutput.model_validate({**view.body, **head})
            if not isinstance(view.timestamp, datetime):
                raise TypeError("timestamp: not a datetime")
            # Strict where pydantic would convert what JSON can't hold.
            json.dumps(view.body.get("raw_engine_data"), ensure_ascii=False, allow_nan=False).encode()
            found.model_dump_json()
        except (TypeError, AttributeError, ValueError, RecursionError) as error:
            told = f"The engine {engine.name} gave a perception that does not fit the schema: {first_problem(error)}."
            raise SchemaMismatchError(told) from error
        return found


@dataclass(frozen=True)
class Done:
    """An engine's outcome of a command."""

    state: End
    message: str = ""
    code: str | None = None
    sequence: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def check(said: Any) -> Done:
        """Return an outcome (Any: whatever the engine returned); `unknown` if it can't be understood."""
        if isinstance(said, Done):
            fields: tuple[tuple[Any, type | UnionType], ...] = (
                (said.message, str), (said.code, str | None), (said.sequence, int | None), (said.data, Mapping)
            )  # fmt: skip
            if said.state in get_args(End) and all(isinstance(value, kind) for value, kind in fields):
                return said
        return Done("unknown", "The engine's answer can't be understood.", SchemaMismatchError.code)


def time_of_day(hour: float) -> str:
    """Return the part of the day for an hour from 0 to 24."""
    parts = ((5, "night"), (8, "dawn"), (12, "morning"), (17, "afternoon"), (20, "evening"), (25, "night"))
    return next(name for end, name in parts if hour < end)


class Engine(Protocol):
    """A game world with bodies for agents. All methods are called from one event loop.

    Agents come and go by themselves (players log in and out), or on request if the engine can `join`.
    """

    @property
    def name(self) -> str:
        """Its name in `BridgeStatus.engine`, such as "simulated"."""

    @property
    def abilities(self) -> frozenset[EngineAbility]:
        """Its optional features."""

    @property
    def boot_id(self) -> str | None:
        """Identifies this run of the game world; changes when it restarts; None while not connected."""

    async def start(self) -> None:
        """Start the game world, or connect to it, possibly in the background."""

    async def stop(self) -> None:
        """Disconnect from the game world; idempotent."""

    def agents(self) -> Sequence[AgentInfo]:
        """Return the agents with bodies, sorted by id; none while not connected."""

    async def perceive(self, agent_id: str) -> EngineView:
        """Return what an agent perceives now; cancelled after the bridge's deadline.

        Raises:
            BridgeUnavailableError: not connected, or that agent has no body in the world.
        """

    async def execute(self, agent_id: str, command_id: str, command: str, params: Payload) -> Done:
        """Execute a command and return its outcome. It is sent to the game at most once.

        Never called for `noop` and `journal_note`. A cancelled call leaves the outcome unknown.

        Raises:
            BridgeUnavailableError: it was certainly not sent.
        """


class Able(Protocol):
    """The methods of an engine's optional features; each is available if its `abilities` name it."""

    async def join(self, request: JoinRequest) -> AgentInfo:
        """Give an agent a body, or wake its sleeping one; no effect on one that is awake (`join`)."""

    async def leave(self, agent_id: str, mode: str) -> None:
        """Put the body to sleep (`dormant`), hide it (`suspend`), or delete it (`despawn`) (`join`)."""

    async def respawn(self, agent_id: str) -> AgentInfo:
        """Bring a dead body back to life (`respawn`)."""

    async def transfer(self, agent_id: str, request: ItemsRequest) -> ItemsReceipt:
        """Add and remove items, once per transfer id; a repeated id returns the first receipt (`items`)."""


class BridgePort(Able, Protocol):
    """A bridge: `Bridge` in this process, `BridgeClient` over HTTP.

    Every method raises `BridgeError` if the bridge refuses. A bridge with only the seed's endpoints raises
    `NotOfferedError` for bodies, items and what is marked 1.1.0.
    """

    async def perception(self, agent_id: str | None = None) -> PerceptionOutput:
        """Return the latest perception; the agent may be omitted if it is the only one."""

    async def command(self, command: CommandInput, *, key: str | None = None) -> CommandAccepted:
        """Submit a command; 1.1.0: repeating a key returns the first answer.

        Raises:
            UnknownOutcomeError: no answer arrived; it may have been accepted.
        """

    async def status(self) -> BridgeStatus:
        """Return the state of the bridge and its engine."""

    async def outcome(self, command_id: str, *, wait: float = 0.0) -> Outcome:
        """Return the outcome of a command, waiting up to `wait` seconds for it to finish (1.1.0)."""

    async def agents(self) -> list[AgentInfo]:
        """Return the agents with bodies (1.1.0)."""


async def within(clock: Clock, seconds: float | None, work: Awaitable[T]) -> T:
    """Return the result of `work`; cancel it and raise `TimeoutError` after `seconds` (None: no limit, no task)."""
    if seconds is None:
        return await work
    task = asyncio.ensure_future(work)
    late = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({task, late}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise TimeoutError(f"no answer within {seconds:g} s")
    finally:
        for each in (task, late):
            each.cancel()
