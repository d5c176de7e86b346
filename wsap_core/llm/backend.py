"""The protocol of a backend, and whole replies from streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol, runtime_checkable

from wsap_core.llm.errors import ServerFailedError
from wsap_core.llm.types import Abilities, Chunk, Finish, Reply, Request, TextChunk, ThinkingChunk


@runtime_checkable
class Backend(Protocol):
    """A language model that can be asked. Retries, limits, budgets, caches and records are wrappers around it."""

    @property
    def model(self) -> str:
        """The full address, such as `ollama/qwen3:8b`."""
        ...

    @property
    def abilities(self) -> Abilities:
        """What it can do."""
        ...

    def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply as it comes; the last chunk is a `Finish`.

        Closing the iterator before its end ends the request and frees what it holds.

        Raises:
            BackendError: by class; raised while iterating.
        """
        ...

    async def aclose(self) -> None:
        """Give back connections and memory; nothing can be asked afterwards."""
        ...


async def collect(backend: Backend, request: Request) -> Reply:
    """Return the whole reply to a request.

    Raises:
        ServerFailedError: the stream ended without a `Finish`.
        BackendError: whatever the backend raises.
    """
    text: list[str] = []
    thinking: list[str] = []
    finish: Finish | None = None
    async with aclosing(backend.stream(request)) as chunks:
        async for chunk in chunks:
            match chunk:
                case TextChunk(piece):
                    text.append(piece)
                case ThinkingChunk(piece):
                    thinking.append(piece)
                case Finish():
                    finish = chunk
    if finish is None:
        raise ServerFailedError(f"The reply of {backend.model} broke off before its end.")
    return Reply("".join(text), "".join(thinking), finish)
