"""What the command log gives out: one command with everything that is kept of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pydantic import JsonValue
from sqlalchemy import Row

from wsap_tes3mp.protocol.commands import CommandInput, CommandState
from wsap_tes3mp.protocol.perception import PerceptionOutput

_DEEPEST = 20
MOMENT = ("timestamp", "boot_id", "sequence")
"""Fields of a perception that are kept with the command, so that a world in which nothing changes is kept once."""


@dataclass(frozen=True)
class CommandRecord:
    """One command of the log."""

    number: int
    """In the order of receipt, from 1."""
    id: str
    agent_id: str
    engine: str
    protocol_version: str
    timestamp: str
    """When the agent issued it, ISO 8601."""
    command: str
    params: Mapping[str, JsonValue]
    reasoning: str
    episode_id: str | None
    context: Mapping[str, JsonValue]
    perception_hash: str | None
    """The perception that led to it, without its moment."""
    perception_moment: Mapping[str, JsonValue]
    """Time, boot and sequence of that perception."""
    state: CommandState
    code: str | None
    message: str
    sequence: int | None
    data: Mapping[str, JsonValue]
    raw: str | None
    """What was received, of commands that were rejected: JSON, cut off where it is long."""
    received: float
    """Seconds since 1970, as the two below."""
    dispatched: float | None
    finished: float | None

    @property
    def latency(self) -> float | None:
        """Seconds from receipt to the outcome, where one came."""
        if self.finished is None or self.state not in ("confirmed", "failed"):
            return None
        return max(0.0, self.finished - self.received)


_COLUMNS = tuple(field.name for field in fields(CommandRecord) if field.name != "perception_moment")


def record_of(row: Row[Any]) -> CommandRecord:
    """Return the record that a row of the table stands for."""
    values = {name: row._mapping[name] for name in _COLUMNS}
    for name in ("params", "context", "data"):
        values[name] = json.loads(values[name] or "{}")
    return CommandRecord(**values, perception_moment=json.loads(row._mapping["perception"] or "{}"))


def fingerprint(command: CommandInput) -> str:
    """Return what tells two commands apart."""
    return digest(dump(command.model_dump(mode="json"), sort=True))


def body_of(perception: PerceptionOutput) -> str:
    """Return the JSON of a perception without its moment."""
    return dump(perception.model_dump(mode="json", exclude=set(MOMENT), exclude_none=True), sort=True)


def moment_of(perception: PerceptionOutput) -> str:
    """Return the JSON of a perception's moment."""
    return dump(perception.model_dump(mode="json", include=set(MOMENT), exclude_none=True))


def digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def clean(text: object, longest: int = 20_000) -> str:
    """Return a text that any database and any reader of JSON takes."""
    return str(text)[:longest].encode("utf-8", "replace").decode().replace("\x00", "?")


def dump(value: object, *, sort: bool = False) -> str:
    """Return JSON, whatever a caller gave: what JSON lacks becomes text."""
    try:
        return json.dumps(value, allow_nan=False, sort_keys=sort, separators=(",", ":"))
    except (TypeError, ValueError):
        return json.dumps(plain(value), sort_keys=sort, separators=(",", ":"))


def plain(value: object, depth: int = 0) -> JsonValue:
    """Return what a strict reader of JSON takes of a value of an engine; the rest becomes text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and abs(value) < 2**63:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if depth < _DEEPEST and isinstance(value, Mapping):
        return {clean(key, 200): plain(item, depth + 1) for key, item in value.items()}
    if depth < _DEEPEST and isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [plain(item, depth + 1) for item in value]
    return clean(value, 20_000)
