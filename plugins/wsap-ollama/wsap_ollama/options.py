"""The options of the backend, with the protocol's recommended values as defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from wsap_core.errors import ConfigError
from wsap_llm.kit import option_defs, read_options

PLACE = "http://127.0.0.1:11434"
"""Where Ollama listens by default."""
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

    host: str | None = field(default=None, metadata={"names": "address"})
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
    stream: bool | None = None
    """Whether replies are streamed; while they are shown when None, except function calls."""
    gather: float = 0.05
    """Seconds in which pieces of a streamed reply after the first are collected and shown together; 0 shows each piece
    at once, which takes several times the processor time."""
    concurrency: int | None = None
    """Most requests in flight to the server; 4 at local addresses, and any number elsewhere, when None."""
    timeout: float = 120.0
    """Seconds for a whole reply, from when the request is sent; the first one includes loading the model."""
    connect_timeout: float = 5.0
    """Seconds for the connection."""
    max_bytes: int = 16 * 1024 * 1024
    """Most bytes of an answer."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Other options of Ollama, as an object."""

    def __post_init__(self) -> None:
        try:
            _ = urlsplit(self.place).port
        except ValueError:
            raise ConfigError(f"Invalid address {self.place!r}; expected something like {PLACE}.") from None

    @property
    def place(self) -> str:
        """The server's address without a trailing slash. As for Ollama itself, it may lack the protocol and the
        port."""
        text = (self.host or os.environ.get("OLLAMA_HOST", "")).strip().rstrip("/")
        _, mark, rest = text.rpartition("://")
        if not text or mark:
            return text or PLACE
        host, path = rest.partition("/")[::2]
        name, colon, port = ("", "", "") if host.endswith("]") else host.rpartition(":")
        host = f"{name or '127.0.0.1'}:{port}" if colon else f"{host}:11434"
        return f"http://{host}/{path}".rstrip("/")

    @property
    def api_key(self) -> str | None:
        """The key, from the environment."""
        return os.environ.get(self.key_variable, "").strip() or None

    @property
    def key_variable(self) -> str:
        """The environment variable of the key."""
        return "OLLAMA_API_KEY"

    @property
    def headers(self) -> Mapping[str, str]:
        """Additional headers: none."""
        return {}

    @property
    def proxy(self) -> None:
        """The proxy: none, as the server is on this machine or near it."""

    @property
    def first_token_timeout(self) -> None:
        """Seconds for the first part of a streamed reply: no other limit, as the model may be loaded first."""


RUNTIME = (
    *("num_keep", "num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap", "numa"),
    *("top_k", "min_p", "typical_p", "repeat_last_n", "presence_penalty", "frequency_penalty", "mirostat"),
    *("mirostat_tau", "mirostat_eta", "penalize_newline"),
)
"""Options of Ollama (from the documentation of its Modelfile and API) that can also be given by name."""


DECLARED = option_defs(OllamaOptions, *RUNTIME)


def options_of(config: Mapping[str, Any]) -> OllamaOptions:
    """Return options from a configuration; `ConfigError` if one is unknown or invalid."""
    own = {name: value for name, value in config.items() if name not in RUNTIME}
    keep = own.get("keep_alive")
    if type(keep) in (int, str) and str(keep).removeprefix("-").isdecimal():
        own["keep_alive"] = f"{keep}s"  # as text, Ollama requires a unit
    options = read_options(OllamaOptions, own, "ollama", also=RUNTIME)
    extra = {name: value for name, value in config.items() if name in RUNTIME}
    return replace(options, extra={**options.extra, **extra})
