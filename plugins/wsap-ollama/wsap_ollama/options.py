"""How Ollama is reached and what models are run with; the protocol's recommended values as defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wsap_llm.kit import read_options

OLLAMA_OPTIONS: Mapping[str, float] = {
    "num_predict": 300,
    "temperature": 0.7,
    "top_p": 0.9,
    "repeat_penalty": 1.1,
    "num_ctx": 4096,
}
"""What the protocol recommends for decisions of a small model."""


@dataclass(frozen=True)
class OllamaOptions:
    """How Ollama is reached and what models are run with."""

    host: str | None = None
    """Address of the server; from `OLLAMA_HOST`, or http://127.0.0.1:11434, when None."""
    num_ctx: int = int(OLLAMA_OPTIONS["num_ctx"])
    """The context in tokens, prompt and reply together. Ollama cuts what is longer from the front,
    without a word, so a longer prompt is refused here instead."""
    repeat_penalty: float = OLLAMA_OPTIONS["repeat_penalty"]
    """Where a request does not say otherwise."""
    think: bool | None = None
    """Whether a thinking model thinks, where a request does not say; as the model is set up when None."""
    think_tokens: int = 1024
    """Tokens for thinking, on top of the reply's and of `num_ctx`, when a model thinks: without them
    its thoughts use up the reply's 300 tokens and nothing is left to act with."""
    keep_alive: str | None = None
    """How long the model stays loaded: "5m", "1h", "-1" for always; as the server is set up when None."""
    stream: bool = False
    """Take replies in pieces, where somebody waits for them."""
    timeout: float = 120.0
    """Seconds for a whole reply; loading a large model is part of the first."""
    connect_timeout: float = 5.0
    """Seconds for the connection."""
    max_bytes: int = 16 * 1024 * 1024
    """Most bytes of an answer."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More of Ollama's own options, as an object."""


RUNTIME = (
    *("num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap", "numa"),
    *("top_k", "min_p", "typical_p", "repeat_last_n", "presence_penalty", "frequency_penalty", "mirostat"),
    *("mirostat_tau", "mirostat_eta", "penalize_newline"),
)
"""Ollama's own options, from its description of a Modelfile and of its API, that may be given by name, too."""


def options_of(config: Mapping[str, Any]) -> OllamaOptions:
    """Return options from a configuration.

    Raises:
        ConfigError: one is unknown or of the wrong kind.
    """
    own = {name: value for name, value in config.items() if name not in RUNTIME}
    keep = own.get("keep_alive")
    if type(keep) in (int, str) and str(keep).lstrip("-").isdigit():
        own["keep_alive"] = f"{keep}s"  # as text, Ollama wants a unit with it
    options = read_options(OllamaOptions, own, "ollama", also=RUNTIME)
    extra = {name: value for name, value in config.items() if name in RUNTIME}
    return replace(options, extra={**options.extra, **extra})
