"""The keys under which replies to requests are recorded."""

from __future__ import annotations

import hashlib
from dataclasses import fields

from wsap_core.protocol.wire import dumps
from wsap_core.seams.model import ImagePart, Message, Request

_CACHE = "_digest"
_REST = tuple(each.name for each in fields(Request) if each.compare and each.name != "messages")


def request_key(model: str, request: Request) -> str:
    """Return a SHA-256, in hexadecimal, of the model's address and everything in the request.

    Hashed are the address, the canonical JSON of the request without its messages, and the hash of each message, one a
    line: most messages of a growing conversation have been hashed before. Pictures are included by their hash.
    """
    # The two empty fields are part of the keys of recorded runs.
    rest = dumps({"messages": (), "purpose": ""} | {name: getattr(request, name) for name in _REST})
    lines = [model, rest, *(_digest(message) for message in request.messages)]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _digest(message: Message) -> str:
    # Cached on the message: with hundreds of conversations, a shared cache would evict it before its next use.
    known: str | None = message.__dict__.get(_CACHE)
    if known is None:
        known = hashlib.sha256(_text(message).encode()).hexdigest()
        object.__setattr__(message, _CACHE, known)
    return known


def _text(message: Message) -> str:
    if message.calls:
        return dumps(Message(message.role, message.text()))  # a call counts as its text
    if isinstance(message.content, str):
        return dumps(message)
    content = [
        {"alt": part.alt, "media_type": part.media_type, "sha256": part.sha256} if isinstance(part, ImagePart) else part
        for part in message.content
    ]
    return dumps({"content": content, "role": message.role})
