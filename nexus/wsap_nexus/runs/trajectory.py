"""The trajectory hash: whether two runs were the same, step by step."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from wsap_core.errors import WireError
from wsap_core.protocol import Action, ActionResult
from wsap_core.protocol.wire import dumps

EMPTY = hashlib.sha256().hexdigest()
"""The hash of a seat without steps: the SHA-256 of nothing."""

WORLD = "world"
"""The name under which the ticks of a world that lives are counted and hashed, beside those of the seats."""

CHAINED_KEY, CHAINED = "trajectory_hash", "chained"
"""What the configuration of a run says of its hash; nothing in runs recorded by earlier versions."""

_MARK = b',"step":{'
_END = b"}"


def step_line(seat: str, action: Action, result: ActionResult) -> str:
    """Return the canonical JSON of one resolved step, as the trajectory hash takes it.

    It holds the seat, the action without its reasoning, the result, and the observation after
    it; no clocks and no run ids.
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
        + '},"seat":'
        + dumps(seat)
        + "}"
    )


class TrajectoryHash:
    """The hash of one seat's steps.

    Each step's hash is the SHA-256 of the hash before it, in hexadecimal, and the step's line with its line end. So
    the hash at any step is all that is needed to continue it.

    Args:
        value: of the steps so far.
        chained: False for runs recorded by earlier versions, whose hash is the SHA-256 of all lines together.
    """

    def __init__(self, value: str = EMPTY, *, chained: bool = True) -> None:
        self._value = value
        self._all = None if chained else hashlib.sha256()

    @property
    def value(self) -> str:
        """The hash of the steps so far, in hexadecimal."""
        return self._value if self._all is None else self._all.hexdigest()

    def add(self, line: bytes) -> None:
        """Add a step's canonical line, without a line end."""
        if self._all is None:
            self._value = hashlib.sha256(b"%b%b\n" % (self._value.encode(), line)).hexdigest()
        else:
            self._all.update(line + b"\n")


def is_chained(config: Mapping[str, Any]) -> bool:
    """Return whether the hash of a run with this configuration is chained; Any: JSON."""
    return config.get(CHAINED_KEY) == CHAINED


def combined(digests: Mapping[str, str]) -> str:
    """Return a run's hash from those of its seats: the only one's, or the SHA-256 of lines of name and hash, sorted."""
    if len(digests) == 1:
        return next(iter(digests.values()))
    return hashlib.sha256("".join(f"{name} {digests[name]}\n" for name in sorted(digests)).encode()).hexdigest()


def line_of(body: bytes) -> bytes:
    """Return the canonical line in the recorded body of a step, without decoding it; WireError if there is none."""
    # The step is the last of the body's three members, and no text before it can hold its name: texts escape quotes.
    at = body.find(_MARK)
    if at < 0 or not body.endswith(_END):
        raise WireError("What is recorded of a step is damaged: it has no line.")
    return body[at + len(_MARK) - 1 : -len(_END)]
