"""The options of the backend, with the protocol's recommended values as defaults."""

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
"""The protocol's recommendation for decisions of a small model."""


@dataclass(frozen=True)
class OllamaOptions:
    """The options of the backend."""

    host: str | None = None
    """Address of the server; from `OLLAMA_HOST`, or http://127.0.0.1:11434, when None."""
    num_ctx: int = int(OLLAMA_OPTIONS["num_ctx"])
    """The context in tokens, for prompt and reply together. Longer prompts are refused, because Ollama would silently
    cut off their beginning."""
    repeat_penalty: float = OLLAMA_OPTIONS["repeat_penalty"]
    """For requests that do not set it."""
    think: bool | None = None
    """Whether a thinking model thinks, if the request does not say so; the model's default when None."""
    think_tokens: int = 1024
    """Additional tokens of the reply and of `num_ctx` for thinking, which could otherwise use up the reply's 300."""
    keep_alive: str | None = None
    """How long the model stays loaded: "5m", "1h", "-1" for always; the server's default when None."""
    stream: bool = False
    """Whether replies are streamed."""
    timeout: float = 120.0
    """Seconds for a whole reply; the first one includes loading the model."""
    connect_timeout: float = 5.0
    """Seconds for the connection."""
    max_bytes: int = 16 * 1024 * 1024
    """Most bytes of an answer."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other options of Ollama, as an object."""


RUNTIME = (
    *("num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap", "numa"),
    *("top_k", "min_p", "typical_p", "repeat_last_n", "presence_penalty", "frequency_penalty", "mirostat"),
    *("mirostat_tau", "mirostat_eta", "penalize_newline"),
)
"""Options of Ollama (from the documentation of its Modelfile and API) that can also be given by name."""


def options_of(config: Mapping[str, Any]) -> OllamaOptions:
    """Return options from a configuration; `ConfigError` if one is unknown or invalid."""
    own = {name: value for name, value in config.items() if name not in RUNTIME}
    keep = own.get("keep_alive")
    if type(keep) in (int, str) and str(keep).lstrip("-").isdigit():
        own["keep_alive"] = f"{keep}s"  # as text, Ollama requires a unit
    options = read_options(OllamaOptions, own, "ollama", also=RUNTIME)
    extra = {name: value for name, value in config.items() if name in RUNTIME}
    return replace(options, extra={**options.extra, **extra})
