"""`Bridge`: perceptions and commands between agents and one engine, in this process; HTTP is a front of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from datetime import datetime
from typing import NoReturn, TypeVar

from pydantic import JsonValue, ValidationError
from typing_extensions import override

from wsap_core.errors import StorageError, UnknownNameError, WireError, WsapError
from wsap_core.protocol.wire import dumps
from wsap_core.seams.clock import Clock, SystemClock, within
from wsap_core.untrusted import single_line
from wsap_tes3mp.bridge.news import Event, News
from wsap_tes3mp.bridge.port import BridgePort
from wsap_tes3mp.engines.engine import Carrying, Done, Engine, EngineView, Joinable, Respawning
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.protocol.bridge import AgentInfo, BridgeStatus, ItemsReceipt, ItemsRequest, JoinRequest
from wsap_tes3mp.protocol.commands import PARAMS, UNHINDERED, CommandAccepted, CommandInput, Outcome
from wsap_tes3mp.protocol.errors import (
    BridgeError,
    BridgeInternalError,
    BridgeUnavailableError,
    CommandConflictError,
    InvalidCommandError,
    NotOfferedError,
    PayloadError,
    PerceptionTimeoutError,
    SchemaMismatchError,
)
from wsap_tes3mp.protocol.perception import Payload, PerceptionOutput
from wsap_tes3mp.protocol.versions import PROTOCOL_VERSION, check_version

DEADLINE = 2.0
"""Seconds within which an engine must say what an agent perceives, unless configured otherwise."""
_KEPT = 16
"""Perceptions of each agent that are remembered, to find the one that led to a command."""
_LOG = logging.getLogger(__name__)
T = TypeVar("T")


class Bridge(BridgePort):
    """A bridge in this process.

    Args:
        engine: the game world; started and stopped with the bridge.
        log: keeps every command; it stays open.
        clock: for deadlines and uptime.
        deadline: seconds that the engine has for a perception.
    """

    def __init__(
        self,
        engine: Engine,
        log: CommandLog,
        *,
        clock: Clock | None = None,
        deadline: float = DEADLINE,
    ) -> None:
        self.engine = engine
        self.news = News()
        self._log = log
        self._clock: Clock = clock or SystemClock()
        self._deadline = deadline
        self._began = self._clock.now()
        self._last: datetime | None = None
        self._seen: dict[str, list[PerceptionOutput]] = {}
        self._running: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._stopping = False

    async def start(self) -> None:
        """Start the engine; it may still be connecting afterwards."""
        await self.engine.start()

    async def stop(self) -> None:
        """Stop the engine; commands that are still running become unknown."""
        self._stopping = True
        await self.engine.stop()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.news.tell(None)

    # ------------------------------------------------------------------ perceptions

    @override
    async def perception(self, agent_id: str | None = None) -> PerceptionOutput:
        agent = self._agent(agent_id)
        if not agent.connected:
            raise BridgeUnavailableError(f"{single_line(agent.agent_id)!r} is not in the world now; let it join first.")
        try:
            view = await within(self._clock, self._deadline, self.engine.perceive(agent.agent_id))
        except TimeoutError:
            raise PerceptionTimeoutError(
                f"The engine did not respond within {self._deadline:g} s; ask again."
            ) from None
        found = perceived(self.engine, agent.agent_id, view)
        self._remember(found)
        return found

    def _remember(self, found: PerceptionOutput) -> None:
        self._last = found.timestamp
        seen = self._seen.setdefault(found.agent_id, [])
        fresh = not seen or (seen[-1].boot_id, seen[-1].sequence) != (found.boot_id, found.sequence)
        if not fresh:
            seen.pop()
        seen.append(found)
        del seen[:-_KEPT]
        if fresh:
            body: dict[str, JsonValue] = {"agent_id": found.agent_id, "sequence": found.sequence}
            self.news.tell(Event("perception", body))

    def _that_led_to(self, command: CommandInput) -> PerceptionOutput | None:
        """Return the perception that a command was decided on; the last one if the command doesn't say."""
        seen = self._seen.get(command.agent_id, [])
        context = command.context
        if context is None or (context.perception_timestamp is None and context.perception_sequence is None):
            return seen[-1] if seen else None
        for perception in reversed(seen):
            if context.perception_sequence is not None:
                if perception.sequence == context.perception_sequence:
                    return perception
            elif perception.timestamp == context.perception_timestamp:
                return perception
        return None

    # ------------------------------------------------------------------ commands

    async def receive(self, raw: JsonValue, *, key: str | None = None) -> CommandAccepted:
        """Take a command as JSON; what is refused is logged with its code.

        Raises:
            SchemaMismatchError: it speaks a newer major version.
            InvalidCommandError: the command type is not known.
            PayloadError: something else does not fit, or there is no such agent.
            BridgeError: see `command`.
        """
        try:
            command = read_command(raw)
        except WsapError as error:
            self._refuse(raw, error)
        return await self.command(command, key=key)

    @override
    async def command(self, command: CommandInput, *, key: str | None = None) -> CommandAccepted:
        try:
            params = self._check(command)
            if key is not None and (known := self._log.repeated(command, key)) is not None:
                return CommandAccepted(command_id=known)
            self._admit(command)
        except StorageError as error:
            raise _not_logged(error) from error
        except WsapError as error:
            self._refuse(command.model_dump(mode="json", exclude_none=True), error)
        try:
            command_id = self._log.begin(command, self._that_led_to(command), key, engine=self.engine.name)
            if command.command in UNHINDERED:
                self._finish(command.agent_id, command_id, Done("confirmed"))
                return CommandAccepted(command_id=command_id)
        except StorageError as error:
            raise _not_logged(error) from error
        self._running[command.agent_id] = command_id
        task = asyncio.create_task(self._carry_out(command, command_id, params))
        self._tasks[command_id] = task
        return CommandAccepted(command_id=command_id)

    def _check(self, command: CommandInput) -> Payload:
        check_version(command.protocol_version, where="command")
        if command.command not in PARAMS:
            raise _invalid(command.command)
        try:
            return command.parameters()
        except ValidationError as error:
            raise PayloadError(f"The parameters of {command.command} don't fit: {first_problem(error)}.") from error

    def _admit(self, command: CommandInput) -> None:
        agent = self._agent(command.agent_id)
        if command.command in UNHINDERED:
            return
        if not agent.connected:
            raise BridgeUnavailableError(f"{single_line(agent.agent_id)!r} is not in the world now; let it join first.")
        if (busy := self._running.get(agent.agent_id)) is not None:
            raise CommandConflictError(
                f"{single_line(agent.agent_id)!r} is busy with {busy}; wait for its outcome.", {"command_id": busy}
            )

    def _refuse(self, raw: JsonValue, error: WsapError) -> NoReturn:
        try:
            self._log.reject(raw, error.code, str(error))
        except StorageError:
            _LOG.exception("A rejected command could not be logged.")
        raise error

    async def _carry_out(self, command: CommandInput, command_id: str, params: Payload) -> None:
        agent_id = command.agent_id
        done = Done("unknown", "The bridge stopped before the end of the command was known.", "BRIDGE_STOPPED")
        sent = False
        try:
            self._log.dispatched(command_id)
            sent = True
            done = await self.engine.execute(agent_id, command_id, command.command, params)
        except StorageError:
            _LOG.exception("The command %s could not be logged as sent, so it was not sent.", command_id)
            done = Done("failed", "It could not be logged, so it was not sent.", BridgeInternalError.code)
        except BridgeError as error:
            done = Done("failed", str(error), error.code)
        except asyncio.CancelledError:
            if not sent:
                done = Done("failed", "The bridge stopped before it sent the command.", "NOT_SENT")
            raise
        except Exception:
            _LOG.exception("The engine %s failed at the command %s.", self.engine.name, command_id)
            done = Done("unknown", "The engine failed while it carried this out.", "ENGINE_FAILED")
        finally:
            await self._settle(agent_id, command_id, done)

    async def _settle(self, agent_id: str, command_id: str, done: Done) -> None:
        """Log an outcome, as often as it takes; at the end of the bridge the log itself says `unknown`."""
        pause = 0.1
        try:
            while True:
                try:
                    self._finish(agent_id, command_id, done)
                    return
                except StorageError:
                    _LOG.exception("The outcome of %s could not be logged.", command_id)
                    if self._stopping:
                        return
                    await self._clock.sleep(pause)
                    pause = min(pause * 2, 5.0)
        finally:
            self._running.pop(agent_id, None)
            self._tasks.pop(command_id, None)

    def _finish(self, agent_id: str, command_id: str, done: Done) -> None:
        self._log.finish(command_id, done)
        self.news.tell(
            Event("outcome", {"agent_id": agent_id, "command_id": command_id, "state": done.state, "code": done.code})
        )

    @override
    async def outcome(self, command_id: str, *, wait: float = 0.0) -> Outcome:
        task = self._tasks.get(command_id)
        if task is not None and wait > 0:
            late = asyncio.ensure_future(self._clock.sleep(wait))
            await asyncio.wait({task, late}, return_when=asyncio.FIRST_COMPLETED)
            late.cancel()
        found = self._log.find(command_id)
        if found is None or found.state == "rejected":
            raise UnknownNameError("command", command_id[:100], ())
        return found

    # ------------------------------------------------------------------ agents and status

    @override
    async def status(self) -> BridgeStatus:
        boot = self.engine.boot_id
        return BridgeStatus(
            bridge_connected=boot is not None,
            engine=self.engine.name,
            uptime_seconds=round(self._clock.now() - self._began, 3),
            last_perception_at=self._last,
            boot_id=boot,
            agents=tuple(agent.agent_id for agent in self.engine.agents()),
            abilities=tuple(sorted(self.engine.abilities)),
        )

    @override
    async def agents(self) -> list[AgentInfo]:
        self._connected()
        return [a.model_copy(update={"busy": self._running.get(a.agent_id)}) for a in self.engine.agents()]

    @override
    async def join(self, request: JoinRequest) -> AgentInfo:
        self._connected()
        if not isinstance(self.engine, Joinable):
            raise self._lacks("join")
        agent = await self._asked(self.engine.join(request))
        self.news.tell(Event("agents", {"agent_id": agent.agent_id, "joined": True}))
        return agent

    @override
    async def leave(self, agent_id: str, mode: str = "dormant") -> None:
        agent = self._agent(agent_id)
        if not isinstance(self.engine, Joinable):
            raise self._lacks("join")
        await self._asked(self.engine.leave(agent.agent_id, mode))
        self._seen.pop(agent.agent_id, None)
        self.news.tell(Event("agents", {"agent_id": agent.agent_id, "joined": False}))

    @override
    async def respawn(self, agent_id: str) -> AgentInfo:
        agent = self._agent(agent_id)
        if not isinstance(self.engine, Respawning):
            raise self._lacks("respawn")
        return await self._asked(self.engine.respawn(agent.agent_id))

    @override
    async def transfer(self, agent_id: str, request: ItemsRequest) -> ItemsReceipt:
        agent = self._agent(agent_id)
        if not isinstance(self.engine, Carrying):
            raise self._lacks("items")
        return await self._asked(self.engine.transfer(agent.agent_id, request))

    async def _asked(self, work: Awaitable[T]) -> T:
        try:
            return await within(self._clock, self._deadline, work)
        except TimeoutError:
            raise BridgeUnavailableError(f"The engine did not respond within {self._deadline:g} s.") from None

    def _lacks(self, ability: str) -> NotOfferedError:
        return NotOfferedError(f"The engine {self.engine.name} does not offer {ability!r}.", {"ability": ability})

    def _connected(self) -> None:
        if self.engine.boot_id is None:
            raise BridgeUnavailableError(f"The engine {self.engine.name} is not connected; try again.")

    def _agent(self, agent_id: str | None) -> AgentInfo:
        """Return the agent of that id, or the only one there is.

        Raises:
            BridgeUnavailableError: no engine is connected, or no agent.
            PayloadError: there is no such agent, or one must be named; `details` has the ids.
        """
        self._connected()
        agents = {agent.agent_id: agent for agent in self.engine.agents()}
        if not agents:
            raise BridgeUnavailableError("No agent is connected to the game; let one join first.")
        ids: list[JsonValue] = list(agents)
        if agent_id is None:
            if len(agents) > 1:
                raise PayloadError(
                    f"Several agents are connected; say which with agent_id: {_few(agents)}.", {"agent_ids": ids}
                )
            return next(iter(agents.values()))
        if agent_id not in agents:
            raise PayloadError(
                f"There is no agent {single_line(agent_id)[:80]!r} here; there are: {_few(agents)}.", {"agent_ids": ids}
            )
        return agents[agent_id]


def perceived(engine: Engine, agent_id: str, view: EngineView) -> PerceptionOutput:
    """Return what an engine says that an agent perceives, checked.

    Raises:
        SchemaMismatchError: it does not fit the schema.
    """
    head = {
        "protocol_version": PROTOCOL_VERSION,
        "timestamp": view.timestamp,
        "agent_id": agent_id,
        "boot_id": engine.boot_id,
        "sequence": view.sequence,
    }
    try:
        found = PerceptionOutput.model_validate({**view.body, **head})
        dumps(found.raw_engine_data).encode()
    except (ValidationError, WireError, TypeError, UnicodeEncodeError) as error:
        raise SchemaMismatchError(
            f"The engine {engine.name} gave a perception that does not fit the schema: {first_problem(error)}."
        ) from error
    return found


def read_command(raw: JsonValue) -> CommandInput:
    """Return a command that came as JSON; its parameters are not checked yet.

    Raises:
        SchemaMismatchError: it speaks a newer major version.
        InvalidCommandError: the command type is not known.
        PayloadError: another field is missing or does not fit.
    """
    if not isinstance(raw, dict):
        raise PayloadError("A command is a JSON object; see the reference of the protocol.")
    version = raw.get("protocol_version")
    if isinstance(version, str):
        check_version(version, where="command")
    name = raw.get("command")
    if isinstance(name, str) and name not in PARAMS:
        raise _invalid(name)
    try:
        return CommandInput.model_validate_json(dumps(raw))
    except (ValidationError, WireError) as error:
        raise PayloadError(f"The command can't be read: {first_problem(error)}.") from error


def first_problem(error: Exception) -> str:
    """Return in a few words, on one line, where and why something does not fit."""
    if not isinstance(error, ValidationError):
        return single_line(str(error))[:300].rstrip(".")
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return single_line(f"{where}: {first['msg']}" if where else str(first["msg"]))[:300].rstrip(".")


def _invalid(name: str) -> InvalidCommandError:
    known: list[JsonValue] = list(PARAMS)
    return InvalidCommandError(
        f"There is no command {single_line(name)[:80]!r}; there are: {', '.join(PARAMS)}.", {"commands": known}
    )


def _not_logged(error: StorageError) -> BridgeInternalError:
    return BridgeInternalError(f"The command could not be logged, so it was not sent: {error}")


def _few(agents: Mapping[str, AgentInfo]) -> str:
    shown = ", ".join(single_line(name)[:40] for name in list(agents)[:10])
    return shown + (", ..." if len(agents) > 10 else "")
