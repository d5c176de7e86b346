"""The configuration of tool servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from wsap_core.errors import ConfigError
from wsap_core.specs import OptionDef
from wsap_core.untrusted import error_line
from wsap_llm.options.declared import TABLE, TEXT, TEXTS, Kind, option_defs, parsed, read_table
from wsap_llm.options.table import Range
from wsap_llm.secrets import secrets_in, without

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


@dataclass(frozen=True)
class ServerConfig:
    """One server: a program that uses standard input and output, or an address."""

    name: str
    """The name in messages."""
    command: tuple[str, ...] = ()
    """A program and its arguments; started without a shell."""
    url: str = ""
    """The address of a running server (streamable HTTP)."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Environment variables of the program; of this process's variables it inherits only a few such as PATH."""
    cwd: str | None = None
    """The working directory of the program."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """HTTP headers for each request to the address, such as Authorization."""
    prefix: str = ""
    """Prefix of the tools' names, followed by an underscore."""
    tools: tuple[str, ...] | None = None
    """The server's tools that are offered; None for all."""
    timeout: float = 30.0
    """Timeout of a call in seconds, after which the server is restarted."""
    start_timeout: float = 30.0
    """Timeout in seconds for starting the server and listing its tools."""
    restarts: int = 3
    """Maximum number of restarts."""
    longest: int = 4000
    """Maximum length of a result in characters; the rest is cut off with a note for the model."""

    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Confidential values in the options above, which are hidden in results and messages."""

    @property
    def where(self) -> str:
        """The program or address for messages, without secrets."""
        if self.command:
            return PurePath(self.command[0]).name
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "") + parts.path

    def hide(self, text: str) -> str:
        """Return a text without this server's secrets."""
        return without(text, self.secrets)


_OPTIONS: Mapping[str, Range | Kind] = {
    "command": replace(TEXTS, names="program"),
    "tools": TEXTS,
    "url": replace(TEXT, names="address"),
    "cwd": replace(TEXT, names="path"),
    "prefix": TEXT,
    **dict.fromkeys(("env", "headers"), replace(TABLE, names="secret")),
    "timeout": Range(ServerConfig.timeout, 0.01, 3600, whole=False),
    "start_timeout": Range(ServerConfig.start_timeout, 0.01, 3600, whole=False),
    "restarts": Range(ServerConfig.restarts, 0, 1000),
    "longest": Range(ServerConfig.longest, 100, 100_000),
}
DECLARED = (*option_defs(_OPTIONS), OptionDef("servers", "servers by name", names="program"))
_TELLING = ("command", "url", "env", "headers")


def read_servers(config: Mapping[str, Any]) -> tuple[ServerConfig, ...]:
    """Return the servers of the tool's options: one, or several under `servers`, by name.

        {"command": ["python", "server.py"]}
        {"servers": {"files": {"command": ["npx", "server"]}, "wiki": {"url": "http://127.0.0.1:8000/mcp"}}}

    Tools of several servers have the server's name as default `prefix`. Tables and lists from a command line are JSON.
    Raises ConfigError if an option is missing, unknown or invalid.
    """
    # Any: options from a file or command line have any type.
    if "servers" not in config:
        return (_read("mcp", config, ""),)
    try:
        servers = parsed(config["servers"])
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The option servers of the tool mcp is not valid JSON: {error_line(error, 100)}.") from None
    if len(config) > 1 or not isinstance(servers, Mapping) or not servers:
        raise ConfigError("The option servers of the tool mcp must be a table of servers by name, and the only option.")
    for name in servers:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(
                f"Invalid name of a tool server {str(name)[:60]!r}; use up to 32 letters, digits, - and _."
            )
    return tuple(_read(name, options, name) for name, options in servers.items())


def _read(name: str, options: Any, prefix: str) -> ServerConfig:
    owner = f"server {name!r} of the tool mcp"
    where = f"the {owner}"
    if not isinstance(options, Mapping):
        raise ConfigError(f"The options of {where} must be a table.")
    read = ServerConfig(name, **{"prefix": prefix, **read_table(owner, options, _OPTIONS)})
    read = replace(read, secrets=secrets_in({o: getattr(read, o) for o in _TELLING}, surely=True))
    if bool(read.command) == bool(read.url):
        raise ConfigError(f"Set either command, a list such as ['python', 'server.py'], or url for {where}.")
    if read.url and urlsplit(read.url).scheme not in ("http", "https"):
        raise ConfigError(f"The option url of {where} must start with http:// or https://.")
    if read.prefix and not _NAME.fullmatch(read.prefix):
        raise ConfigError(f"The option prefix of {where} must be up to 32 letters, digits, - and _.")
    return read
