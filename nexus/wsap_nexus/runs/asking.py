"""Calls of an agent's methods."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from wsap_core.errors import PluginError, WsapError
from wsap_core.untrusted import single_line

T = TypeVar("T")


async def ask(question: Callable[[], T | Awaitable[T]], who: str) -> T:
    """Return what an agent's method returns, or what it is awaited to return.

    Raises:
        PluginError: the method raised; the message begins with `who`.
    """
    try:
        answer: Any = question()  # Any: an agent's methods may be synchronous or not
        if inspect.isawaitable(answer):
            answer = await answer
    except (WsapError, TimeoutError, asyncio.CancelledError):
        raise
    except Exception as error:
        raise PluginError(f"{who} raised {type(error).__name__}: {single_line(error)[:300] or 'no message'}") from error
    value: T = answer
    return value
