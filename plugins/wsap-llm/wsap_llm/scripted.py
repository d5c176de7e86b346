"""A backend with given replies, for demonstrations, tests and the test suites of plugins."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace

from wsap_core.errors import ConfigError
from wsap_core.seams.agent import Usage
from wsap_core.seams.context import Context
from wsap_core.seams.listing import Listing, ModelInfo
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Abilities, Draft, Finish, Message, OnText, Reply, Request
from wsap_core.seams.model_errors import BadRequestError
from wsap_llm.text.tokens import estimate_request

Answer = str | Reply | Exception
"""A reply, or an exception to raise."""


class ScriptedBackend:
    """Returns the replies of a list, in order, or of a function of the request, shown in pieces of `piece` characters
    (0 for whole replies)."""

    def __init__(
        self,
        replies: Iterable[Answer] | Callable[[Request], Answer],
        *,
        model: str = "scripted/list",
        abilities: Abilities | None = None,
        piece: int = 0,
    ) -> None:
        self._next = replies if callable(replies) else None
        self._left = iter(()) if callable(replies) else iter(replies)
        self.model = model
        """The address."""
        self.abilities = abilities or Abilities()
        """The declared abilities."""
        self._piece = piece
        self.requests: list[Request] = []
        """All requests so far."""
        self.closed = False

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the next reply, cut at the first stop text, or raise it; BadRequestError at the end of the list."""
        self.requests.append(request)
        answer = self._next(request) if self._next is not None else next(self._left, None)
        if answer is None:
            raise BadRequestError(f"The script of {self.model} has no reply left for call {len(self.requests)}.")
        if isinstance(answer, Exception):
            raise answer
        reply = answer if isinstance(answer, Reply) else Reply(answer)
        text, stop = _cut(reply.text, request.stop)
        size = self._piece or max(1, len(text))
        if on_text is not None:
            for end in range(size, len(text) + size, size):
                on_text(Draft(text[:end], reply.thinking))
        usage = reply.usage
        if not usage.calls:
            said = Message("assistant", text, reply.calls).text()
            usage = Usage(1, estimate_request(request), estimate_tokens(reply.thinking + said), 0.0)
        ended = Finish("stop_sequence" if stop else reply.finish.reason, stop, usage, reply.finish.probabilities)
        return replace(reply, text=text, finish=ended)

    async def aclose(self) -> None:
        """Set `closed`."""
        self.closed = True


def _cut(text: str, stops: Iterable[str]) -> tuple[str, str | None]:
    found = [(text.index(stop), stop) for stop in stops if stop and stop in text]
    if not found:
        return text, None
    at, stop = min(found)
    return text[:at], stop


def create(context: Context) -> ScriptedBackend:
    """Return a backend for `--model scripted/...` that always returns the reply in the option `reply`, as text or JSON.
    Raises ConfigError if the option is missing."""
    given = context.config.get("reply")
    if given is None:
        raise ConfigError(
            "The scripted backend requires the option reply: the reply to every request, as text or JSON."
        )
    reply = given if isinstance(given, str) else json.dumps(given)
    return ScriptedBackend(lambda request: reply, model=f"scripted/{context.config.get('model', 'reply')}")


async def listing(context: Context) -> Listing:
    """Return the only model, which requires no server."""
    return Listing("scripted", models=[ModelInfo("scripted/reply", detail="for tests")])
