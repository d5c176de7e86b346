"""The protocol's reference agent: a model of a local Ollama decides."""

from __future__ import annotations

from typing import Any

from wsap_llm.agent import LLMAgent
from wsap_ollama.backend import OllamaBackend
from wsap_ollama.options import OllamaOptions


class OllamaAgent(LLMAgent):
    """Agent using Ollama for decisions.

    Usable as the protocol's seed shows it, `OllamaAgent(model="qwen3:8b")`, and as
    `--agent wsap_ollama:OllamaAgent`. Replies are bound to the actions that are legal now, and
    what the model thinks is kept out of its history.

    Args:
        model: the model as Ollama calls it.
        ollama: how Ollama is reached and run; the protocol's recommended values when None.
        **more: whatever else `LLMAgent` takes, such as `options`, `prompts`, `memory`.
    """

    def __init__(self, model: str = "qwen3:8b", *, ollama: OllamaOptions | None = None, **more: Any) -> None:
        # Any: LLMAgent's own arguments, which it checks.
        backend = OllamaBackend(model, ollama)
        super().__init__(backend, **{"prepare": backend.prepare, **more})
        self.model = model
        """The model as Ollama calls it."""

    async def aclose(self) -> None:
        """Give back what its tools hold, and close the connections to Ollama."""
        await super().aclose()
        await self.backend.aclose()
