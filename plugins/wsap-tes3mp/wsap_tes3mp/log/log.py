"""The command log: every command, what led to it, and what became of it."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from filelock import FileLock, Timeout
from pydantic import JsonValue
from sqlalchemy import Connection, Executable, Row, insert, select, text, update
from sqlalchemy.dialects.sqlite import insert as insert_or
from sqlalchemy.exc import IntegrityError

from wsap_core.errors import StorageError, StorageLockedError
from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.log.database import open_database, said_clearly
from wsap_tes3mp.log.records import (
    CommandRecord,
    body_of,
    clean,
    digest,
    dump,
    fingerprint,
    moment_of,
    plain,
    record_of,
)
from wsap_tes3mp.log.tables import Base
from wsap_tes3mp.paths import log_file
from wsap_tes3mp.protocol.commands import CommandInput, Outcome
from wsap_tes3mp.protocol.errors import KeyReusedError
from wsap_tes3mp.protocol.perception import PerceptionOutput

COMMAND = Base.metadata.tables["command"]
PERCEPTION = Base.metadata.tables["perception"]
RAW = 20_000
"""Most characters that are kept of a command that was rejected."""
NEVER_SENT = "The bridge stopped before it sent the command."
LOST = "The bridge stopped while the command was running; nobody knows what came of it."

Mode = Literal["own", "read", "beside"]
"""A bridge's own log, or another process that reads or prunes it."""
_COMMANDS = select(COMMAND)
_OPEN = COMMAND.c.state.in_(("accepted", "dispatched"))


def new_id() -> str:
    """Return a command id that no other bridge gives."""
    return f"cmd_{secrets.token_hex(8)}"


def open_log(
    path: str | Path | None = None,
    *,
    read_only: bool = False,
    beside: bool = False,
    now: Callable[[], float] = time.time,
    ids: Callable[[], str] = new_id,
) -> CommandLog:
    """Open a command log, making the file if it is missing, and settle what a bridge that crashed left open.

    Commands that were accepted but not sent become `failed`, those that were running `unknown`.

    Args:
        path: None for a log in memory; `wsap_tes3mp.paths.log_file()` is the usual place.
        read_only: read beside a bridge that writes; nothing is settled.
        beside: write beside a bridge that writes, to delete old commands; nothing is settled.
        now: seconds since 1970.
        ids: gives command ids.

    Raises:
        StorageLockedError: another bridge writes it.
        StorageVersionError: a newer version wrote it.
        NotADatabaseError: the file is something else.
        StorageError: it can't be opened.
    """
    mode: Mode = "read" if read_only else "beside" if beside else "own"
    return CommandLog(None if path is None else Path(path).expanduser(), mode, now=now, ids=ids)


class CommandLog:
    """One bridge's log; see `open_log`. Each method is one transaction, committed when it returns.

    Every method raises `StorageError` if the log can't be written or read.
    """

    def __init__(self, path: Path | None, mode: Mode, *, now: Callable[[], float], ids: Callable[[], str]) -> None:
        self.path = path
        self._now = now
        self._ids = ids
        self._where = "in memory" if path is None else str(path)
        self._lock: FileLock | None = None
        self._known: str | None = None  # the perception that was kept last
        if path is not None and mode == "own":
            self._lock = self._claim(path)
        try:
            self._engine = open_database(path, read_only=mode == "read")
            self._connection: Connection = self._engine.connect()
            if mode == "own":
                self._settle()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; idempotent."""
        if hasattr(self, "_connection"):
            self._connection.close()
        if hasattr(self, "_engine"):
            self._engine.dispose()
        if self._lock is not None:
            self._lock.release()

    def repeated(self, command: CommandInput, key: str) -> str | None:
        """Return the id of the command that was accepted under an idempotency key; None for a new key.

        Raises:
            KeyReusedError: that was another command; `details` has its id.
        """
        found = self.read(
            select(COMMAND.c.id, COMMAND.c.fingerprint)
            .where(COMMAND.c.agent_id == command.agent_id)
            .where(COMMAND.c.key == key)
        )
        if not found:
            return None
        if found[0].fingerprint != fingerprint(command):
            message = "The idempotency key was used for another command; take a new key."
            raise KeyReusedError(message, {"command_id": str(found[0].id)})
        return str(found[0].id)

    def begin(
        self,
        command: CommandInput,
        perception: PerceptionOutput | None = None,
        key: str | None = None,
        *,
        engine: str = "",
    ) -> str:
        """Keep a command as `accepted` and return its id.

        Args:
            command: as it was received, and valid.
            perception: what led to it.
            key: the idempotency key.
            engine: the engine's name.

        Raises:
            KeyReusedError: the key is known, see `repeated`.
        """
        context = command.context
        command_id = self._ids()
        values: dict[str, Any] = {  # Any: of columns
            "id": command_id,
            "agent_id": command.agent_id,
            "key": key,
            "fingerprint": "" if key is None else fingerprint(command),
            "engine": engine,
            "protocol_version": command.protocol_version,
            "timestamp": command.timestamp.isoformat(),
            "command": command.command,
            "params": dump(command.params),
            "reasoning": clean(command.reasoning),
            "episode_id": command.episode_id,
            "context": None if context is None else dump(context.model_dump(mode="json", exclude_none=True)),
            "state": "accepted",
            "received": self._now(),
        }
        body = "" if perception is None else body_of(perception)
        if perception is not None:
            values["perception_hash"] = digest(body)
            values["perception"] = moment_of(perception)
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
        """Keep a command that is refused, whatever it looks like, and return the id of its row."""
        known: Mapping[str, JsonValue] = raw if isinstance(raw, dict) else {}

        def text(name: str) -> str:
            value = known.get(name)
            return clean(value, 200) if isinstance(value, str) else ""

        params, reasoning = known.get("params"), known.get("reasoning")
        command_id, now = self._ids(), self._now()
        values: dict[str, Any] = {  # Any: of columns
            "id": command_id,
            "agent_id": text("agent_id"),
            "protocol_version": text("protocol_version"),
            "timestamp": text("timestamp"),
            "command": text("command"),
            "params": _bounded(params) if isinstance(params, dict) else "{}",
            "reasoning": clean(reasoning) if isinstance(reasoning, str) else "",
            "episode_id": text("episode_id") or None,
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
        """Mark a command as running: from now on nobody may say that it was not sent."""
        statement = update(COMMAND).where(COMMAND.c.id == command_id).where(COMMAND.c.state == "accepted")
        if not self.write(statement.values(state="dispatched", dispatched=self._now())):
            raise StorageError(f"The command log {self._where} has no command {command_id} that waits.")

    def finish(self, command_id: str, done: Done) -> bool:
        """Keep what became of a command; False if that was known already, which stays as it is."""
        sequence = done.sequence
        values = {
            "state": done.state,
            "code": None if done.code is None else clean(done.code, 200),
            "message": clean(done.message, 2000),
            "sequence": sequence if sequence is not None and 0 <= sequence < 2**63 else None,
            "data": dump(plain(done.data)),
            "finished": self._now(),
        }
        return bool(self.write(update(COMMAND).where(COMMAND.c.id == command_id).where(_OPEN).values(values)))

    def find(self, command_id: str) -> Outcome | None:
        """Return what became of a command; None if the log does not have it."""
        record = self.record(command_id)
        if record is None:
            return None
        return Outcome(
            command_id=record.id,
            agent_id=record.agent_id or "unknown",
            state=record.state,
            message=record.message,
            code=record.code,
            sequence=record.sequence,
            data=record.data,
        )

    def record(self, command_id: str) -> CommandRecord | None:
        """Return all that is kept of a command; None if the log does not have it."""
        found = self.read(_COMMANDS.where(COMMAND.c.id == command_id))
        return record_of(found[0]) if found else None

    def perception(self, record: CommandRecord) -> PerceptionOutput | None:
        """Return the perception that led to a command; None if none is kept."""
        if record.perception_hash is None:
            return None
        found = self.read(select(PERCEPTION.c.body).where(PERCEPTION.c.hash == record.perception_hash))
        return PerceptionOutput.model_validate({**json.loads(found[0].body), **record.perception_moment})

    def read(self, statement: Executable) -> list[Any]:
        """Return the rows that a query finds, all at once (Any: rows have the query's columns)."""
        with said_clearly(self._where), self._connection.begin():
            return list(self._connection.execute(statement).all())

    def stream(self, statement: Executable) -> Iterator[Row[Any]]:
        """Give the rows that a query finds, as the log is at the first of them."""
        with said_clearly(self._where), self._connection.begin():
            yield from self._connection.execute(statement.execution_options(yield_per=200))

    def write(self, *statements: Any) -> int:
        """Carry out a statement, with its values if there are any, in one transaction; return the rows touched.

        Any: as `Connection.execute` takes them.
        """
        with said_clearly(self._where), self._connection.begin():
            return self._connection.execute(*statements).rowcount

    def shrink(self) -> None:
        """Give the room of what was deleted back to the file system, a little at a time."""
        for _ in range(self.read(text("PRAGMA freelist_count"))[0][0] // 500 + 1):
            # As a script, since a plain statement would give back one page only.
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
            lock = FileLock(f"{path.resolve()}.lock", timeout=0)
            try:
                lock.acquire()
            except Timeout:
                raise StorageLockedError(
                    f"Another bridge writes the command log {path}; name another file with --log."
                ) from None
        return lock


def _bounded(params: Mapping[str, JsonValue]) -> str:
    text = dump(params)
    return text if len(text) <= RAW else "{}"
