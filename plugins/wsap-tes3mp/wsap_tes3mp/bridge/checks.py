"""What the bridge checks: commands as they come, and whatever an engine says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice
from types import UnionType
from typing import Any

from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticSerializationError

from wsap_core.errors import WireError
from wsap_core.protocol.wire import dumps
from wsap_core.untrusted import single_line
from wsap_tes3mp.engines.engine import Done, Engine, EngineView
from wsap_tes3mp.protocol.commands import PARAMS, CommandInput
from wsap_tes3mp.protocol.errors import (
    PROTOCOL_VERSION,
    InvalidCommandError,
    PayloadError,
    SchemaMismatchError,
    check_version,
    first_problem,
)
from wsap_tes3mp.protocol.perception import Payload, PerceptionOutput

_ENDS = ("confirmed", "failed", "unknown")


def perceived(engine: Engine, agent_id: str, view: EngineView) -> PerceptionOutput:
    """Return what an engine says that an agent perceives; `SchemaMismatchError` if it does not fit the schema."""
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
    except (
        ValidationError, WireError, TypeError, AttributeError, ValueError, RecursionError, PydanticSerializationError
    ) as error:  # fmt: skip
        raise SchemaMismatchError(
            f"The engine {engine.name} gave a perception that does not fit the schema: {first_problem(error)}."
        ) from error
    return found


def ended(said: Any) -> Done:
    """Return what an engine says (Any: whatever it is) that came of a command; unknown if it can't be understood."""
    if isinstance(said, Done):
        fields: tuple[tuple[Any, type | UnionType], ...] = (
            (said.message, str), (said.code, str | None), (said.sequence, int | None), (said.data, Mapping)
        )  # fmt: skip
        if said.state in _ENDS and all(isinstance(value, kind) for value, kind in fields):
            return said
    return Done("unknown", "The engine's answer can't be understood.", SchemaMismatchError.code)


def read_command(raw: JsonValue) -> CommandInput:
    """Return a command that came as JSON; its parameters are not checked yet. `Bridge.receive` says what it raises."""
    if not isinstance(raw, dict):
        raise PayloadError("A command is a JSON object; see the reference of the protocol.")
    version = raw.get("protocol_version")
    if isinstance(version, str):
        check_version(version, where="command")
    name = raw.get("command")
    if isinstance(name, str) and name not in PARAMS:
        raise _invalid(name)
    if version is None:
        raise PayloadError("The command can't be read: protocol_version: Field required.")
    try:
        return CommandInput.model_validate_json(dumps(raw))
    except (ValidationError, WireError) as error:
        raise PayloadError(f"The command can't be read: {first_problem(error)}.") from error


def read_parameters(command: CommandInput) -> Payload:
    """Return the parameters of a command. `Bridge.receive` says what it raises."""
    check_version(command.protocol_version, where="command")
    if command.command not in PARAMS:
        raise _invalid(command.command)
    try:
        return command.parameters()
    except ValidationError as error:
        raise PayloadError(f"The parameters of {command.command} don't fit: {first_problem(error)}.") from error


def few(names: Iterable[str]) -> str:
    """Return the first ten names, each on one line and cut off where it is long."""
    shown = [single_line(name)[:40] for name in islice(names, 11)]
    return ", ".join(shown[:10]) + (", ..." if len(shown) > 10 else "")


def _invalid(name: str) -> InvalidCommandError:
    known: list[JsonValue] = list(PARAMS)
    return InvalidCommandError(
        f"There is no command {single_line(name)[:80]!r}; there are: {', '.join(PARAMS)}.", {"commands": known}
    )
