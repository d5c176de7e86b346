"""A server inside the tests that speaks OpenAI's and Ollama's HTTP APIs, and misbehaves on request.

Written from the public descriptions of the two protocols. It listens on 127.0.0.1 alone, on a port
that the system chooses, in a thread with an event loop of its own, so that any client can be pointed
at it: asynchronous, synchronous, or another process.
"""

from __future__ import annotations

from llm_server.says import DEAF, Card, Received, Refusal, Say
from llm_server.server import ModelServer

__all__ = ["DEAF", "Card", "ModelServer", "Received", "Refusal", "Say"]
