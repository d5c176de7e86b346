"""Usage by agent and throughput by model."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from wsap_core.seams.agent import NO_USAGE, Usage
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import OnText, Reply, Request
from wsap_llm.middleware import Ask
from wsap_llm.text.tokens import estimate_request

Tell = Callable[[str], None]
MOST_TOKENS = 10**9
"""Maximum plausible number of tokens of one call."""
LONG, CUT = 1000, 4
"""A prompt of so many estimated tokens, of which a server counts less than one in `CUT`, was cut off."""
MOST_COST = 10**6
"""Maximum plausible cost of one call in US dollars."""


@dataclass
class UsageCounter:
    """Adds up the usage of an agent and its memory; each decision reports the usage since the last one."""

    pending: Usage = NO_USAGE
    """Usage that no decision has reported yet."""

    def add(self, usage: Usage) -> None:
        """Add the usage of a reply."""
        self.pending += usage

    def flush(self) -> Usage:
        """Return the pending usage and reset it."""
        taken, self.pending = self.pending, NO_USAGE
        return taken


@dataclass(frozen=True)
class Count:
    """Adds the usage of every reply, also of replayed ones, to a counter."""

    counter: UsageCounter

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply."""
        reply = await ask(request, on_text)
        self.counter.add(reply.usage)
        return reply


@dataclass
class Throughput:
    """The sums over the successful calls to one model."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    """Sum of the times from request to end of reply; concurrent calls count separately."""


@dataclass
class Meter:
    """The throughput of each model of a pool."""

    clock: Callable[[], float] = time.perf_counter
    """A monotonic clock in seconds."""
    models: dict[str, Throughput] = field(default_factory=dict)
    """By address, in the order of the first reply."""
    retries: int = 0
    """Number of pauses above `retry.LONG` seconds before a retry."""

    def of(self, address: str) -> Throughput:
        """Return the throughput of one model; it is updated by later calls."""
        return self.models.setdefault(address, Throughput())

    @property
    def calls(self) -> int:
        """Number of successful calls to all models."""
        return sum(model.calls for model in self.models.values())

    @property
    def tokens_per_second(self) -> float | None:
        """Reply tokens per second of call time, including prompt processing; None before the first."""
        seconds = sum(model.seconds for model in self.models.values())
        tokens = sum(model.completion_tokens for model in self.models.values())
        return tokens / seconds if seconds > 0 and tokens else None


class Measure:
    """Measures successful calls; innermost, so that pauses between attempts are not counted."""

    def __init__(self, meter: Meter, address: str, tell: Tell) -> None:
        self._meter = meter
        self._address = address
        self._tell: Tell | None = tell
        self._tell_short: Tell | None = tell

    async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
        """Return the reply, with estimated usage if the backend's counts are implausible."""
        clock = self._meter.clock
        began = clock()
        reply = self._checked(await ask(request, on_text), request)
        model = self._meter.of(self._address)
        model.calls += 1
        model.prompt_tokens += reply.usage.prompt_tokens
        model.completion_tokens += reply.usage.completion_tokens
        model.seconds += clock() - began
        return reply

    def _tell_cut(self, counted: object, request: Request) -> None:
        """Tell once if the server counted so few tokens that it can't have read the whole prompt."""
        if self._tell_short is None or not _can_be(counted, MOST_TOKENS) or not counted or not _plain(request):
            return
        own = estimate_request(request)
        if own >= LONG and isinstance(counted, int | float) and counted * CUT < own:
            self._tell_short(
                f"{self._address} counted {counted:g} tokens in a prompt of about {own}: unless it kept the rest from "
                "the request before, it has cut off the beginning. Give it a larger context."
            )
            self._tell_short = None

    def _checked(self, reply: Reply, request: Request) -> Reply:
        usage = reply.usage
        self._tell_cut(usage.prompt_tokens, request)
        wrong = [
            f"{name}={value!r:.20}"
            for name, value, most in (
                ("prompt_tokens", usage.prompt_tokens, MOST_TOKENS),
                ("completion_tokens", usage.completion_tokens, MOST_TOKENS),
                ("cost", 0 if usage.cost is None else usage.cost, MOST_COST),
            )
            if not _can_be(value, most)
        ]
        if not wrong:
            return reply
        if self._tell is not None:
            self._tell(
                f"{self._address} reports implausible usage ({', '.join(wrong)}); it is estimated instead, and the "
                "cost is unknown."
            )
            self._tell = None
        tokens = estimate_tokens(reply.thinking) + estimate_tokens(reply.message.text())
        counted = Usage(usage.calls, estimate_request(request), tokens, None)
        return replace(reply, finish=replace(reply.finish, usage=counted))


def _plain(request: Request) -> bool:
    """Return whether a prompt is text whose tokens can be estimated well."""
    return all(isinstance(m.content, str) and m.content.isascii() for m in request.messages)


def _can_be(value: object, most: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most
