"""The same question is asked once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from wsap_core.seams.agent import NO_USAGE
from wsap_core.seams.model import Backend, Chunk, Finish, Reply, Request, TextChunk, ThinkingChunk, collect
from wsap_llm.keys import request_key
from wsap_llm.wrappers.base import Wrapper


class Store(Protocol):
    """Where replies are kept."""

    def get(self, key: str) -> Reply | None:
        """Return the reply filed under a key, or None."""
        ...

    def put(self, key: str, reply: Reply) -> None:
        """File a reply."""
        ...


class MemoryStore:
    """Keeps replies in memory, the most recently used ones.

    Args:
        size: how many.
    """

    def __init__(self, size: int = 1000) -> None:
        self._size = size
        self._replies: dict[str, Reply] = {}

    def get(self, key: str) -> Reply | None:
        """Return the reply filed under a key, or None."""
        reply = self._replies.pop(key, None)
        if reply is not None:
            self._replies[key] = reply
        return reply

    def put(self, key: str, reply: Reply) -> None:
        """File a reply; the one that was used longest ago makes room."""
        self._replies.pop(key, None)
        self._replies[key] = reply
        while len(self._replies) > self._size:
            del self._replies[next(iter(self._replies))]


class Cached(Wrapper):
    """Answers what was asked before from a store, at no cost; equal questions at the same time are asked once."""

    def __init__(self, inner: Backend, store: Store | None = None) -> None:
        super().__init__(inner)
        self._store = store or MemoryStore()
        self._asking: dict[str, asyncio.Lock] = {}

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply, stored or new; a failure is not stored."""
        key = request_key(self.model, request)
        lock = self._asking.setdefault(key, asyncio.Lock())
        try:
            async with lock:
                reply = self._store.get(key)
                known = reply is not None
                if reply is None:
                    reply = await collect(self.inner, request)
                    self._store.put(key, reply)
        finally:
            if not lock.locked():
                self._asking.pop(key, None)
        for chunk in chunks_of(reply, free=known):
            yield chunk


def chunks_of(reply: Reply, *, free: bool = False) -> list[Chunk]:
    """Return a whole reply as chunks; `free` for one that costs nothing this time."""
    chunks: list[Chunk] = []
    if reply.thinking:
        chunks.append(ThinkingChunk(reply.thinking))
    if reply.text:
        chunks.append(TextChunk(reply.text))
    finish = reply.finish
    chunks.append(Finish(finish.reason, finish.stop_sequence, NO_USAGE if free else finish.usage))
    return chunks
