"""Options received over HTTP: those that name something of this machine are refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import PurePath

from wsap_core.errors import WsapError
from wsap_core.protocol.values import JsonValue
from wsap_core.specs import Named, OptionDef
from wsap_core.untrusted import single_line
from wsap_llm.secrets import references_in
from wsap_nexus.http.refusals import ForbiddenError

_WHAT: Mapping[Named, str] = {
    "path": "a file or folder of this machine",
    "program": "a program of this machine",
    "secret": "a secret, or a variable of this process",
    "address": "a server that gets the keys of this machine",
}
ELSEWHERE = "set it on the machine of the nexus, with: wsap nexus agents import FILE --trust"
"""What to do with a policy's option that can't be set over HTTP."""


def refused(name: str, what: str, instead: str) -> WsapError:
    """Return the ForbiddenError for an option that names something of this machine; `instead` says what to do."""
    return ForbiddenError(f"The option {single_line(name)[:80]} names {what}, which can't be set over HTTP; {instead}")


def check_value(known: OptionDef | None, name: str, value: JsonValue, instead: str) -> None:
    """Raise ForbiddenError if an option's value names a file, a program, a secret or a server.

    `known` is the option's declaration; None if it has none, so that only references in its value are looked for.
    """
    if known is not None and known.names in _WHAT and value not in (None, "", [], {}):
        raise refused(name, _WHAT[known.names], instead)
    for where in _files_in(value, name):
        raise refused(where, _WHAT["path"], instead)
    if references_in({name: value}):
        raise refused(name, _WHAT["secret"], instead)


def can_be_path(name: str) -> bool:
    """Return whether the name of a model or of a template can be the path of a file or folder of this machine."""
    steps = re.split(r"[/\\:]", name)  # also the rest of vllm:MODEL, and of a drive of Windows
    if "\0" in name or not all(steps) or any(step.startswith((".", "~")) for step in steps):
        return True
    rest = name.partition(":")[2]
    return PurePath(name).suffix.lower() in (".gguf", ".toml") or os.path.lexists(name) or os.path.lexists(rest)


def _files_in(value: JsonValue, path: str) -> Iterator[str]:
    """Yield where a value is `@FILE`; text can be the JSON of a table, as on the command line."""
    if isinstance(value, str) and value.startswith("@"):
        yield path
    elif isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        try:
            inside = json.loads(value)
        except (ValueError, RecursionError):
            return
        yield from _files_in(inside, path)
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _files_in(inner, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _files_in(inner, path)
