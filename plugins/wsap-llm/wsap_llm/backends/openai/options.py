"""Connection settings and abilities of a server that speaks OpenAI's protocol."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from wsap_core.errors import ConfigError, UnknownNameError
from wsap_llm.backends.openai.dialects import DIALECTS, Dialect, dialect_name
from wsap_llm.backends.scoring import TEMPLATES
from wsap_llm.options.declared import option_defs, read_options

BASE_URL = "https://api.openai.com/v1"
URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_LOCAL = ("127.0.0.1", "::1", "localhost")


@dataclass(frozen=True)
class OpenAIOptions:
    """Connection settings and abilities of the server."""

    base_url: str = field(default=BASE_URL, metadata={"names": "address"})
    """The server's base URL, without `/chat/completions`; usually ends in `/v1`. Default: `OPENAI_BASE_URL`, if set."""
    api_key: str | None = field(default=None, repr=False, metadata={"names": "secret"})
    """The API key; if None, from `key_variable`."""
    key_variable: str = field(default=KEY_VARIABLE, metadata={"names": "secret"})
    """The environment variable of the API key."""
    server: str | None = None
    """The kind of server: `generic`, `openai`, `vllm` or `llama.cpp`; by the host if None. Determines how thinking is
    switched and whether regular expressions and prefilled replies are supported."""
    stream: bool | None = None
    """Stream replies, which takes more processor time; if None, while they are shown, except function calls."""
    gather: float = 0.05
    """Interval in seconds in which pieces of a streamed reply after the first are collected and shown together; 0 shows
    each piece at once, which takes several times the processor time."""
    json_schema: bool = True
    """Whether the server supports JSON Schema."""
    schema_subset: bool | None = None
    """Whether it supports only OpenAI's strict subset of JSON Schema, as a gateway to OpenAI's models may; if None,
    servers of OpenAI and Azure do."""
    calls: bool | None = None
    """Whether server and model support function calls (tool calling); if None, by the kind of server."""
    choose: str | None = None
    """Enables the style `choose` if `/completions` returns log-probabilities of prompt tokens, as vLLM and
    llama-cpp-python do; the value is the format of the chat template, `chatml` or `llama3`."""
    images: bool | None = None
    """Whether the model accepts images; if None, pictures are sent and the server may refuse them."""
    context: int | None = None
    """The model's context in tokens; unknown if None."""
    think_opened: bool = False
    """Whether the chat template starts replies inside `<think>`."""
    think_tokens: int = 1024
    """Tokens for thinking in addition to the reply's, once the model has been seen to think."""
    concurrency: int | None = None
    """Maximum requests in flight to the server. If None: as many as llama.cpp's server has slots, 4 at other local
    addresses, any number elsewhere and for vLLM and SGLang, which process many at once."""
    timeout: float = 120.0
    """Timeout for a whole reply in seconds, from when the request is sent."""
    first_token_timeout: float = 120.0
    """Timeout for the first part of a streamed reply in seconds."""
    connect_timeout: float = 10.0
    """Timeout for the connection in seconds."""
    max_bytes: int = 16 * 1024 * 1024
    """Maximum size of a response in bytes."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, metadata={"names": "secret"})
    """Additional HTTP headers, such as those of gateways, as an object."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Additional fields of every request, as an object."""

    def __post_init__(self) -> None:
        if not _is_address(self.base_url):
            raise ConfigError(f"Invalid base URL {self.base_url!r}; expected something like http://127.0.0.1:8000/v1.")
        parts = urlsplit(self.base_url)
        if parts.username or parts.password:
            raise ConfigError(f"The base URL must not contain a password; set {self.key_variable}.")
        if self.server is not None and self.server not in DIALECTS:
            raise UnknownNameError("server", self.server, DIALECTS, hint=f"There are: {', '.join(DIALECTS)}.")
        if self.choose is not None and self.choose not in TEMPLATES:
            raise UnknownNameError("chat template", self.choose, TEMPLATES, hint=f"There are: {', '.join(TEMPLATES)}.")
        if self.api_key is not None and not (self.api_key.isascii() and self.api_key.isprintable()):
            raise ConfigError(f"The key in {self.key_variable} contains characters that are not allowed in a key.")
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name):
                raise ConfigError(f"{name!r} is no name of a header; it can have letters, digits and dashes.")
            if _CONTROL.search(value):
                raise ConfigError(f"The header {name!r} contains characters that are not allowed in a header.")

    @property
    def host(self) -> str:
        """The host name of the server."""
        return urlsplit(self.base_url).hostname or ""

    @property
    def dialect(self) -> Dialect:
        """The dialect of the server."""
        known = DIALECTS[self.server or dialect_name(self.host)]
        return known if self.schema_subset is None else replace(known, subset=self.schema_subset)

    @property
    def place(self) -> str:
        """The base URL without a trailing slash."""
        return self.base_url.rstrip("/")

    @property
    def proxy(self) -> str | None:
        """The proxy that the environment sets for the server; None for local addresses."""
        if self.host in _LOCAL or urllib.request.proxy_bypass(self.host):
            return None
        return urllib.request.getproxies().get(urlsplit(self.base_url).scheme)


DECLARED = option_defs(OpenAIOptions)


def _is_address(url: str) -> bool:
    """Return whether a text can be the address of a server."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is none
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and re.fullmatch(r"\S+", parts.hostname or "") is not None


def options_of(config: Mapping[str, Any], environ: Mapping[str, str]) -> OpenAIOptions:
    """Return options from a configuration, with defaults from the environment. Raises ConfigError if an option is
    unknown or has the wrong type."""
    url = environ.get(URL_VARIABLE, "").strip() or BASE_URL
    options = read_options(OpenAIOptions, {"base_url": url, **config}, "openai")
    if options.api_key is None:
        options = replace(options, api_key=environ.get(options.key_variable, "").strip() or None)
    return options
