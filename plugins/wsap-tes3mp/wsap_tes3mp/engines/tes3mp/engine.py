"""`Tes3mpEngine`: a TES3MP server as an engine; reconnects by itself, and sends each command at most once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast, get_args

from pydantic import JsonValue
from typing_extensions import override

from wsap_core.errors import ConfigError
from wsap_core.seams.clock import Clock, SystemClock
from wsap_core.textfile import read_text
from wsap_tes3mp.engines.engine import Done, End, Engine, EngineAbility, EngineView, within
from wsap_tes3mp.engines.tes3mp.connection import Connection, Facts, RefusedError, ScriptError, open_link
from wsap_tes3mp.engines.tes3mp.esm import Encoding, GameData, read_data
from wsap_tes3mp.engines.tes3mp.facts import body_of, number, text, whole
from wsap_tes3mp.paths import script_token_file
from wsap_tes3mp.protocol import errors
from wsap_tes3mp.protocol.bridge import AgentInfo, JoinRequest
from wsap_tes3mp.protocol.perception import Payload

ADDRESS = "127.0.0.1:8766"
"""Where the script listens by default."""
GREETING_SECONDS = 5.0
LOOK_SECONDS = 5.0
"""How often the server is asked for its agents, to see that it is alive."""
ANSWER_SECONDS = 10.0
"""How long it may take to answer before the connection counts as broken."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
_REFUSALS = {
    "token": "the script refuses the token; give both sides the same one",
    "version": "script and connector have different versions; install the script again with wsap tes3mp install",
    "busy": "another bridge is connected to the script; stop it first",
}
_ERRORS: dict[str, type[errors.BridgeError]] = {
    "NOT_CONNECTED": errors.BridgeUnavailableError,
    "NO_AGENT": errors.BridgeUnavailableError,
    "BAD_REQUEST": errors.PayloadError,
    "VALIDATION_ERROR": errors.PayloadError,
    "NOT_OFFERED": errors.NotOfferedError,
}

_UNSURE = frozenset({"INTERNAL", "BAD_REPLY"})
"""Error replies after which a command may have been executed."""

_LOG = logging.getLogger(__name__)


class Tes3mpEngine(Engine):
    """The game world of a TES3MP server, through its script.

    Args:
        token: the secret the script was installed with.
        address: `HOST:PORT` of the script, or its mailbox folder.
        names: the contents of the owner's data files.
        clock: for pauses and deadlines.
        now: the timestamps of views.
    """

    name = "tes3mp"
    abilities: frozenset[EngineAbility] = frozenset({"join", "respawn"})

    def __init__(
        self,
        token: str,
        address: str = ADDRESS,
        *,
        names: GameData | None = None,
        clock: Clock | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._token, self._address, self._names = token, address, names
        self._clock: Clock = clock or SystemClock()
        self._now = now
        self._connection: Connection | None = None
        self._agents: dict[str, AgentInfo] = {}
        # Commands that were sent: the server's boot, and the outcome.
        self._pending: dict[str, tuple[str, asyncio.Future[Done]]] = {}
        # Agent -> whether it fights and talks, and how often that has changed. The count is added to the script's
        # sequence numbers, which do not change when fights and dialogues expire.
        self._recent: dict[str, tuple[tuple[bool, bool], int]] = {}
        self._supervisor: asyncio.Task[None] | None = None
        self._problem = "the engine was not started"

    @property
    @override
    def boot_id(self) -> str | None:
        return self._connection.boot if self._connection else None

    @override
    async def start(self) -> None:
        if self._supervisor is None:
            self._problem = "still connecting"
            self._supervisor = asyncio.create_task(self._run())

    @override
    async def stop(self) -> None:
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await supervisor
        self._problem = "the bridge is stopping"
        for command_id in list(self._pending):
            self._end(command_id, Done("unknown", "The bridge stopped before the end of the command was known."))

    @override
    def agents(self) -> Sequence[AgentInfo]:
        return [self._agents[agent] for agent in sorted(self._agents)] if self._connection else []

    @override
    async def perceive(self, agent_id: str) -> EngineView:
        facts = await self._ask("perceive", {"agent": agent_id})
        body = body_of(facts, names=self._names)
        before, changes = self._recent.get(agent_id, ((False, False), 0))
        flags = (body["environment"]["is_combat"], body["environment"]["is_dialogue"])
        changes += flags != before
        self._recent[agent_id] = (flags, changes)
        return EngineView(self._now(), (whole(facts.get("sequence")) or 0) + changes, body)

    @override
    async def execute(self, agent_id: str, command_id: str, command: str, params: Payload) -> Done:
        connection = self._live()
        fields = cast(dict[str, JsonValue], params.model_dump(mode="json", exclude_none=True))
        if self._names is not None and isinstance(cell := fields.get("target_cell"), str):
            x, y = number(fields.get("target_x")), number(fields.get("target_y"))
            fields["target_cell"] = self._names.description(cell, x, y)
            if fields["target_cell"] is None:
                return Done("failed", f"The game's data files know no cell {cell!r}.", "UNKNOWN_CELL")
        sent: Facts = {"agent": agent_id, "command_id": command_id, "command": command, "params": fields}
        reply = connection.request("command", sent)
        end: asyncio.Future[Done] = asyncio.get_running_loop().create_future()
        self._pending[command_id] = (connection.boot, end)
        reply.add_done_callback(lambda done: self._replied(command_id, done))
        try:
            done = await end
        finally:
            self._pending.pop(command_id, None)
        changes = self._recent.get(agent_id, (None, 0))[1]
        return replace(done, sequence=None if done.sequence is None else done.sequence + changes)

    async def join(self, request: JoinRequest) -> AgentInfo:
        """Add an agent's avatar or companion to the game."""
        name = request.name or request.agent_id
        fields: Facts = {"agent": request.agent_id, "name": name, "embodiment": request.embodiment}
        return await self._body("join", fields)

    async def leave(self, agent_id: str, mode: str) -> None:
        """Take an agent out of its body."""
        await self._ask("leave", {"agent": agent_id, "mode": mode})
        await self._learn(self._live())

    async def respawn(self, agent_id: str) -> AgentInfo:
        """Bring a dead body back to life."""
        return await self._body("respawn", {"agent": agent_id})

    def _live(self) -> Connection:
        if self._connection is None:
            told = f"No connection to the TES3MP script at {self._address}: {self._problem}."
            raise errors.BridgeUnavailableError(told)
        return self._connection

    async def _ask(self, op: str, fields: Facts) -> Facts:
        try:
            return await self._live().request(op, fields)
        except ScriptError as error:
            kind = _ERRORS.get(error.code, errors.BridgeInternalError)
            raise kind(text(str(error), 300) or "The TES3MP script refuses.", {"code": error.code}) from error

    # ------------------------------------------------------------------ commands

    def _replied(self, command_id: str, reply: asyncio.Future[Facts]) -> None:
        """Handle the reply to a command; a lost reply is requested after the next welcome."""
        if reply.cancelled() or isinstance(error := reply.exception(), errors.BridgeUnavailableError):
            return
        if isinstance(error, ScriptError):
            self._end(
                command_id,
                Done("unknown" if error.code in _UNSURE else "failed", text(str(error), 300) or "", error.code),
            )
        elif error is None:
            self._hear(command_id, reply.result())

    def _hear(self, command_id: str, said: Facts) -> None:
        """Handle the state of a command; `dispatched` is not final."""
        state = said.get("state")
        if state == "never":
            self._end(command_id, Done("failed", "The command never reached the server.", "NOT_SENT"))
        elif state in get_args(End):
            message, code = text(said.get("message"), 300) or "", text(said.get("code"), 60)
            self._end(command_id, Done(cast(End, state), message, code, whole(said.get("sequence"))))

    def _end(self, command_id: str, done: Done) -> None:
        _, end = self._pending.get(command_id, ("", None))
        if end is not None and not end.done():
            end.set_result(done)

    # ------------------------------------------------------------------ the connection

    async def _run(self) -> None:
        """Keep connecting, with pauses that grow until the script welcomes the connection."""
        pause = FIRST_PAUSE
        while True:
            try:
                await self._session()
                problem, pause = "the connection broke", FIRST_PAUSE
            except RefusedError as error:
                problem = _REFUSALS.get(str(error), "the script refuses the connection")
            except ConnectionRefusedError:
                problem = "nothing listens there; start the server with the script"
            except (OSError, TimeoutError) as error:
                problem = text(str(error), 200) or type(error).__name__
            if problem != self._problem:
                _LOG.warning("No connection to the TES3MP script at %s: %s.", self._address, problem)
            self._problem = problem
            await self._clock.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _session(self) -> None:
        """Serve one connection; returns when it breaks after the welcome, raises if there was no welcome."""
        link = await within(self._clock, GREETING_SECONDS, open_link(self._address, self._clock))
        connection = Connection(link, self._on_event)
        tasks = [asyncio.create_task(connection.read(self._token))]
        try:
            await within(self._clock, GREETING_SECONDS, connection.welcomed)
            tasks.append(asyncio.create_task(self._keep(connection)))
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._connection = None
            connection.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0)  # the loop closes the socket in its next iteration

    async def _keep(self, connection: Connection) -> None:
        """Settle what the last connection left open, then watch whether this one is alive."""
        await self._settle(connection)
        while True:
            await within(self._clock, ANSWER_SECONDS, self._learn(connection))
            self._connection = connection
            await self._clock.sleep(LOOK_SECONDS)

    async def _settle(self, connection: Connection) -> None:
        """Ask for the outcomes of commands whose reply was lost; after a restart the server can't know."""
        for command_id, (boot, _) in list(self._pending.items()):
            if boot != connection.boot:
                self._end(command_id, Done("unknown", "The TES3MP server was restarted during the command."))
                continue
            asked = connection.request("outcome", {"command_id": command_id})
            try:
                self._hear(command_id, await within(self._clock, ANSWER_SECONDS, asked))
            except ScriptError as error:
                self._end(command_id, Done("unknown", text(str(error), 300) or "", error.code))

    def _on_event(self, event: Facts) -> None:
        kind, command_id = event.get("event"), event.get("command_id")
        if kind == "outcome" and isinstance(command_id, str):
            self._hear(command_id, event)
        elif kind == "agents" and self._connection is not None:
            with contextlib.suppress(errors.BridgeUnavailableError):
                self._learn(self._connection)

    def _learn(self, connection: Connection) -> asyncio.Future[Facts]:
        """Ask for the agents; the reply is stored before any later one is handled."""

        def keep(done: asyncio.Future[Facts]) -> None:
            if not done.cancelled() and done.exception() is None:
                rows = done.result().get("agents")
                found = [_agent_of(row) for row in rows] if isinstance(rows, list) else []
                self._agents = {agent.agent_id: agent for agent in found if agent is not None}

        reply = connection.request("agents")
        reply.add_done_callback(keep)
        return reply

    async def _body(self, op: str, fields: Facts) -> AgentInfo:
        """Send a request about a body and return its new state."""
        agent = _agent_of(await self._ask(op, fields))
        if agent is None:
            raise errors.BridgeInternalError("The TES3MP script's answer names no agent.")
        self._agents[agent.agent_id] = agent
        return agent


def _agent_of(row: object) -> AgentInfo | None:
    """Return the agent in a row of the script; None if it is invalid."""
    if not isinstance(row, dict) or (agent_id := text(row.get("agent"))) is None:
        return None
    return AgentInfo(
        agent_id=agent_id,
        name=text(row.get("name")) or agent_id,
        connected=row.get("connected") is True,
        dead=row.get("dead") is True,
        embodiment=text(row.get("embodiment"), 40) or "avatar",
    )


def open_engine(
    token_file: Path | None = None,
    *,
    address: str = ADDRESS,
    token: str = "",
    data: Sequence[Path] = (),
    encoding: Encoding = "cp1252",
    clock: Clock | None = None,
) -> Tes3mpEngine:
    """Return an engine that is not started yet, with the names in the game's data files, or folders of them.

    By default its token is that in `token_file`, or else that of `wsap tes3mp install`.

    Raises:
        ConfigError: there is no token, the address is invalid, others can look into the mailbox, or a data file can't
            be read.
    """
    host, _, port = address.rpartition(":")
    if "/" in address or "\\" in address:
        if not Path(address).is_dir():
            raise ConfigError(f"There is no mailbox folder {address}; create it, and set it in settings.lua.")
        if os.name == "posix" and Path(address).stat().st_mode & 0o007:
            # The script can't choose the modes of the files that it writes there.
            raise ConfigError(f"Everybody on this machine can look into the mailbox; run: chmod o-rwx {address}")
    elif not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError(f"{address!r} is not the script's address; give HOST:PORT, such as {ADDRESS}, or a folder.")
    names = read_data(data, encoding=encoding) if data else None
    return Tes3mpEngine(token or _token(token_file or script_token_file()), address, names=names, clock=clock)


def _token(path: Path) -> str:
    if path.name == script_token_file().name and not path.exists():
        raise ConfigError(f"The script's token is missing in {path}; run: wsap tes3mp install SERVER_FOLDER")
    token = read_text(path, "The token of the script").strip()
    if not 8 <= len(token) <= 200 or not token.isprintable():
        raise ConfigError(f"{path} contains no token of 8 to 200 characters.")
    return token
