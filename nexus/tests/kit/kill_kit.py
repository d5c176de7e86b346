"""Kills the process in which it is called, for programs that tests run and kill."""

from __future__ import annotations

import os
import signal
from typing import Any

from wsap_nexus.runs.store import Store


def die_at(store: Store, kill: int) -> None:
    """Have the process die when event number `kill` of this session is appended; for odd ones once it is committed."""
    append, appended = store.writer.append, 0

    def counted(*args: Any, **more: Any) -> int:
        nonlocal appended
        seq = append(*args, **more)
        appended += 1
        if appended == kill:
            if kill % 2:
                store.writer.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return seq

    store.writer.append = counted  # type: ignore[method-assign]
