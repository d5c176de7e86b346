"""Snapshots as bytes: a header with the version of the format, then compressed JSON."""

from __future__ import annotations

import json
import zlib
from typing import Annotated, TypeVar

from pydantic import Field

from wsap_core.errors import SnapshotError, WireError
from wsap_core.protocol.values import JsonValue
from wsap_core.protocol.wire import Codec, refuse_constant

T = TypeVar("T")

Count = Annotated[int, Field(strict=True, ge=0, le=2**63)]
"""A count or amount."""

WRONG_DATA = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)
"""The exceptions of code that reads data of an unexpected shape."""

_LARGEST = 4_000_000


def pack(header: bytes, state: JsonValue) -> bytes:
    """Return the header followed by compressed JSON."""
    text = json.dumps(state, separators=(",", ":"), allow_nan=False)
    return header + zlib.compress(text.encode("ascii"), 6)


def unpack(header: bytes, data: bytes, game: str, largest: int = _LARGEST) -> dict[str, JsonValue]:
    """Return the (untrusted) object that was packed; `SnapshotError` if the data has another header, is damaged, or
    contains more than `largest` bytes of JSON."""
    if not data.startswith(header):
        raise SnapshotError(f"This is not a snapshot of {game}, or it is of another version.")
    try:
        reader = zlib.decompressobj()
        text = reader.decompress(data[len(header) :], largest)
        if not reader.eof or reader.unused_data:
            raise ValueError(f"it ends too early or too late, or exceeds {largest} bytes")
        state = json.loads(text, parse_constant=refuse_constant)
        if not isinstance(state, dict):
            raise ValueError("it holds no object")
    except (ValueError, zlib.error, RecursionError) as error:
        raise SnapshotError(f"The snapshot of {game} is damaged: {error}.") from error
    return state


def read(shape: type[T], data: JsonValue) -> T:
    """Return data as a value of a type, such as a dataclass or a list of them; `ValueError` if it does not fit."""
    try:
        return Codec().decode(shape, data, where="data")
    except WireError as error:
        raise ValueError(str(error).rstrip(".")) from error
