"""The options of a game: mode, roles, rules, names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from wsap_core.errors import ConfigError
from wsap_core.protocol.values import JsonValue
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import sanitize
from wsap_tossim.engine.data.model import Choice
from wsap_tossim.engine.data.rules import RuleSet, rule_set
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.setups import Setup, setup
from wsap_tossim.history import History
from wsap_tossim.names import checked_names, default_names

__all__ = ["TownOptions", "seat_name", "variant"]

_SWITCHES = {f.name: isinstance(f.default, bool) for f in fields(RuleSet) if f.name not in ("name", "version")}
"""Switch of the rule set -> whether it is boolean."""
_FLAGS = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_OF_A_GAME = ("mode", "roles", "rules", "names", *_SWITCHES)
"""Options that `past` determines."""


@dataclass(frozen=True)
class TownOptions:
    """The options of one world."""

    setup: Setup
    rules: RuleSet
    names: tuple[str, ...]
    tool_calls: int
    """Maximum tool calls of a player per turn."""
    watch: str
    """The view of spectators: "public" or "all"."""
    own_summaries: bool = False
    """Whether players are reminded to summarise each day in their own words."""
    history: History | None = None
    """The history that every game of the world continues, if any."""

    @property
    def given(self) -> Mapping[int, Choice]:
        """Forced choices in the first round of a game, by player."""
        return {} if self.history is None else self.history.given

    def begin(self, seed: int) -> Game:
        """Return a new game; one with a history ignores the seed."""
        return Game(self.setup, self.rules, seed) if self.history is None else self.history.game.fork()

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> TownOptions:
        """Return the options that a user gave.

        `mode` (classic), `roles` (a custom list), `rules` (classic), `names`, `tool_calls` (8), `watch` (public),
        `own_summaries` (false), and every switch of the rule set by its name (`nomination_rounds=2`). `past`, the
        history of a game to continue, replaces mode, roles, rules, names and switches.

        Raises:
            ConfigError: an option is unknown or invalid.
        """
        history = _history(config)
        if history is not None:
            chosen, rules, names = history.game.setup, history.game.rules, history.names
        else:
            chosen = setup(str(config.get("mode", "classic")), _words(config.get("roles")))
            given = {
                name: _as_flag(config[name]) if flag else config[name]
                for name, flag in _SWITCHES.items()
                if name in config
            }
            rules = rule_set(str(config.get("rules", "classic")), given)
            count = len(chosen.slots)
            words = _words(config.get("names"))
            names = checked_names(words, count) if words else default_names(count)
        calls = config.get("tool_calls", 8)
        if not isinstance(calls, int) or isinstance(calls, bool) or not 0 <= calls <= 50:
            raise ConfigError(f"The option tool_calls={calls!r} must be a whole number from 0 to 50.")
        watch = config.get("watch", "public")
        if watch not in ("public", "all"):
            raise ConfigError(f"The option watch={watch!r} must be public or all.")
        own = _as_flag(config.get("own_summaries", False))
        if not isinstance(own, bool):
            raise ConfigError(f"The option own_summaries={own!r} must be yes or no.")
        _known(config)
        return cls(chosen, rules, names, calls, str(watch), own, history)


def _history(config: Mapping[str, Any]) -> History | None:
    text = config.get("past")
    if text is None:
        return None
    for name in config:
        if name in _OF_A_GAME:
            raise ConfigError(f"The option past already determines the game; leave out {name}.")
    return History.from_option(text)


def _known(config: Mapping[str, Any]) -> None:
    """Refuse unknown options, suggesting similar ones.

    Raises:
        ConfigError: an option is unknown.
    """
    known = ("mode", "roles", "rules", "names", "tool_calls", "watch", "own_summaries", "past", *_SWITCHES)
    for name in config:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=1)
            meant = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(known)}."
            raise ConfigError(f"ToSSim has no option {sanitize(str(name), 40)!r}.{meant}")


def seat_name(number: int) -> str:
    """Return the seat name of a player."""
    return f"player-{number + 1}"


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the town's spec with a seat for each player under these options.

    Raises:
        ConfigError: an option is invalid.
    """
    history = _history(options)
    if history is not None:
        players = len(history.names)
    else:
        players = len(setup(str(options.get("mode", "classic")), _words(options.get("roles"))).slots)
    return replace(spec, seats=(players, players), seat_names=spec.seat_names[:players])


def _as_flag(value: JsonValue) -> JsonValue:
    """Return a typed yes or no as a boolean, and anything else unchanged."""
    return _FLAGS.get(value.strip().casefold(), value) if isinstance(value, str) else value


def _words(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple(str(word) for word in value)
    return tuple(word.strip() for word in str(value).split(","))
