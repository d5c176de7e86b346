"""The trajectory hash, which tells whether two runs were the same, step by step."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from wsap_core.errors import WireError
from wsap_core.protocol import Action, ActionResult
from wsap_core.protocol.wire import dumps

EMPTY = hashlib.sha256().hexdigest()
"""The hash of a seat without steps: the SHA-256 of empty input."""

WORLD = "world"
"""The name, among the seats, under which the ticks of a world that lives are counted and hashed."""

_MARK = b',"step":{'
_END = b"}"


def step_line(seat: str, action: Action, result: ActionResult) -> str:
    """Return the canonical JSON of one resolved step for the trajectory hash.

    It has the seat, the action without its reasoning, the result and the observation after it; no clocks or run ids.
    """
    observation = dumps(result.observation)
    return (
        '{"action":{"name":' + dumps(action.name) + ',"parameters":' + dumps(action.parameters) + "}"
        ',"observation":'
        + observation
        + ',"result":{"achievements":'
        + dumps(result.achievements)
        + ',"done":'
        + ("true" if result.done else "false")
        + ',"message":'
        + dumps(result.message)
        + ("" if result.outcome == "done" else ',"outcome":' + dumps(result.outcome))
        + ',"reward":'
        + dumps(result.reward)
        + ',"success":'
        + ("true" if result.success else "false")
        + (',"truncated":true' if result.truncated else "")
        + '},"seat":'
        + dumps(seat)
        + "}"
    )


class TrajectoryHash:
    """The hash of one seat's steps.

    Each step's hash is the SHA-256 of the previous hash, in hexadecimal, and the step's line with its line end, so
    the hash at any step is sufficient to continue it.
    """

    def __init__(self, value: str = EMPTY) -> None:
        self.value = value
        """The hash of the steps so far, in hexadecimal."""

    def add(self, line: bytes) -> None:
        """Add a step's canonical line, without a line end."""
        self.value = hashlib.sha256(b"%b%b\n" % (self.value.encode(), line)).hexdigest()


def combined(digests: Mapping[str, str]) -> str:
    """Return a run's hash from its seats' hashes: the only one, or the SHA-256 of sorted lines of name and hash."""
    if len(digests) == 1:
        return next(iter(digests.values()))
    return hashlib.sha256("".join(f"{name} {digests[name]}\n" for name in sorted(digests)).encode()).hexdigest()


def line_of(body: bytes) -> bytes:
    """Return the canonical line in the recorded body of a step, without decoding it; WireError if there is none."""
    # The step is the last of the body's three members; no text before it can contain the mark, as quotes are escaped.
    at = body.find(_MARK)
    if at < 0 or not body.endswith(_END):
        raise WireError("A recorded step is damaged: it has no line.")
    return body[at + len(_MARK) - 1 : -len(_END)]
