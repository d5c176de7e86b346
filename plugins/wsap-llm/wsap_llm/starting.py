"""Waits for servers that are starting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from wsap_core.seams import model_errors as errors
from wsap_core.seams.clock import Clock
from wsap_core.seams.model import Draft, OnText
from wsap_core.untrusted import single_line

T = TypeVar("T")
START_PATIENCE = 300.0
"""Seconds to wait for a server that is starting: large models take minutes to load."""
START_PAUSE = 2.0
"""Seconds between two attempts meanwhile."""


class StartingError(errors.ServerFailedError):
    """The server is starting: it loads the model, or was there before and is being restarted. That can take minutes."""


async def until_started(
    call: Callable[[], Awaitable[T]],
    clock: Clock,
    tell: Callable[[str], None] | None = None,
    on_text: OnText | None = None,
) -> T:
    """Return what a call returns once its server has started, which is told; raise StartingError after
    `START_PATIENCE` seconds."""
    began: float | None = None
    while True:
        try:
            return await call()
        except StartingError as error:
            why = single_line(error)
            if began is None:
                began = clock.now()
                if tell is not None:
                    tell(f"{why if why.endswith('.') else f'{why}.'} Waiting up to {START_PATIENCE / 60:.0f} minutes.")
            if clock.now() - began >= START_PATIENCE:
                raise
            if on_text is not None:
                on_text(Draft(waiting=why.rstrip(".")))
        await clock.sleep(START_PAUSE)
        if on_text is not None:
            on_text(Draft())
