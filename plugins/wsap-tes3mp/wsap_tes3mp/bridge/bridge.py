"""`Bridge`: perceptions and commands between agents and one engine, in process; `app` serves it over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import weakref
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn, cast

from pydantic import JsonValue
from typing_extensions import override

from wsap_core.errors import StorageError, UnknownNameError, WsapError
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.untrusted import single_line
from wsap_tes3mp.engines.engine import Able, BridgePort, Done, Engine, EngineAbility, EngineView, T, within
from wsap_tes3mp.log.log import CommandLog
from wsap_tes3mp.protocol import errors
from wsap_tes3mp.protocol.bridge import AgentInfo, BridgeStatus, ItemsReceipt, ItemsRequest, JoinRequest
from wsap_tes3mp.protocol.commands import UNHINDERED, CommandAccepted, CommandInput, Outcome
from wsap_tes3mp.protocol.perception import Payload, PerceptionOutput

DEADLINE = 2.0
"""Default seconds an engine has to return a perception."""
PATIENCE = 300.0
"""Seconds a command may run beyond its own duration before its outcome counts as unknown. TES3MP's script gives up
earlier: a companion may walk for 180 s."""
WATCH = 0.25
"""Seconds between polls of the engine while anybody listens to events."""
_KEPT = 16
"""Perceptions remembered per agent, to find the one that led to a command."""
_LOG = logging.getLogger(__name__)
_MOST = 1000
"""Events queued for a listener; one that falls further behind is disconnected and has to ask again."""


@dataclass(frozen=True)
class Event:
    """One event of the stream."""

    kind: str
    """`perception`, `outcome` or `agents`."""
    body: Mapping[str, JsonValue]


Listener = asyncio.Queue[Event | None]
"""The queue of one listener; None ends it."""


class Bridge(BridgePort):
    """A bridge in this process.

    Args:
        engine: the game world; started and stopped with the bridge.
        log: records every command; the caller closes it.
        clock: for deadlines and uptime.
        deadline: seconds the engine has for a perception; None for an engine that never waits.
        patience: seconds a command may run beyond its own duration.
        stale_after: maximum age in seconds of the perception a command is based on; None for no limit.
    """

    def __init__(
        self,
        engine: Engine,
        log: CommandLog,
        *,
        clock: Clock | None = None,
        deadline: float | None = DEADLINE,
        patience: float = PATIENCE,
        stale_after: float | None = None,
    ) -> None:
        self.engine = engine
        self._listeners: weakref.WeakSet[Listener] = weakref.WeakSet()  # dropped queues stop listening
        self._log = log
        self._clock: Clock = clock or SystemClock()
        self._deadline, self._patience, self._stale_after = deadline, patience, stale_after
        self._began = self._clock.now()
        self._last: datetime | None = None
        self._seen: dict[str, list[tuple[PerceptionOutput, float]]] = {}  # with the time each was returned
        self._running: dict[str, str] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._told: dict[str, tuple[str | None, int | None]] = {}
        self._there: frozenset[str] = frozenset()
        self._watching: asyncio.Task[None] | None = None
        self._stopping = False

    async def start(self) -> None:
        """Start the engine; it may still be connecting afterwards."""
        await self.engine.start()

    async def stop(self) -> None:
        """Stop the engine; commands that are still running become unknown."""
        self._stopping = True
        await self.engine.stop()
        tasks = [*self._tasks.values(), *([] if self._watching is None else [self._watching])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.tell(None)

    # ------------------------------------------------------------------ perceptions

    @override
    async def perception(self, agent_id: str | None = None) -> PerceptionOutput:
        found = await self._look(self._agent(agent_id))
        seen = self._seen.setdefault(found.agent_id, [])
        if seen and (seen[-1][0].boot_id, seen[-1][0].sequence) == (found.boot_id, found.sequence):
            seen.pop()
        seen.append((found, self._clock.now()))
        del seen[:-_KEPT]
        return found

    async def _look(self, agent: AgentInfo) -> PerceptionOutput:
        _must_be_there(agent)
        try:
            view = await within(self._clock, self._deadline, self.engine.perceive(agent.agent_id))
            found = EngineView.check(view, self.engine, agent.agent_id)
        except TimeoutError:
            told = f"The engine did not respond within {self._deadline:g} s; ask again."
            raise errors.PerceptionTimeoutError(told) from None
        except errors.BridgeError as error:
            if isinstance(error, errors.SchemaMismatchError):
                _LOG.warning("%s", error)
            raise
        except Exception as error:
            _LOG.exception("The engine %s failed at a perception.", self.engine.name)
            told = f"The engine {self.engine.name} failed; the bridge's own log has more."
            raise errors.BridgeInternalError(told) from error
        self._last = found.timestamp
        moment = (found.boot_id, found.sequence)
        if self._told.get(agent.agent_id) != moment:
            self._told[agent.agent_id] = moment
            self.tell(Event("perception", {"agent_id": found.agent_id, "sequence": found.sequence}))
        return found

    def tell(self, event: Event | None) -> None:
        """Send an event to all listeners; None disconnects them, as does falling too far behind."""
        for listener in list(self._listeners):
            over = event is None or listener.qsize() >= _MOST
            listener.put_nowait(None if over else event)
            if over:
                self._listeners.discard(listener)

    def listen(self) -> Listener:
        """Return a listener for events from now on; while there is one, the engine is polled."""
        self._tell_agents()
        listener = Listener()
        self._listeners.add(listener)
        if self._watching is None or self._watching.done():
            self._watching = asyncio.create_task(self._watch())
        return listener

    async def _watch(self) -> None:
        while self._listeners:
            await self._clock.sleep(WATCH)
            self._tell_agents()
            for agent in self.engine.agents():
                with contextlib.suppress(errors.BridgeError):
                    await self._look(agent)

    def _tell_agents(self) -> None:
        """Report agents that joined or left since the last call."""
        there = frozenset(agent.agent_id for agent in self.engine.agents() if agent.connected)
        for agent_id in sorted(there ^ self._there):
            self.tell(Event("agents", {"agent_id": agent_id, "joined": agent_id in there}))
        self._there = there

    def _that_led_to(self, command: CommandInput) -> PerceptionOutput | None:
        """Return the perception a command is based on, by default the last one; `StalePerceptionError` if too old."""
        context, boot = command.context, self.engine.boot_id
        sequence = None if context is None else context.perception_sequence
        moment = None if context is None else context.perception_timestamp
        for perception, given in reversed(self._seen.get(command.agent_id, [])):
            if sequence is not None:
                named = perception.sequence == sequence and perception.boot_id == boot
            else:
                named = moment is None or perception.timestamp == moment
            if not named:
                continue
            age, most = self._clock.now() - given, self._stale_after
            if most is not None and age > most:
                told = f"The command is based on a perception {age:.1f} s old; {most:g} s are allowed here"
                details = {"age_seconds": round(age, 3), "sequence": perception.sequence}
                raise errors.StalePerceptionError(f"{told}; perceive again.", details)
            return perception
        return None

    # ------------------------------------------------------------------ commands

    async def receive(self, raw: JsonValue, *, key: str | None = None) -> CommandAccepted:
        """Accept a command as JSON, or log it with the code of the error that is raised.

        Raises:
            SchemaMismatchError: a newer major version.
            InvalidCommandError: an unknown command.
            PayloadError: anything else is invalid, or the agent is unknown.
            BridgeError: see `command`.
        """
        try:
            command = CommandInput.read(raw)
        except WsapError as error:
            self._refuse(raw, error)
        return await self.command(command, key=key)

    @override
    async def command(self, command: CommandInput, *, key: str | None = None) -> CommandAccepted:
        try:
            return CommandAccepted(command_id=self._take(command, key))
        except StorageError as error:
            message = f"The command could not be logged, so it was not sent: {error}"
            raise errors.BridgeInternalError(message) from error

    def _take(self, command: CommandInput, key: str | None) -> str:
        agent_id, aside = command.agent_id, command.command in UNHINDERED
        try:
            params = command.parameters()
            if key is not None and (known := self._log.repeated(command, key)) is not None:
                return known
            agent = self._agent(agent_id)
            if not aside:
                _must_be_there(agent)
                if (busy := self._running.get(agent_id)) is not None:
                    told = f"{single_line(agent_id)!r} is busy with {busy}; wait for its outcome."
                    raise errors.CommandConflictError(told, {"command_id": busy})
            perception = self._that_led_to(command)
        except StorageError:
            raise
        except WsapError as error:
            self._refuse(command.model_dump(mode="json", exclude_none=True), error)
        command_id = self._log.begin(command, perception, key, engine=self.engine.name)
        if aside:
            done = Done("confirmed")
            try:
                self._finish(agent_id, command_id, done)
            except StorageError:  # it is in the log, and its outcome follows
                self._tasks[command_id] = asyncio.create_task(self._settle(agent_id, command_id, done))
        else:
            self._running[agent_id] = command_id
            self._tasks[command_id] = asyncio.create_task(self._carry_out(command, command_id, params))
        return command_id

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
            asked = getattr(params, "duration_seconds", 0.0)
            work = self.engine.execute(agent_id, command_id, command.command, params)
            done = Done.check(await within(self._clock, self._patience + asked, work))
        except TimeoutError:
            message = f"The engine reported no outcome within {self._patience + asked:g} s."
            done = Done("unknown", message, "COMMAND_TIMEOUT")
        except StorageError:
            _LOG.exception("The command %s could not be logged as sent, so it was not sent.", command_id)
            done = Done("failed", "It could not be logged, so it was not sent.", errors.BridgeInternalError.code)
        except errors.BridgeError as error:
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
        """Log an outcome, retrying until it succeeds; when the bridge stops, the log itself says `unknown`."""
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
            if self._running.get(agent_id) == command_id:
                del self._running[agent_id]
            self._tasks.pop(command_id, None)

    def _finish(self, agent_id: str, command_id: str, done: Done) -> None:
        self._log.finish(command_id, done)
        told = {"agent_id": agent_id, "command_id": command_id, "state": done.state, "code": done.code}
        self.tell(Event("outcome", told))

    @override
    async def outcome(self, command_id: str, *, wait: float = 0.0) -> Outcome:
        task = self._tasks.get(command_id)
        if task is not None and wait > 0:
            with contextlib.suppress(TimeoutError):
                await within(self._clock, wait, asyncio.wait({task}))
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
        agent = await self._asked(self._able("join").join(request))
        self._tell_agents()
        return agent

    @override
    async def leave(self, agent_id: str, mode: str = "dormant") -> None:
        self._agent(agent_id)
        await self._asked(self._able("join").leave(agent_id, mode))
        self._seen.pop(agent_id, None)
        self._tell_agents()

    @override
    async def respawn(self, agent_id: str) -> AgentInfo:
        self._agent(agent_id)
        return await self._asked(self._able("respawn").respawn(agent_id))

    @override
    async def transfer(self, agent_id: str, request: ItemsRequest) -> ItemsReceipt:
        self._agent(agent_id)
        return await self._asked(self._able("items").transfer(agent_id, request))

    async def _asked(self, work: Awaitable[T]) -> T:
        try:
            return await within(self._clock, self._deadline, work)
        except TimeoutError:
            raise errors.BridgeUnavailableError(f"The engine did not respond within {self._deadline:g} s.") from None

    def _able(self, ability: EngineAbility) -> Able:
        if ability not in self.engine.abilities:
            told = f"The engine {self.engine.name} does not offer {ability!r}."
            raise errors.NotOfferedError(told, {"ability": ability})
        return cast(Able, self.engine)  # within that ability

    def _connected(self) -> None:
        if self.engine.boot_id is None:
            raise errors.BridgeUnavailableError(f"The engine {self.engine.name} is not connected; try again.")

    def _agent(self, agent_id: str | None) -> AgentInfo:
        """Return the agent with that id, or the only one; errors list the ids in `details`."""
        self._connected()
        agents = {agent.agent_id: agent for agent in self.engine.agents()}
        if not agents:
            raise errors.BridgeUnavailableError("No agent is connected to the game; let one join first.")
        if agent_id is None and len(agents) == 1:
            return next(iter(agents.values()))
        if agent_id is not None and agent_id in agents:
            return agents[agent_id]
        few = ", ".join(single_line(name)[:40] for name in list(agents)[:10]) + (", ..." if len(agents) > 10 else "")
        told = f"Several agents are connected; say which with agent_id: {few}."
        if agent_id is not None:
            told = f"There is no agent {single_line(agent_id)[:80]!r} here; there are: {few}."
        raise errors.PayloadError(told, {"agent_ids": list(agents)})


def _must_be_there(agent: AgentInfo) -> None:
    if not agent.connected:
        told = f"{single_line(agent.agent_id)!r} is not in the world now; let it join first."
        raise errors.BridgeUnavailableError(told)
