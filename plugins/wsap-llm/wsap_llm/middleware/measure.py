"""What calls take: usage by agent, and throughput by model."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Chunk, Finish, Request
from wsap_llm.middleware import Ask
from wsap_llm.tokens import estimate_request

Tell = Callable[[str], None]
MOST_TOKENS = 10**9
"""Tokens of one call above which a count is a mistake."""
MOST_COST = 10**6
"""US dollars of one call above which a cost is one."""


@dataclass
class UsageCounter:
    """Adds up what an agent, its memory and whatever else works for it ask of models.

    There is one for all of them, so that nothing is left out of the sums: a decision takes over
    what was asked since the one before, a summary by the memory included.
    """

    pending: Usage = NO_USAGE
    """What no decision has taken over yet."""

    def add(self, usage: Usage) -> None:
        """Add what a reply took."""
        self.pending += usage

    def flush(self) -> Usage:
        """Return what is pending, and start again at nothing."""
        taken, self.pending = self.pending, NO_USAGE
        return taken


@dataclass(frozen=True)
class Count:
    """Adds every reply to a counter, replayed ones included."""

    counter: UsageCounter

    async def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply."""
        async with aclosing(ask(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, Finish):
                    self.counter.add(chunk.usage)
                yield chunk


@dataclass
class Throughput:
    """The sums over the successful calls to one model."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """From each request to the end of its reply, added up; calls at the same time count each."""


@dataclass
class Meter:
    """The throughput of each model of a pool."""

    clock: Callable[[], float] = time.perf_counter
    """Seconds on a clock that never goes back."""
    models: dict[str, Throughput] = field(default_factory=dict)
    """By address, in the order of the first reply."""
    retries: int = 0
    """Pauses above `retry.LONG` seconds before a call was tried again."""

    def of(self, address: str) -> Throughput:
        """Return the throughput of one model, which goes on being measured."""
        return self.models.setdefault(address, Throughput())

    @property
    def calls(self) -> int:
        """Successful calls to all models."""
        return sum(model.calls for model in self.models.values())

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens of reply for each second of a call, reading the prompt included; None before the first."""
        seconds = sum(model.seconds for model in self.models.values())
        tokens = sum(model.completion_tokens for model in self.models.values())
        return tokens / seconds if seconds > 0 and tokens else None


class Measure:
    """Measures every successful call; innermost, because pauses between attempts are not to be counted."""

    def __init__(self, meter: Meter, address: str, tell: Tell) -> None:
        self._meter = meter
        self._address = address
        self._tell: Tell | None = tell

    async def stream(self, request: Request, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """Give the reply as it comes, its usage estimated where what the backend counts can't be."""
        clock = self._meter.clock
        began, tokens = clock(), 0
        async with aclosing(ask(request)) as chunks:
            async for chunk in chunks:
                if not isinstance(chunk, Finish):
                    tokens += estimate_tokens(chunk.text)
                else:
                    chunk = self._checked(chunk, request, tokens)
                    model = self._meter.of(self._address)
                    model.calls += 1
                    model.prompt_tokens += chunk.usage.prompt_tokens
                    model.completion_tokens += chunk.usage.completion_tokens
                    model.seconds += clock() - began
                yield chunk

    def _checked(self, finish: Finish, request: Request, tokens: int) -> Finish:
        usage = finish.usage
        wrong = [
            f"{name}={value!r:.20}"
            for name, value, most in (
                ("prompt_tokens", usage.prompt_tokens, MOST_TOKENS),
                ("completion_tokens", usage.completion_tokens, MOST_TOKENS),
                ("cost", 0 if usage.cost is None else usage.cost, MOST_COST),
            )
            if not _can_be(value, most)
        ]
        counted = Usage(usage.calls, estimate_request(request), tokens, None) if wrong else usage
        if wrong and self._tell is not None:
            self._tell(
                f"{self._address} counts usage that can't be ({', '.join(wrong)}); it is estimated instead, and the "
                "cost is not known."
            )
            self._tell = None
        return replace(finish, usage=counted)


def _can_be(value: object, most: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
