"""Reading the options of memories and tools from a table of what there is."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from wsap_core.errors import ConfigError
from wsap_core.protocol.values import JsonValue
from wsap_llm.option_table import Range


def read_options(what: str, config: Mapping[str, JsonValue], known: Mapping[str, Range | None]) -> dict[str, JsonValue]:
    """Return the value of each known option: a whole number, which may be given as text, or text (None in the table),
    which is None where it is not given.

    Raises ConfigError if an option is not known (the message lists those there are), of another kind, or out of bounds.
    """
    found: dict[str, JsonValue] = {}
    for name in config:
        if name not in known:
            listed = ", ".join(known)
            raise ConfigError(f"The {what} has no option {str(name)[:60]!r}; its options: {listed}.")
    for name, kind in known.items():
        found[name] = value = config.get(name, None if kind is None else kind.default)
        if kind is None:
            if value is not None and (not isinstance(value, str) or not value):
                raise ConfigError(f"The option {name} of the {what} must be text.")
            continue
        with contextlib.suppress(ValueError):
            found[name] = value = int(value) if isinstance(value, str) else value
        if not isinstance(value, int) or isinstance(value, bool) or not kind.low <= value <= kind.high:
            raise ConfigError(f"The option {name} of the {what} must be a whole number from {kind.low} to {kind.high}.")
    return found
