"""The identity of a request: what caches and records file replies under."""

from __future__ import annotations

import hashlib

from wsap_core.llm.types import Request
from wsap_core.wire import dumps


def request_key(model: str, request: Request) -> str:
    """Return the SHA-256 of the model's address and everything in the request, in hexadecimal."""
    return hashlib.sha256(f"{model}\n{dumps(request)}".encode()).hexdigest()
