"""Validates events and their run before they are queued for the writer's thread."""

from __future__ import annotations

import operator
from functools import lru_cache
from typing import Any

from sqlalchemy import text

from wsap_core.errors import UnknownNameError
from wsap_nexus.store.database import Database
from wsap_nexus.store.errors import UnfitValueError
from wsap_nexus.store.log.bodies import LARGEST_BODY
from wsap_nexus.store.tables import LONGEST_NAME


@lru_cache(maxsize=10_000)
def check_name(what: str, name: Any) -> None:
    """Raise UnfitValueError if the kind or seat of an event is not text of 1 to 200 printable characters."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise UnfitValueError(
            f"An event can't be recorded: its {what} must be 1 to {LONGEST_NAME} printable characters, "
            f"not {ascii(name)[:80]}."
        )


def packed_body(kind: str, body: str | bytes) -> tuple[str, bytes]:
    """Return the form, "json" or "bytes", and the bytes of a body; UnfitValueError if its type or size is invalid."""
    if type(body) is str:
        form, packed = "json", _encoded(kind, body)
    else:
        form, packed = "bytes", body if type(body) is bytes else _copied(kind, body)
    if len(packed) > LARGEST_BODY:
        raise UnfitValueError(
            f"An event of kind {kind!r} is too large to be recorded: {len(packed)} bytes; "
            f"the maximum is {LARGEST_BODY}."
        )
    return form, packed


def found_run(database: Database, run_id: str) -> tuple[int, int]:
    """Return the numbers of a run's last event, else -1, and last dictionary, else 0; UnknownNameError if unknown."""
    with database.read() as connection:
        found = connection.execute(
            text(
                "SELECT (SELECT max(seq) FROM event WHERE run_id = :run),"
                " (SELECT max(number) FROM dictionary WHERE run_id = :run) FROM run WHERE id = :run"
            ),
            {"run": run_id},
        ).one_or_none()
        if found is None:
            known = connection.execute(text("SELECT id FROM run ORDER BY created DESC LIMIT 1000")).scalars()
            raise UnknownNameError("run", run_id, known, hint="See them with: wsap runs")
    last, dictionaries = found
    return -1 if last is None else int(last), int(dictionaries or 0)


def checked_count(what: str, value: Any) -> int:
    """Return a count as an int, also one of numpy; UnfitValueError if it is not from 0 to 2**31 - 1."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < 2**31:
        raise UnfitValueError(f"An event can't be recorded: its {what} must be a number from 0, not {value!r}.")
    return number


def _encoded(kind: str, body: str) -> bytes:
    try:
        return body.encode()
    except UnicodeEncodeError:
        raise UnfitValueError(
            f"An event of kind {kind!r} can't be recorded: its text contains an unpaired surrogate; "
            "escape such characters in JSON text, as wsap_core.protocol.wire.dumps does."
        ) from None


def _copied(kind: str, body: object) -> bytes:
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise UnfitValueError(
        f"An event of kind {kind!r} can't be recorded: its body is a {type(body).__name__}, not JSON text or bytes."
    )
