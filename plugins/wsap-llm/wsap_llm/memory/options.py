"""Reading and checking the options of memories and tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wsap_core.errors import ConfigError
from wsap_core.protocol.values import JsonValue


def check_known(what: str, config: Mapping[str, JsonValue], known: Iterable[str]) -> None:
    """Refuse options that are not known. Raises ConfigError if there is one; the message lists those there are."""
    names = tuple(known)
    for name in config:
        if name not in names:
            listed = ", ".join(names) if names else "none"
            raise ConfigError(f"The {what} has no option {str(name)[:60]!r}; its options: {listed}.")


def whole(what: str, config: Mapping[str, JsonValue], name: str, default: int, *, low: int, high: int) -> int:
    """Return an option that is a whole number; text such as "5" is read as one. Raises ConfigError if it is something
    else, or out of bounds."""
    value = config.get(name, default)
    if isinstance(value, str):
        try:
            value = int(value)
        except ValueError:
            value = None
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise ConfigError(f"The option {name} of the {what} must be a whole number from {low} to {high}.")
    return value


def text(what: str, config: Mapping[str, JsonValue], name: str) -> str | None:
    """Return an option that is text, or None where it is not given. Raises ConfigError if it is something else, or
    empty."""
    value = config.get(name)
    if value is not None and (not isinstance(value, str) or not value):
        raise ConfigError(f"The option {name} of the {what} must be text.")
    return value
