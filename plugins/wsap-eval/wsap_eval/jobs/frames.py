"""The messages on the pipes between the driver and a worker: a length of 4 bytes, and a pickle.

Both ends are processes of one program, and a worker has no rights that the driver has not.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any

from wsap_core.errors import WsapError
from wsap_eval.records import EpisodeRecord
from wsap_eval.suite import Suite

HEADER = struct.Struct(">I")


@dataclass(frozen=True)
class Setup:
    """What a worker is told first."""

    suite: Suite
    database: str
    limited: bool
    """Whether models may only be asked by the driver, because what is spent on them has limits."""


@dataclass(frozen=True)
class Ready:
    """A worker has opened everything that it plays with."""


@dataclass(frozen=True)
class Stop:
    """A worker is to break off its episode and end."""


@dataclass(frozen=True)
class Ended:
    """What no episode can be played after; it ends the evaluation."""

    kind: type[WsapError]
    words: str

    def error(self) -> WsapError:
        """Return the error; constructors of some classes take other arguments than the message."""
        error = self.kind.__new__(self.kind)
        error.args = (self.words,)
        return error


Reply = Ready | EpisodeRecord | Ended
"""What a worker sends."""


def framed(message: Any) -> bytes:
    """Return a message as it is sent. Any: a `Setup`, `Job` or `Stop` to the worker, a `Reply` from it."""
    content = pickle.dumps(message)
    return HEADER.pack(len(content)) + content
