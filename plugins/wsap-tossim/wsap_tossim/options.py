"""What a user can set for a game: mode, roles, rules, names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from wsap_core.errors import ConfigError
from wsap_tossim.engine.rules import RuleSet, rule_set
from wsap_tossim.engine.setups import Setup, setup
from wsap_tossim.names import checked_names, default_names

__all__ = ["TownOptions", "seats_of"]

_SWITCHES = tuple(f.name for f in fields(RuleSet) if f.name not in ("name", "version"))


@dataclass(frozen=True)
class TownOptions:
    """The options of one world."""

    setup: Setup
    rules: RuleSet
    names: tuple[str, ...]
    tool_calls: int
    """Tools that a player may use in one turn."""
    watch: str
    """What onlookers see: "public" or "all"."""

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> TownOptions:
        """Return the options that a user gave.

        `mode` (classic), `roles` (a list of one's own), `rules` (classic), `names`, `tool_calls` (8), `watch`
        (public), and every switch of the rule set by its name (`nomination_rounds=2`).

        Raises:
            ConfigError: one of them can't be; the message says which and why.
        """
        chosen = setup(str(config.get("mode", "classic")), _words(config.get("roles")))
        given = {name: config[name] for name in _SWITCHES if name in config}
        rules = rule_set(str(config.get("rules", "classic")), given)
        count = len(chosen.slots)
        words = _words(config.get("names"))
        names = checked_names(words, count) if words else default_names(count)
        calls = config.get("tool_calls", 8)
        if not isinstance(calls, int) or isinstance(calls, bool) or not 0 <= calls <= 50:
            raise ConfigError(f"The option tool_calls={calls!r} must be a whole number from 0 to 50.")
        watch = config.get("watch", "public")
        if watch not in ("public", "all"):
            raise ConfigError(f"The option watch={watch!r} can be public or all.")
        return cls(chosen, rules, names, calls, str(watch))


def seats_of(options: Mapping[str, Any]) -> int:
    """Return how many players a game with these options has.

    Raises:
        ConfigError: the options can't be.
    """
    return len(setup(str(options.get("mode", "classic")), _words(options.get("roles"))).slots)


def _words(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple(str(word) for word in value)
    return tuple(word.strip() for word in str(value).split(","))
