"""The identity of a request: what caches and records file replies under."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache

from wsap_core.llm.types import ImagePart, Message, Request
from wsap_core.wire import dumps


def request_key(model: str, request: Request) -> str:
    """Return a SHA-256, in hexadecimal, of the model's address and everything in the request.

    It is the hash of the address, of the canonical JSON of the request without its messages, and
    of each message's own hash, one a line: a conversation only grows, so that most of its messages
    have been hashed before. A picture is in it by its own hash.
    """
    rest = dumps(replace(request, messages=(), purpose=""))
    lines = [model, rest, *(_digest(message) for message in request.messages)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _digest(message: Message) -> str:
    if isinstance(message.content, str):
        return _text_digest(message)
    # Not kept with the others: thousands of pictures would stay in memory with their messages.
    content = [
        {"alt": part.alt, "media_type": part.media_type, "sha256": part.sha256} if isinstance(part, ImagePart) else part
        for part in message.content
    ]
    return hashlib.sha256(dumps({"content": content, "role": message.role}).encode()).hexdigest()


@lru_cache(maxsize=4096)
def _text_digest(message: Message) -> str:
    return hashlib.sha256(dumps(message).encode()).hexdigest()
