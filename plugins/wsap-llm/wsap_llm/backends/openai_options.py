"""How a server that speaks OpenAI's protocol is reached, and what it can do."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from wsap_core.errors import ConfigError, UnknownNameError
from wsap_llm.backends.dialects import DIALECTS, Dialect, dialect_name
from wsap_llm.backends.scoring import TEMPLATES
from wsap_llm.option_reading import read_options

BASE_URL = "https://api.openai.com/v1"
URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
_LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class OpenAIOptions:
    """How the server is reached and what it can do."""

    base_url: str = BASE_URL
    """The server, without `/chat/completions`; usually ends in `/v1`. From `OPENAI_BASE_URL` where it is set."""
    api_key: str | None = field(default=None, repr=False)
    """The key; from `key_variable` when None."""
    key_variable: str = KEY_VARIABLE
    """The environment variable that the key is kept in."""
    server: str | None = None
    """What the server is: `generic`, `openai`, `vllm`, `llama.cpp`; by the host when None. Says how thinking is
    switched, whether it constrains by regular expression, and whether it continues a begun reply."""
    stream: bool = False
    """Take replies in pieces; costs more processor time, so only where somebody waits for them."""
    gather: float = 0.05
    """Seconds over which the pieces after the first are gathered, to be handed on together; 0 to hand on each
    as it comes, which costs several times the processor time."""
    json_schema: bool = True
    """Whether the server constrains by JSON Schema."""
    schema_subset: bool | None = None
    """Whether it takes only OpenAI's strict subset of JSON Schema, as a gateway to OpenAI's models may;
    as is known of the host when None: OpenAI's own servers and Azure's do."""
    calls: bool | None = None
    """Whether server and model make calls of functions (tool calling); as is known of the host when None."""
    choose: str | None = None
    """Let the model choose (style `choose`) where `/completions` gives log-probabilities of given text, as servers of
    vLLM and llama-cpp-python do: the form of the model's chat template, `chatml` or `llama3`."""
    images: bool | None = None
    """Whether the model sees; when None pictures are sent, and the server says if it can't."""
    context: int | None = None
    """The model's context in tokens; not known when None."""
    think_opened: bool = False
    """Whether the chat template begins replies inside `<think>`."""
    think_tokens: int = 1024
    """Tokens for thinking, on top of the reply's, once the model has been seen to think."""
    timeout: float = 120.0
    """Seconds for a whole reply."""
    first_token_timeout: float = 120.0
    """Seconds until a streamed reply begins."""
    connect_timeout: float = 10.0
    """Seconds for the connection."""
    max_bytes: int = 16 * 1024 * 1024
    """Most bytes of an answer."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """More headers, such as those of gateways, as an object."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """More fields of every request, as an object."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"Invalid base URL {self.base_url!r}; expected something like http://127.0.0.1:8000/v1.")
        if parts.username or parts.password:
            raise ConfigError(f"The base URL must not contain a password; set {self.key_variable}.")
        if self.server is not None and self.server not in DIALECTS:
            raise UnknownNameError("server", self.server, DIALECTS, hint=f"There are: {', '.join(DIALECTS)}.")
        if self.choose is not None and self.choose not in TEMPLATES:
            raise UnknownNameError("chat template", self.choose, TEMPLATES, hint=f"There are: {', '.join(TEMPLATES)}.")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise ConfigError(f"The key in {self.key_variable} contains characters that are not allowed in a key.")

    @property
    def host(self) -> str:
        """The server's name."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def dialect(self) -> Dialect:
        """What kind of server it is."""
        known = DIALECTS[self.server or dialect_name(self.host)]
        return known if self.schema_subset is None else replace(known, subset=self.schema_subset)

    @property
    def place(self) -> str:
        """The address as messages show it."""
        return self.base_url.rstrip("/")

    @property
    def proxy(self) -> str | None:
        """The proxy that the environment names for the server; never one for this machine itself."""
        if self.host in _LOCAL or urllib.request.proxy_bypass(self.host):
            return None
        return urllib.request.getproxies().get(urlsplit(self.base_url).scheme)


def options_of(config: Mapping[str, Any], environ: Mapping[str, str]) -> OpenAIOptions:
    """Return options from a configuration and, for what it leaves out, the environment. Raises ConfigError if an option
    is unknown or of the wrong kind."""
    url = environ.get(URL_VARIABLE, "").strip() or BASE_URL
    options = read_options(OpenAIOptions, {"base_url": url, **config}, "openai")
    if options.api_key is None:
        options = replace(options, api_key=environ.get(options.key_variable, "").strip() or None)
    return options
