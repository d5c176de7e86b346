"""The identity of a request: what caches and records file replies under."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache

from wsap_core.llm.types import Message, Request
from wsap_core.wire import dumps


def request_key(model: str, request: Request) -> str:
    """Return a SHA-256, in hexadecimal, of the model's address and everything in the request.

    It is the hash of the address, of the canonical JSON of the request without its messages, and
    of each message's own hash, one a line: a conversation only grows, so that most of its messages
    have been hashed before.
    """
    rest = dumps(replace(request, messages=()))
    lines = [model, rest, *(_digest(message) for message in request.messages)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@lru_cache(maxsize=4096)
def _digest(message: Message) -> str:
    return hashlib.sha256(dumps(message).encode()).hexdigest()
