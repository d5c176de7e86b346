"""Which servers of tools there are, how they are reached, and their limits."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from wsap_core.errors import ConfigError
from wsap_core.untrusted import error_line
from wsap_llm.secrets import secrets_in, without

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


@dataclass(frozen=True)
class ServerConfig:
    """One server: a program that is started and spoken to through its standard input and output, or an address."""

    name: str
    """How it is called in messages."""
    command: tuple[str, ...] = ()
    """A program and its arguments; never read by a shell."""
    url: str = ""
    """The address of a server that is running already (streamable HTTP)."""
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables for the program; of this process's own it gets a few harmless ones such as PATH, and no keys."""
    cwd: str | None = None
    """The folder the program runs in."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with each request to the address, such as Authorization."""
    prefix: str = ""
    """Put before the name of each tool, with a low line between."""
    tools: tuple[str, ...] | None = None
    """The server's tools that are offered; None for all."""
    timeout: float = 30.0
    """Seconds that a call may take; a server that takes longer counts as hung and is started again."""
    start_timeout: float = 30.0
    """Seconds that starting it and listing its tools may take."""
    restarts: int = 3
    """How often it is started again, after the first time."""
    longest: int = 4000
    """Most characters of a result; the rest is cut off, and the model is told."""

    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What is confidential in the options above: hidden in what the server answers and in what is said of it."""

    @property
    def where(self) -> str:
        """The program or address for a person to read, without anything secret an address may hold."""
        if self.command:
            return PurePath(self.command[0]).name
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "") + parts.path

    def hide(self, text: str) -> str:
        """Return a text in which nothing of what is confidential can be read."""
        return without(text, self.secrets)


_TELLING = ("command", "url", "env", "headers")


def read_servers(config: Mapping[str, Any]) -> tuple[ServerConfig, ...]:
    """Return the servers of the tool's options: one, or several under `servers`, by name.

        {"command": ["python", "server.py"]}
        {"servers": {"files": {"command": ["npx", "server"]}, "wiki": {"url": "http://127.0.0.1:8000/mcp"}}}

    Tools of several servers are prefixed with the server's name, unless `prefix` says otherwise. What comes from a
    command line may be the JSON text of such a table or list. Raises ConfigError if an option is missing, unknown or
    wrong.
    """
    # Any: options come from a person's file or command line, and have any type.
    if "servers" not in config:
        return (_read("mcp", config, ""),)
    servers = _parsed(config["servers"])
    if len(config) > 1 or not isinstance(servers, Mapping) or not servers:
        raise ConfigError(
            "The option servers of the tool mcp must be a table of servers by name, with nothing beside it."
        )
    for name in servers:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ConfigError(
                f"{str(name)[:60]!r} can't name a server of tools: use up to 32 letters, digits, - and _."
            )
    return tuple(_read(name, options, name) for name, options in servers.items())


def _read(name: str, options: Any, prefix: str) -> ServerConfig:
    where = f"the server {name!r} of the tool mcp"
    if not isinstance(options, Mapping):
        raise ConfigError(f"The options of {where} must be a table.")
    for option in options:
        if option not in _READERS:
            listed = ", ".join(sorted(_READERS))
            raise ConfigError(f"There is no option {str(option)[:60]!r} of {where}; there are: {listed}.")
    given = {option: value for option, value in options.items() if value is not None or option not in ("cwd", "tools")}
    found = {option: _READERS[option](where, option, value) for option, value in {"prefix": prefix, **given}.items()}
    read = ServerConfig(name, **found)
    read = replace(read, secrets=secrets_in({o: getattr(read, o) for o in _TELLING}, surely=True))
    if bool(read.command) == bool(read.url):
        raise ConfigError(f"Give {where} either command, a list such as ['python', 'server.py'], or url.")
    if read.url and urlsplit(read.url).scheme not in ("http", "https"):
        raise ConfigError(f"The option url of {where} must begin with http:// or https://.")
    if read.prefix and not _NAME.fullmatch(read.prefix):
        raise ConfigError(f"The option prefix of {where} must be up to 32 letters, digits, - and _.")
    return read


def _parsed(value: Any) -> Any:
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"An option of the tool mcp is not valid JSON: {error_line(error, 100)}.") from None


def _text(where: str, option: str, value: Any) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ConfigError(f"The option {option} of {where} must be text.")
    return value


def _texts(where: str, option: str, value: Any) -> tuple[str, ...]:
    value = _parsed(value)
    if not isinstance(value, list | tuple):
        # One text for a command would have to be taken apart as a shell does it.
        raise ConfigError(f"The option {option} of {where} must be a list of texts, such as ['python', 'server.py'].")
    return tuple(_text(where, option, item) for item in value)


def _table(where: str, option: str, value: Any) -> dict[str, str]:
    value = _parsed(value)
    if not isinstance(value, Mapping):
        raise ConfigError(f"The option {option} of {where} must be a table of texts.")
    return {_text(where, option, k): _text(where, option, v) for k, v in value.items()}


def _number(where: str, option: str, value: Any) -> float:
    low, high, kind = _NUMBERS[option]
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"The option {option} of {where} must be a number from {low:g} to {high:g}.")
    return kind(value)


_NUMBERS: Mapping[str, tuple[float, float, Callable[[float], float]]] = {
    "timeout": (0.01, 3600, float),
    "start_timeout": (0.01, 3600, float),
    "restarts": (0, 1000, int),
    "longest": (100, 100_000, int),
}
_READERS: Mapping[str, Callable[[str, str, Any], Any]] = {
    **dict.fromkeys(("command", "tools"), _texts),
    **dict.fromkeys(("url", "cwd", "prefix"), _text),
    **dict.fromkeys(("env", "headers"), _table),
    **dict.fromkeys(_NUMBERS, _number),
}
