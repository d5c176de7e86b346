"""The protocol's reference agent, with a model of a local Ollama server."""

from __future__ import annotations

from typing import Any

from wsap_llm.agent import LLMAgent
from wsap_ollama.backend import OllamaBackend
from wsap_ollama.options import OllamaOptions


class OllamaAgent(LLMAgent):
    """Agent using Ollama for decisions: `OllamaAgent(model="qwen3:8b")`, or `--agent wsap_ollama:OllamaAgent`.

    Replies are constrained to legal actions, and thinking is left out of the history. `model` is Ollama's name of the
    model, `ollama` the backend's options, `more` other arguments of `LLMAgent`.
    """

    def __init__(self, model: str = "qwen3:8b", *, ollama: OllamaOptions | None = None, **more: Any) -> None:
        # Any: arguments of LLMAgent, which checks them.
        backend = OllamaBackend(model, ollama)
        super().__init__(backend, **{"prepare": backend.prepare, **more})
        self.model = model

    async def aclose(self) -> None:
        """Release the resources of its tools, and close the connections to Ollama."""
        await super().aclose()
        await self.backend.aclose()
