"""Messages between the driver and a worker: a length of 4 bytes and a pickle.

Pickle is safe here: both are processes of one program with the same rights.

The driver sends a `Work`, then tuples of jobs, at last `Stop`. Jobs of one kind have nearly everything in common, which
is encoded once in a message. The worker replies `Ready`, then tuples of records, or `Ended`.
"""

from __future__ import annotations

import pickle
import struct
from dataclasses import dataclass
from typing import Any

from wsap_core.errors import WsapError

HEADER = struct.Struct(">I")


@dataclass(frozen=True)
class Ready:
    """The worker is ready to play."""


@dataclass(frozen=True)
class Stop:
    """Tells a worker to abort what it plays and exit."""


@dataclass(frozen=True)
class Ended:
    """An error that ends the work."""

    kind: type[WsapError]
    words: str

    def error(self) -> WsapError:
        """Return the error, bypassing constructors that take other arguments."""
        error = self.kind.__new__(self.kind)
        error.args = (self.words,)
        return error


def framed(message: Any) -> bytes:
    """Return an encoded message. Any: see above."""
    content = pickle.dumps(message)
    return HEADER.pack(len(content)) + content
