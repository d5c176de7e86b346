"""What this package registers. Light: nothing of it is imported before it is used."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core import BackendSpec, hookimpl


@hookimpl
def wsap_backends() -> Iterable[BackendSpec]:
    """Offer the models that a local Ollama has pulled."""
    return [
        BackendSpec(
            "ollama",
            "Models of a local Ollama server: ollama/qwen3:8b.",
            "wsap_ollama.backend:create",
            models="wsap_ollama.listing:listing",
        )
    ]
