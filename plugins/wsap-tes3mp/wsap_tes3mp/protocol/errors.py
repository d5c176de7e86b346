"""Protocol versions (seed 001, section 2) and errors (section 7), one class per code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import ValidationError

from wsap_core.errors import WsapError
from wsap_core.untrusted import error_line, single_line

SEED_VERSION = "1.0.0"
"""The version of the seed: three endpoints."""
PROTOCOL_VERSION = "1.1.0"
"""The version spoken here: the seed's plus our endpoints and optional fields."""

_SEMVER = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})")
_MAJOR = int(PROTOCOL_VERSION.split(".")[0])


class BridgeError(WsapError):
    """A bridge refused or failed.

    `details` (Any: JSON) is for programs.
    """

    exit_code: ClassVar[int] = 4

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = dict(details or {})


class BridgeUnavailableError(BridgeError, code="BRIDGE_UNAVAILABLE", http_status=503, retryable=True):
    """The game bridge is not connected: no engine, or no agent in it."""


class PerceptionTimeoutError(BridgeError, code="PERCEPTION_TIMEOUT", http_status=504, retryable=True):
    """The engine did not respond within the deadline."""


class SchemaMismatchError(BridgeError, code="SCHEMA_MISMATCH", http_status=422):
    """Incompatible versions, or an engine whose data does not fit the schema."""


class InvalidCommandError(BridgeError, code="INVALID_COMMAND", http_status=400):
    """The command type is unknown."""


class PayloadError(BridgeError, code="VALIDATION_ERROR", http_status=400):
    """A payload fails validation or names an unknown agent."""


class CommandConflictError(BridgeError, code="COMMAND_CONFLICT", http_status=409, retryable=True):
    """The agent is busy with another command."""


class BridgeInternalError(BridgeError, code="INTERNAL_ERROR", http_status=500, retryable=True):
    """An unexpected failure; nothing was dispatched."""


SEED_CODES = tuple(BridgeError.__subclasses__())
"""The seed's error table, in its order."""


class NotOfferedError(BridgeError, code="NOT_OFFERED", http_status=501):
    """1.1.0: this bridge or its engine does not support the request."""


class KeyReusedError(BridgeError, code="IDEMPOTENCY_KEY_REUSED", http_status=422):
    """1.1.0: the idempotency key was used for another command."""


class StalePerceptionError(BridgeError, code="STALE_PERCEPTION", http_status=409):
    """1.1.0: the command is based on a perception older than the bridge allows."""


class UnknownOutcomeError(BridgeError, code="OUTCOME_UNKNOWN", http_status=502):
    """1.1.0: whether a command was accepted is unknown; it is not sent again."""


ADDED_CODES = tuple(BridgeError.__subclasses__())[len(SEED_CODES) :]
"""Codes added in 1.1.0; only clients raise `OUTCOME_UNKNOWN`."""


def check_version(version: str, *, where: str = "payload") -> None:
    """Raise `SchemaMismatchError` unless this is a SemVer version whose major number is not above ours."""
    match = _SEMVER.fullmatch(version)
    if match is None:
        raise SchemaMismatchError(f"The {where} states the version {version[:40]!r}, which is not of the form 1.2.3.")
    if int(match[1]) > _MAJOR:
        raise SchemaMismatchError(
            f"The {where} speaks protocol {version}, and here it is {PROTOCOL_VERSION}; update the older of the two."
        )


def first_problem(error: Exception) -> str:
    """Return the first problem of a validation error on one line: where, and what."""
    if not isinstance(error, ValidationError):
        return error_line(error).rstrip(".")
    first = error.errors(include_url=False, include_input=False)[0]
    where, why = ".".join(str(part) for part in first["loc"]), str(first["msg"]).removeprefix("Value error, ")
    return single_line(f"{where}: {why}" if where else why)[:300].rstrip(".")
