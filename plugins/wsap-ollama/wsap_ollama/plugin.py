"""The hooks of this package."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core import BackendSpec, hookimpl


@hookimpl
def wsap_backends() -> Iterable[BackendSpec]:
    """Register the backend for local Ollama servers."""
    return [
        BackendSpec(
            "ollama",
            "Models of a local Ollama server: ollama/qwen3:8b.",
            "wsap_ollama.backend:create",
            models="wsap_ollama.listing:listing",
            options="wsap_ollama.options:DECLARED",
        )
    ]
