"""The options that a user gave, with a record of those that were read, so that misspelt ones are reported."""

from __future__ import annotations

import difflib
import re
import sys
from collections import ChainMap
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from wsap_core.errors import ConfigError
from wsap_core.specs import OptionDef
from wsap_core.untrusted import single_line


class Options(Mapping[str, Any]):
    """A mapping of options that records which names were read."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self._asked: set[str] = set()
        self._all = False

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        self._all = True
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def given(self) -> frozenset[str]:
        """The names that the user gave."""
        return frozenset(self._values)

    @property
    def asked(self) -> frozenset[str]:
        """The names that were read; all of them after an iteration."""
        return frozenset(self._asked | set(self._values)) if self._all else frozenset(self._asked)


def with_prefix(options: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the options whose names start with a prefix; of `Options`, only these count as read."""
    layers = options.maps if isinstance(options, ChainMap) else (options,)
    names = {name for layer in layers for name in (layer.given if isinstance(layer, Options) else layer)}
    return {name: options[name] for name in sorted(names) if name.startswith(prefix)}


_YES = {True: True, "yes": True, "true": True, False: False, "no": False, "false": False}


def read_option(known: OptionDef, value: Any) -> Any:
    """Return a given value as the declared type (int, bool or str); `ConfigError` if it is invalid or out of range."""
    found: Any = None
    if known.values == "yes|no":
        wanted, found = "yes or no", _YES.get(value) if isinstance(value, str | int) else None
    elif span := re.fullmatch(r"(\d+)(?:-(\d+)| or more)", known.values):
        low, high = int(span[1]), int(span[2] or sys.maxsize)
        wanted = f"a whole number from {low} to {high}" if span[2] else f"a whole number of at least {low}"
        with suppress(ValueError):
            number = int(value) if isinstance(value, str) else value
            found = number if type(number) is int and low <= number <= high else None
    else:
        wanted, found = "a name", (value.strip() or None) if isinstance(value, str) else None
    if found is None:
        raise ConfigError(f"The option {known.name}={single_line(value)[:60]!r} must be {wanted}.")
    return found


def check_used(owner: str, *options: Options) -> None:
    """Raise `ConfigError` if an option was never read, for instance misspelt; call it when the owners have been
    created. Of several owners with the same options, one must have read it. The message names the `owner`."""
    asked = sorted({name for each in options for name in each.asked})
    unused = sorted({name for each in options for name in each.given} - set(asked))
    if not unused:
        return
    near = difflib.get_close_matches(unused[0], asked, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"It takes: {', '.join(asked) or 'none'}."
    raise ConfigError(f"{owner} has no option {unused[0]!r}. {hint}")
