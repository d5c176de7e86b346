"""A test server with OpenAI's and Ollama's HTTP APIs that misbehaves on request.

Written from the public descriptions of the two protocols. It listens on a free port of 127.0.0.1, in a thread with its
own event loop, so that any client can use it: asynchronous, synchronous, or another process.
"""

from __future__ import annotations

from llm_server.says import DEAF, Card, Received, Refusal, Say
from llm_server.server import ModelServer

__all__ = ["DEAF", "Card", "ModelServer", "Received", "Refusal", "Say"]
