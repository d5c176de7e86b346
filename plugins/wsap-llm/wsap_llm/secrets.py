"""Keys and passwords in the options of a run, which are never recorded.

Confidential are all texts in tables named `env` or `headers`, options whose name ends in `api_key`, `token`, `secret`,
`password` or the like, the values of such flags in a command, and addresses that contain a user name, a password or a
key. In these texts `env:NAME`, `$NAME` and `${NAME}` refer to an environment variable. References are recorded
unchanged; any other text is recorded as a reference to a variable named after the option, which must be set when the
run is resumed.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from wsap_core.errors import ConfigError

# Any, in this module: options have values of any type.

PREFIX = "WSAP_KEPT_"
"""The prefix of variables for texts that are not recorded."""
HIDDEN = "(hidden)"
"""Replaces secrets in texts for people and models."""
SHORTEST = 4
"""Minimum length of a secret that is hidden in other texts; shorter ones would match too much."""

_WORD = (
    r"(?:api[_-]?key|access[_-]?key|private[_-]?key|token|secret|password|passwd|passphrase|authorization|credentials?)"
)
_NAME = re.compile(rf"(?:^|.*[_.-]){_WORD}$|^{_WORD}$", re.IGNORECASE)
_FLAG = re.compile(rf"(--?(?:[\w-]*[_-])?{_WORD})(?:=(.*))?", re.IGNORECASE | re.DOTALL)
_TABLES = ("env", "headers")
_WHOLE = re.compile(r"(?:env:|\$)([A-Za-z_][A-Za-z0-9_]*)|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_INSIDE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_QUERY = re.compile(r"key|token|secret|passw|auth|sig|cred|_pat$|dsn", re.IGNORECASE)
_HARMLESS = re.compile(r"[A-Za-z]{0,12} ?")

Change = Callable[[tuple[str, ...], str], str]


def redacted(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options without secrets, for the record; `with_secrets` restores them."""
    return {name: _mapped(value, (name,), _is_name(name), _reference) for name, value in options.items()}


def with_secrets(options: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return options with their references resolved. Raises ConfigError if a variable is not set."""

    def value_of(path: tuple[str, ...], text: str) -> str:
        whole = _WHOLE.fullmatch(text)
        if whole is not None:
            return _variable(whole[1] or whole[2], path, environ)
        return _INSIDE.sub(lambda found: _variable(found[1], path, environ), text)

    return {name: _mapped(value, (name,), _is_name(name), value_of) for name, value in options.items()}


def is_reference(text: str) -> bool:
    """Return whether a text is a reference to an environment variable: `env:NAME`, `$NAME` or `${NAME}`."""
    return _WHOLE.fullmatch(text) is not None


def references_in(options: Mapping[str, Any]) -> list[str]:
    """Return the environment variables that options refer to."""
    found: list[str] = []

    def note(path: tuple[str, ...], text: str) -> str:
        whole = _WHOLE.fullmatch(text)
        found.extend(_INSIDE.findall(text) if whole is None else (whole[1] or whole[2],))
        return text

    for name, value in options.items():
        _mapped(value, (name,), _is_name(name), note)
    return found


def secrets_in(options: Mapping[str, Any], *, surely: bool = False) -> tuple[str, ...]:
    """Return the secrets in resolved options, longest first.

    If `surely`, variables of programs are left out unless their name suggests a key: others may be folders, which are
    frequent in results of tools.
    """
    found: list[str] = []

    def note(path: tuple[str, ...], text: str) -> str:
        variable = len(path) > 1 and path[-2].rpartition(".")[2].lower() == "env"
        if not (surely and variable and _QUERY.search(path[-1]) is None):
            found.extend(_parts(text))
        return text

    for name, value in options.items():
        _mapped(value, (name,), _is_name(name), note)
    return tuple(sorted({text for text in found if len(text) >= SHORTEST}, key=lambda text: (-len(text), text)))


def without(text: str, secrets: Iterable[str]) -> str:
    """Return a text with the secrets hidden."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def secrets_of(tables: Iterable[Mapping[str, Any]], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the secrets in tables of options, with references resolved if possible, longest first."""
    found: set[str] = set()
    for options in tables:
        with contextlib.suppress(ConfigError):
            options = with_secrets(options, environ)
        found.update(secrets_in(options))
    return tuple(sorted(found, key=lambda text: (-len(text), text)))


def clean(error: BaseException, secrets: Sequence[str]) -> None:
    """Hide secrets in the messages of an error and of its causes."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.args = tuple(without(arg, secrets) if isinstance(arg, str) else arg for arg in current.args)
        waiting += [current.__cause__, current.__context__]
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions


def _mapped(value: Any, path: tuple[str, ...], secret: bool, change: Change) -> Any:
    if isinstance(value, str):
        if secret:
            return change(path, value)
        if (table := _table(value)) is not None:
            changed = _mapped(table, path, secret, change)
            return value if changed == table else json.dumps(changed)
        ours = value.startswith(f"env:{PREFIX}")  # replaces a whole address
        return change(path, value) if ours or _is_telling_address(value) else value
    if isinstance(value, Mapping):
        # Only tables named env or headers are confidential: a game may have an option env.
        inside = secret or path[-1].rpartition(".")[2].lower() in _TABLES
        return {k: _mapped(v, (*path, str(k)), inside or _is_name(str(k)), change) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return _mapped_list(value, path, secret, change)
    return value


def _mapped_list(items: Sequence[Any], path: tuple[str, ...], secret: bool, change: Change) -> list[Any]:
    made: list[Any] = []
    follows = False
    for index, item in enumerate(items):
        here = (*path, str(index))
        flag = _FLAG.fullmatch(item) if isinstance(item, str) else None
        if flag is not None and flag[2] is not None:
            made.append(f"{flag[1]}={change(here, flag[2])}")
        else:
            made.append(_mapped(item, here, secret or follows, change))
        follows = flag is not None and flag[2] is None
    return made


def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name.rpartition(".")[2]) is not None


def _table(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_telling_address(text: str) -> bool:
    if not text.startswith(("http://", "https://")):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    telling = any(_QUERY.search(name) for name, _ in parse_qsl(parts.query, keep_blank_values=True))
    return bool(parts.username or parts.password or telling)


def _reference(path: tuple[str, ...], text: str) -> str:
    if not text or _WHOLE.fullmatch(text):
        return text
    if _INSIDE.search(text) and (_HARMLESS.fullmatch(_INSIDE.sub("", text)) or _is_telling_address(text)):
        return text
    return f"env:{_kept(path)}"


def _kept(path: tuple[str, ...]) -> str:
    return PREFIX + re.sub(r"[^A-Z0-9]+", "_", "_".join(path).upper()).strip("_")


def _variable(name: str, path: tuple[str, ...], environ: Mapping[str, str]) -> str:
    if name in environ:
        return environ[name]
    option = ".".join(path)
    if name.startswith(PREFIX):
        raise ConfigError(
            f"The value of the option {option} was not recorded because it is confidential; "
            f"set the environment variable {name} to it and try again. Values given as env:NAME are read automatically."
        )
    raise ConfigError(f"The option {option} refers to the environment variable {name}, which is not set; set it.")


def _parts(text: str) -> list[str]:
    """Return a secret and its parts that could appear alone: the text after "Bearer", a password."""
    parts = [text, text.partition(" ")[2].strip()]
    if _is_telling_address(text):
        address = urlsplit(text)
        parts += [address.password or "", unquote(address.password or ""), address.query]
        parts += [value for _, value in parse_qsl(address.query)]
    return parts
