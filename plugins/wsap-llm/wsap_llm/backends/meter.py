"""How fast models answer, measured beside the calls."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field

from wsap_core.seams.model import Backend, Chunk, Finish, Request
from wsap_llm.wrappers.base import Wrapper


@dataclass
class Pace:
    """What the calls to one model that came through amount to. Failed calls are not in it."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """From each request to the end of its reply, added up; calls at the same time count each."""
    first_seconds: float = 0.0
    """From each request to the first piece of its reply, added up."""

    @property
    def seconds_a_call(self) -> float | None:
        """Seconds from a request to the end of its reply, on average; None before the first."""
        return self.seconds / self.calls if self.calls else None

    @property
    def reply_tokens(self) -> float | None:
        """Tokens of a reply, thinking included, on average; None before the first."""
        return self.completion_tokens / self.calls if self.calls else None

    @property
    def first_token(self) -> float | None:
        """Seconds until the first piece of a reply, on average: all of it where replies come in one piece."""
        return self.first_seconds / self.calls if self.calls else None

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens of reply for each second of a call, reading the prompt included; None where nothing was said."""
        return self.completion_tokens / self.seconds if self.seconds > 0 and self.completion_tokens else None


@dataclass
class Meter:
    """The paces of all models that are asked in one place."""

    clock: Callable[[], float] = time.perf_counter
    """Seconds on a clock that never goes back."""
    paces: dict[str, Pace] = field(default_factory=dict)
    """By address, in the order of the first reply."""

    def pace(self, address: str) -> Pace:
        """Return the pace of one model, which goes on being measured."""
        return self.paces.setdefault(address, Pace())

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens of reply for each second of a call, over all models; None before the first."""
        seconds = sum(pace.seconds for pace in self.paces.values())
        tokens = sum(pace.completion_tokens for pace in self.paces.values())
        return tokens / seconds if seconds > 0 and tokens else None


class Metered(Wrapper):
    """Measures every call that comes through.

    Args:
        inner: the backend itself: pauses between attempts are not to be counted.
        meter: where it is kept.
        address: under which address; the backend's own when None.
    """

    def __init__(self, inner: Backend, meter: Meter, address: str | None = None) -> None:
        super().__init__(inner)
        self._meter = meter
        self._address = address or inner.model

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply as it comes."""
        clock = self._meter.clock
        began = clock()
        first: float | None = None
        async with aclosing(self.inner.stream(request)) as chunks:
            async for chunk in chunks:
                if first is None:
                    first = clock() - began
                if isinstance(chunk, Finish):
                    pace = self._meter.pace(self._address)
                    pace.calls += 1
                    pace.prompt_tokens += chunk.usage.prompt_tokens
                    pace.completion_tokens += chunk.usage.completion_tokens
                    pace.seconds += clock() - began
                    pace.first_seconds += first
                yield chunk
