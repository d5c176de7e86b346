"""The messages between the nexus and a worker.

A frame is its length (4 bytes, big-endian), the number of its call (8 bytes), and the content. A request's content is
JSON: `op`, `world`, and the fields of the operation of that name. A reply's content starts with one byte: `+` for a
result, `-` for an error, `~` for a cancelled call. Canonical JSON follows; an observation is on a separate line, so
that its text can be stored and compared unchanged. Call 0 is the worker's heartbeat, or what a world that lives asks
the nexus (`ask`): for models, or to record a note. The nexus answers with the message `told`, and is told when the
world has it. Before such a world gets the action of a seat, the call has the reply `!`, so that the nexus knows the
order in which the world was told of what.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from wsap_core import errors as core_errors
from wsap_core.errors import WireError, WorldError, WsapError
from wsap_core.protocol.wire import dumps
from wsap_core.seams import model_errors
from wsap_core.untrusted import error_line, raised_at
from wsap_core.worlds.answers import wrong_value
from wsap_nexus import errors as hub_errors
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.worlds.operations import OPERATIONS, Operation

# Any, in this module: JSON.

LONGEST = 256 * 2**20
"""The maximum bytes of a frame's content."""
DONE, FAILED, TAKEN_BACK, TAKEN = b"+", b"-", b"~", b"!"
"""The first byte of a reply; `TAKEN` is not the last one of its call."""
BEAT = 0
"""The call number of heartbeats."""
DAMAGED = 70
"""The exit status of a worker that a game has damaged, so that it can't reply."""

_HEADER = struct.Struct(">IQ")


def frame(number: int, content: bytes) -> bytes:
    """Return a frame; WireError if it is too long."""
    if len(content) > LONGEST:
        raise WireError(f"A message of {len(content)} bytes exceeds the maximum of {LONGEST}.")
    return _HEADER.pack(len(content), number) + content


class FrameReader:
    """Reads frames from chunks of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """Add bytes and return call and content of the now complete frames; WireError if a frame is too long."""
        self._buffer += data
        complete = []
        at = 0
        while len(self._buffer) - at >= _HEADER.size:
            length, number = _HEADER.unpack_from(self._buffer, at)
            if length > LONGEST:
                raise WireError(f"A frame of {length} bytes is too long.")
            end = at + _HEADER.size + length
            if len(self._buffer) < end:
                break
            complete.append((number, bytes(self._buffer[at + _HEADER.size : end])))
            at = end
        del self._buffer[:at]
        return complete


def request(operation: Operation[Any], world: int) -> bytes:
    """Return the content of a request for an operation; WireError if it is not JSON."""
    return dumps({"op": operation.name, "world": world, **operation.values()}).encode()


def read_request(asked: Mapping[str, Any]) -> Operation[Any]:
    """Return the operation of a request; WireError or UsageError if it is invalid."""
    return OPERATIONS[asked["op"]].of(asked)


def answer(head: Any, observation: str | None = None) -> bytes:
    """Return the content of a reply, with the canonical text of an observation, if any; WireError if it is not JSON."""
    try:
        text = dumps(head)
    except WireError as error:
        raise WireError(f"{wrong_value(head, '') or error}") from None
    return DONE + (text if observation is None else f"{text}\n{observation}").encode()


def error_body(error: WsapError) -> dict[str, Any]:
    """Return what `read_error` reads."""
    kind = type(error)
    if isinstance(error, model_errors.BackendError):
        # A backend may have classes of its own; the reader knows the kernel's only.
        kind = next(known for known in kind.__mro__ if getattr(model_errors, known.__name__, None) is known)
    body: dict[str, Any] = {"type": kind.__name__, "message": str(error)}
    if isinstance(error, model_errors.RateLimitError):
        body["retry_after"] = error.retry_after
    return body


def read_answer(content: bytes) -> tuple[Any, bytes | None]:
    """Return the value of a reply, and the text of its observation.

    Raises:
        WsapError: the call failed; of the same class as the worker's error.
        WireError: it is not a reply.
    """
    head, _, observation = content[1:].partition(b"\n")
    try:
        said = json.loads(head) if head else None
    except (ValueError, RecursionError) as error:
        raise WireError(f"A worker's reply is not valid JSON: {error}.") from None
    if content[:1] == FAILED:
        raise read_error(said)
    return said, observation or None


def failure(error: BaseException, game: str) -> bytes:
    """Return the content of a reply with an error."""
    if isinstance(error, WireError):
        error = WorldFailedError(f"The game {game!r} sent an invalid value: {error}")
    if not isinstance(error, WsapError):
        error = WorldFailedError(f"The game {game!r} raised {error_line(error, kind=True)}{raised_at(error)}")
    broken = hub_errors.is_failure(error)
    return FAILED + dumps({**error_body(error), "broken": broken}).encode()


def read_error(said: Any) -> WsapError:
    """Return the error of a reply; a `WorldError` if its class is unknown."""
    name, message = str(said.get("type")), str(said.get("message"))
    modules = (core_errors, hub_errors, model_errors)
    kind = next((found for module in modules if (found := getattr(module, name, None)) is not None), None)
    if not (isinstance(kind, type) and issubclass(kind, WsapError)):
        kind = WorldError
    if said.get("broken") and kind is WorldError:
        kind = WorldFailedError
    # Some constructors take other arguments than the message.
    error = kind.__new__(kind)
    error.args = (message,)
    if isinstance(error, model_errors.RateLimitError):
        error.retry_after = said.get("retry_after")
    return error
