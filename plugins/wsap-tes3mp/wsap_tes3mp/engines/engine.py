"""What an engine implements, and a bridge; nothing else of the plugin knows which engine or bridge there is."""

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
"""What an engine may be able to do besides: bodies made on request, life after death, items that enter and leave,
its state as bytes and back (the kernel's `Snapshots`), time that goes on with commands only."""
End = Literal["confirmed", "failed", "unknown"]
"""How a command ends."""


@dataclass(frozen=True)
class EngineView:
    """What an engine says of the world for one agent; the bridge checks it, it may hold anything."""

    timestamp: datetime
    """On the engine's clock: the machine's, or logical where time is stepped."""
    sequence: int
    """Grows with each change of the view, within one boot."""
    body: Mapping[str, Any]
    """The fields of `PerceptionOutput` but version, time, agent, boot and sequence. Any: JSON, unchecked."""

    @staticmethod
    def check(view: Any, engine: Engine, agent_id: str) -> PerceptionOutput:
        """Return what an engine says (Any: whatever it is); `SchemaMismatchError` if it does not fit the schema."""
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
                raise TypeError("timestamp: it is no datetime")
            # Strict where pydantic would mend what no JSON can hold.
            json.dumps(view.body.get("raw_engine_data"), ensure_ascii=False, allow_nan=False).encode()
            found.model_dump_json()
        except (TypeError, AttributeError, ValueError, RecursionError) as error:
            told = f"The engine {engine.name} gave a perception that does not fit the schema: {first_problem(error)}."
            raise SchemaMismatchError(told) from error
        return found


@dataclass(frozen=True)
class Done:
    """What an engine says of a command that it was told to carry out."""

    state: End
    message: str = ""
    code: str | None = None
    sequence: int | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def check(said: Any) -> Done:
        """Return what an engine says (Any: whatever it is); unknown if it can't be understood."""
        if isinstance(said, Done):
            fields: tuple[tuple[Any, type | UnionType], ...] = (
                (said.message, str), (said.code, str | None), (said.sequence, int | None), (said.data, Mapping)
            )  # fmt: skip
            if said.state in get_args(End) and all(isinstance(value, kind) for value, kind in fields):
                return said
        return Done("unknown", "The engine's answer can't be understood.", SchemaMismatchError.code)


def time_of_day(hour: float) -> str:
    """Return the part of the day of an hour from 0 to 24."""
    parts = ((5, "night"), (8, "dawn"), (12, "morning"), (17, "afternoon"), (20, "evening"), (25, "night"))
    return next(name for end, name in parts if hour < end)


class Engine(Protocol):
    """A game world with bodies for agents. All methods are called from one event loop.

    Agents appear and vanish by themselves (players log in and out), or on request where the engine can `join`.
    """

    @property
    def name(self) -> str:
        """Its name in `BridgeStatus.engine`, such as "simulated"."""

    @property
    def abilities(self) -> frozenset[EngineAbility]:
        """What it can do besides."""

    @property
    def boot_id(self) -> str | None:
        """Names this run of the game world; another one after it was started anew; None while not connected."""

    async def start(self) -> None:
        """Connect to the game world, or begin it; returns at once where it goes on trying in the background."""

    async def stop(self) -> None:
        """Let go of the game world; idempotent."""

    def agents(self) -> Sequence[AgentInfo]:
        """Return the agents that there are bodies for, sorted by id; none while not connected."""

    async def perceive(self, agent_id: str) -> EngineView:
        """Return what an agent perceives now. The bridge gives up after its deadline and cancels.

        Raises:
            BridgeUnavailableError: not connected, or no body of that agent is in the world.
        """

    async def execute(self, agent_id: str, command_id: str, command: str, params: Payload) -> Done:
        """Carry out a command and return once what came of it is known. It is sent to the game at most once.

        `noop` and `journal_note` never come here. A call that is cancelled leaves the command unknown.

        Raises:
            BridgeUnavailableError: it certainly was not sent.
        """


class Able(Protocol):
    """What an engine does besides, as far as its `abilities` name it."""

    async def join(self, request: JoinRequest) -> AgentInfo:
        """Give an agent a body, or wake its sleeping one; one that is awake stays as it is (`join`)."""

    async def leave(self, agent_id: str, mode: str) -> None:
        """Let the body sleep (`dormant`), vanish until it is wanted (`suspend`), or be gone (`despawn`) (`join`)."""

    async def respawn(self, agent_id: str) -> AgentInfo:
        """Bring a dead body back to life (`respawn`)."""

    async def transfer(self, agent_id: str, request: ItemsRequest) -> ItemsReceipt:
        """Put items into the inventory and take others out, once per transfer id, whose receipt is kept (`items`)."""


class BridgePort(Able, Protocol):
    """A bridge. `Bridge` is one in this process, `BridgeClient` one behind HTTP.

    Every method raises `BridgeError` for what the bridge refuses. What is marked 1.1.0, bodies and items a
    bridge with the seed's endpoints alone does not have: it then raises `NotOfferedError`.
    """

    async def perception(self, agent_id: str | None = None) -> PerceptionOutput:
        """Return the latest snapshot; an agent must be named where there are several."""

    async def command(self, command: CommandInput, *, key: str | None = None) -> CommandAccepted:
        """Submit a command; 1.1.0: with a key that was used before, the first answer is repeated.

        Raises:
            UnknownOutcomeError: no answer came, so that nobody knows whether it was taken.
        """

    async def status(self) -> BridgeStatus:
        """Return how bridge and engine are."""

    async def outcome(self, command_id: str, *, wait: float = 0.0) -> Outcome:
        """Return what became of a command, waiting up to so many seconds for the end of it (1.1.0)."""

    async def agents(self) -> list[AgentInfo]:
        """Return the agents that there are bodies for (1.1.0)."""


async def within(clock: Clock, seconds: float | None, work: Awaitable[T]) -> T:
    """Return what the work gives, or cancel it after so many seconds on a clock; None for no limit, and no task for it.

    Raises:
        TimeoutError: it took longer.
    """
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
