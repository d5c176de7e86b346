"""Messages between the driver and a worker: a length of 4 bytes and a pickle.

Pickle is safe here: both are processes of one program with the same rights.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any, Protocol

from wsap_core.errors import WsapError
from wsap_eval.plan import Job
from wsap_eval.records import EpisodeRecord
from wsap_eval.suite import Suite

HEADER = struct.Struct(">I")


@dataclass(frozen=True)
class Setup:
    """The first message to a worker."""

    suite: Suite
    database: str
    limited: bool
    """Whether only the driver may call models, because there are spending limits."""


@dataclass(frozen=True)
class Ready:
    """The worker is ready to play."""


@dataclass(frozen=True)
class Stop:
    """Tells a worker to abort its episode and exit."""


@dataclass(frozen=True)
class Ended:
    """An error that ends the evaluation."""

    kind: type[WsapError]
    words: str

    def error(self) -> WsapError:
        """Return the error, bypassing constructors that take other arguments."""
        error = self.kind.__new__(self.kind)
        error.args = (self.words,)
        return error


class Jobs(Protocol):
    """The episodes to play, for any number of tasks: each waits for its next one while there is no room for it."""

    def __aiter__(self) -> Jobs: ...

    async def __anext__(self) -> Job: ...

    def at_once(self) -> Job | None:
        """Return the next episode; None if there is none, or none has room now."""


Batch = tuple[Job, ...]
"""Episodes to play. Those of one cell have nearly everything in common, which is encoded once in a message."""
Played = tuple[EpisodeRecord, ...]
"""Finished episodes."""
Reply = Ready | Played | Ended


def framed(message: Any) -> bytes:
    """Return an encoded message. Any: a `Setup`, `Batch` or `Stop` to the worker, a `Reply` from it."""
    content = pickle.dumps(message)
    return HEADER.pack(len(content)) + content
