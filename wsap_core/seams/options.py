"""Options as a user gave them, which remember what was asked for, so that a misspelt one can be told."""

from __future__ import annotations

import difflib
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Any

from wsap_core.errors import ConfigError


class Options(Mapping[str, Any]):
    """The options that a user gave, which note the names that were looked up."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)
        self._asked: set[str] = set()
        self._all = False

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        self._asked.add(str(name))
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        # Who goes through all of them has seen all of them.
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
        """The names that were looked up; all of them once somebody went through them all."""
        return frozenset(self._asked | set(self._values)) if self._all else frozenset(self._asked)


def with_prefix(options: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the options whose names begin so; of `Options`, only these count as looked up."""
    layers = options.maps if isinstance(options, ChainMap) else (options,)
    names = {name for layer in layers for name in (layer.given if isinstance(layer, Options) else layer)}
    return {name: options[name] for name in sorted(names) if name.startswith(prefix)}


def check_used(owner: str, *options: Options) -> None:
    """Refuse options that nobody asked for; call it once their owners, named `owner` in the message, are made.

    Where several owners were given the same options, one of them has to ask.

    Raises:
        ConfigError: an option was never looked up, so it does nothing.
    """
    asked = sorted({name for each in options for name in each.asked})
    unused = sorted({name for each in options for name in each.given} - set(asked))
    if not unused:
        return
    near = difflib.get_close_matches(unused[0], asked, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"It takes: {', '.join(asked) or 'none'}."
    raise ConfigError(f"{owner} has no option {unused[0]!r}. {hint}")
