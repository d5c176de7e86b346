"""Options as a user gave them, which remember what was asked for, so that a misspelt one can be told."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from wsap_core.errors import ConfigError


class Options(Mapping[str, Any]):
    """A mapping of options that notes which names were looked up.

    Args:
        values: what the user gave.
    """

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

    def check_used(self, owner: str) -> None:
        """Refuse options that nobody asked for; call it once their owner is made.

        Args:
            owner: who the options were for, as it is named in the message.

        Raises:
            ConfigError: an option was never looked up, so it does nothing.
        """
        unused = [] if self._all else sorted(set(self._values) - self._asked)
        if not unused:
            return
        near = difflib.get_close_matches(unused[0], sorted(self._asked), n=1)
        known = ", ".join(sorted(self._asked)) or "none"
        hint = f"Did you mean {near[0]!r}?" if near else f"It takes: {known}."
        raise ConfigError(f"{owner} has no option {unused[0]!r}. {hint}")
