"""The command log: every command, the perception that led to it, and its outcome."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import JsonValue
from sqlalchemy import Executable, Row, insert, select, text, update
from sqlalchemy.dialects.sqlite import insert as insert_or
from sqlalchemy.exc import IntegrityError

from wsap_core.errors import StorageError, StorageLockedError
from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.log import records
from wsap_tes3mp.log.records import COMMAND, PERCEPTION, CommandRecord, clean, dump, open_database, said_clearly
from wsap_tes3mp.paths import log_file
from wsap_tes3mp.protocol.commands import CommandInput, Outcome
from wsap_tes3mp.protocol.errors import KeyReusedError
from wsap_tes3mp.protocol.perception import PerceptionOutput

RAW = 20_000
"""Maximum characters kept of a rejected command."""
NEVER_SENT = "The bridge stopped before it sent the command."
LOST = "The bridge stopped while the command was running; its outcome is unknown."
_OPEN = COMMAND.c.state.in_(("accepted", "dispatched"))


class CommandLog(ExitStack):
    """One bridge's log. Each method is one transaction, committed when it returns.

    Opening it creates the file if missing, and settles what a crashed bridge left open: commands that were accepted but
    not sent become `failed`, those that were running `unknown`.

    Args:
        path: None for a log in memory.
        read_only: read while a bridge is writing; nothing is settled.
        beside: write while a bridge is writing, to delete old commands; nothing is settled.
        now: returns seconds since 1970.
        ids: returns command ids.
        named: returns the name under which an agent's commands are stored.

    Raises:
        StorageLockedError: another bridge is writing it.
        StorageVersionError: a newer version wrote it.
        NotADatabaseError: the file is not a command log.
        StorageError: it can't be opened or, from every method, written or read.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        read_only: bool = False,
        beside: bool = False,
        now: Callable[[], float] = time.time,
        ids: Callable[[], str] = lambda: f"cmd_{secrets.token_hex(8)}",
        named: Callable[[str], str] = str,
    ) -> None:
        super().__init__()
        self.path = path = None if path is None else Path(path).expanduser()
        self._now, self._ids, self._named = now, ids, named
        self._where = "in memory" if path is None else str(path)
        self._known: str | None = None  # hash of the last stored perception
        own = not (read_only or beside)
        try:
            if path is not None and own:
                self.callback(self._claim(path).release)
            engine = open_database(path, read_only=read_only)
            self.callback(engine.dispose)
            self._connection = self.enter_context(engine.connect())
            if own:
                self._settle()
        except BaseException:
            self.close()
            raise

    def repeated(self, command: CommandInput, key: str) -> str | None:
        """Return the id of the command accepted with an idempotency key; None for a new key.

        Raises:
            KeyReusedError: it was another command; `details` has its id.
        """
        known = select(COMMAND.c.id, COMMAND.c.fingerprint).where(COMMAND.c.agent_id == self._named(command.agent_id))
        for command_id, fingerprint in self.read(known.where(COMMAND.c.key == key)):
            if fingerprint != records.fingerprint(command):
                message = "The idempotency key was used for another command; take a new key."
                raise KeyReusedError(message, {"command_id": command_id})
            return str(command_id)
        return None

    def begin(
        self,
        command: CommandInput,
        perception: PerceptionOutput | None = None,
        key: str | None = None,
        *,
        engine: str = "",
    ) -> str:
        """Store a valid command as `accepted`, with the perception that led to it, and return its id.

        Raises:
            KeyReusedError: the idempotency key was used before.
        """
        context, command_id, body = command.context, self._ids(), ""
        values: dict[str, Any] = {  # Any: of columns
            **command.model_dump(include={"protocol_version", "command", "params", "episode_id"}),
            "agent_id": self._named(command.agent_id),
            "id": command_id,
            "key": key,
            "fingerprint": "" if key is None else records.fingerprint(command),
            "engine": engine,
            "timestamp": command.timestamp.isoformat(),
            "reasoning": clean(command.reasoning),
            "context": None if context is None else context.model_dump(mode="json", exclude_none=True),
            "state": "accepted",
            "received": self._now(),
        }
        if perception is not None:
            body = dump(perception.model_dump(mode="json", exclude=records.MOMENT, exclude_none=True), sort=True)
            values["perception_hash"] = records.digest(body)
            values["perception_moment"] = perception.model_dump(mode="json", include=records.MOMENT, exclude_none=True)
        with said_clearly(self._where):
            try:
                self._insert(values, body)
            except IntegrityError as error:
                if key is not None and "key" in str(error.orig):
                    raise KeyReusedError("The idempotency key was used before; take a new key.") from None
                self._known = None  # another process deleted the perception
                self._insert(values, body)
        return command_id

    def _insert(self, values: Mapping[str, Any], body: str) -> None:
        found = values.get("perception_hash")
        with self._connection.begin():
            if found is not None and found != self._known:
                row = {"hash": found, "body": body}
                self._connection.execute(insert_or(PERCEPTION).on_conflict_do_nothing(), row)
            self._connection.execute(insert(COMMAND), values)
        self._known = found or self._known

    def reject(self, raw: JsonValue, code: str, message: str) -> str:
        """Store a refused command, whatever it looks like, and return the id of its row."""
        known: Mapping[str, JsonValue] = raw if isinstance(raw, dict) else {}
        params, command_id, now = known.get("params"), self._ids(), self._now()

        def words(name: str, longest: int = 200) -> str:
            value = known.get(name)
            return clean(value, longest) if isinstance(value, str) else ""

        values: dict[str, Any] = {  # Any: of columns
            **{name: words(name) for name in ("protocol_version", "timestamp", "command")},
            "agent_id": self._named(agent) if (agent := words("agent_id")) else "",
            "id": command_id,
            "params": params if isinstance(params, dict) and len(dump(params)) <= RAW else {},
            "reasoning": words("reasoning", 20_000),
            "episode_id": words("episode_id") or None,
            "state": "rejected",
            "code": code,
            "message": clean(message, 2000),
            "raw": dump(raw)[:RAW],
            "received": now,
            "finished": now,
        }
        self.write(insert(COMMAND), values)
        return command_id

    def dispatched(self, command_id: str) -> None:
        """Mark a command as running: from now on it may have been sent."""
        statement = update(COMMAND).where(COMMAND.c.id == command_id).where(COMMAND.c.state == "accepted")
        if not self.write(statement.values(state="dispatched", dispatched=self._now())):
            raise StorageError(f"The command log {self._where} has no waiting command {command_id}.")

    def finish(self, command_id: str, done: Done) -> bool:
        """Store the outcome of a command; False, without effect, if it has one."""
        sequence = done.sequence
        values = {
            "state": done.state,
            "code": None if done.code is None else clean(done.code, 200),
            "message": clean(done.message, 2000),
            "sequence": sequence if sequence is not None and 0 <= sequence < 2**63 else None,
            "data": records.plain(done.data),
            "finished": self._now(),
        }
        return bool(self.write(update(COMMAND).where(COMMAND.c.id == command_id).where(_OPEN).values(values)))

    def find(self, command_id: str) -> Outcome | None:
        """Return the outcome of a command; None if the log does not have it."""
        record = self.record(command_id)
        if record is None:
            return None
        told = record.model_dump(include={"state", "message", "code", "sequence", "data"})
        return Outcome(command_id=record.id, agent_id=record.agent_id or "unknown", **told)

    def record(self, command_id: str) -> CommandRecord | None:
        """Return the record of a command; None if the log does not have it."""
        found = self.read(select(COMMAND).where(COMMAND.c.id == command_id))
        return records.record_of(found[0]) if found else None

    def perception(self, record: CommandRecord) -> PerceptionOutput | None:
        """Return the perception that led to a command; None if none is stored."""
        if record.perception_hash is None:
            return None
        found = self.read(select(PERCEPTION.c.body).where(PERCEPTION.c.hash == record.perception_hash))
        return PerceptionOutput.model_validate({**json.loads(found[0].body), **record.perception_moment})

    def read(self, statement: Executable) -> list[Any]:
        """Return all rows of a query (Any: with the query's columns)."""
        return list(self.stream(statement))

    def stream(self, statement: Executable) -> Iterator[Row[Any]]:
        """Yield the rows of a query, as of the first one."""
        with said_clearly(self._where), self._connection.begin():
            yield from self._connection.execute(statement.execution_options(yield_per=200))

    def write(self, *statements: Any) -> int:
        """Execute a statement (Any: as `Connection.execute` takes it) in a transaction; return the rows affected."""
        with said_clearly(self._where), self._connection.begin():
            return self._connection.execute(*statements).rowcount

    def shrink(self) -> None:
        """Return the space of deleted rows to the file system, in small steps."""
        for _ in range(self.read(text("PRAGMA freelist_count"))[0][0] // 500 + 1):
            # As a script, since a plain statement would free only one page.
            with said_clearly(self._where):
                raw: Any = self._connection.connection.driver_connection  # Any: sqlite3's
                raw.executescript("PRAGMA incremental_vacuum(500)")

    def _settle(self) -> None:
        now = self._now()
        for state, to, code, message in (
            ("accepted", "failed", "NOT_SENT", NEVER_SENT),
            ("dispatched", "unknown", "BRIDGE_STOPPED", LOST),
        ):
            values = {"state": to, "code": code, "message": message, "finished": now}
            self.write(update(COMMAND).where(COMMAND.c.state == state).values(values))

    def _claim(self, path: Path) -> FileLock:
        with said_clearly(self._where):
            if path == log_file():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not path.parent.is_dir():  # the lock would make it
                told = f"The folder {path.parent} for the command log does not exist; make it, or choose another place."
                raise StorageError(told)
            lock = FileLock(f"{path.resolve()}.lock", timeout=0)
            try:
                lock.acquire()
            except Timeout:
                told = f"Another bridge is writing the command log {path}; name another file with --log."
                raise StorageLockedError(told) from None
        return lock
