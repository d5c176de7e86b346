"""A model backend for a local Ollama server, and the protocol's reference agent.

Both are imported on first use, so that listing plugins imports no agent and no client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wsap_ollama.agent import OllamaAgent
    from wsap_ollama.backend import OllamaBackend
    from wsap_ollama.options import OLLAMA_OPTIONS, OllamaOptions

__all__ = ["OLLAMA_OPTIONS", "OllamaAgent", "OllamaBackend", "OllamaOptions"]

_HOMES = {"OLLAMA_OPTIONS": "options", "OllamaAgent": "agent", "OllamaBackend": "backend", "OllamaOptions": "options"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # deferred for weight

    return getattr(importlib.import_module(f"wsap_ollama.{_HOMES[name]}"), name)
