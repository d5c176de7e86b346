"""The options of the world `morrowind`, and what they make of its spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from wsap_core.errors import ConfigError
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_tes3mp.world.catalogue import MOST_SEATS

# Any, in this module: options have every kind of value.
ENGINES = ("simulated", "tes3mp")


@dataclass(frozen=True)
class WorldOptions:
    """The options, checked."""

    engine: str = "simulated"
    bridge: str = ""
    token: str = ""
    address: str = ""
    agent: str = ""
    seats: int = 1
    length: int = 0
    quests: int = 0
    log: str = ""
    episode: str = ""
    patience: float = 60.0

    @property
    def live(self) -> bool:
        """Whether the world goes on by its own clock, in a process that can't be rewound."""
        return bool(self.bridge) or self.engine != "simulated"

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> WorldOptions:
        """Return the options that were given.

        Raises:
            ConfigError: one can't be.
        """
        engine, bridge = _text(given, "engine") or "simulated", _text(given, "bridge")
        if engine not in ENGINES:
            raise ConfigError(f"The option engine={engine!r} must be one of {', '.join(ENGINES)}.")
        if bridge and (urlsplit(bridge).scheme not in ("http", "https") or not urlsplit(bridge).netloc):
            raise ConfigError(f"The option bridge={bridge!r} must be a URL such as http://127.0.0.1:8765.")
        if bridge and given.get("engine") is not None:
            raise ConfigError("Give the option bridge or engine, not both: a bridge has an engine of its own.")
        live = bool(bridge) or engine != "simulated"
        seats = _whole(given, "seats", 1, 1, MOST_SEATS)
        if live and seats > 1:
            raise ConfigError("The option seats is for the embedded world; a live one is played by one agent a run.")
        return cls(
            engine,
            bridge.rstrip("/"),
            _text(given, "token"),
            _text(given, "address"),
            _text(given, "agent"),
            seats,
            _whole(given, "length", 0 if live else 500, 0, 10**9),
            _whole(given, "quests", 0 if live else 2, 0, 100),
            _text(given, "log"),
            _text(given, "episode"),
            float(_whole(given, "patience", 60, 1, 3600)),
        )


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec of the world that the options describe: its seats, and whether it is live."""
    read = WorldOptions.read(options)
    abilities: Any = tuple(a for a in spec.abilities if a != "multi-seat" or read.seats > 1)
    if read.live:
        abilities = (*(a for a in abilities if a not in ("seed", "snapshot")), "live")
    return replace(spec, abilities=abilities, seats=(read.seats, read.seats), persistent=read.live)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if value is None:
        return ""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ConfigError(f"The option {name}={single_line(value)[:60]!r} must be text.")
    return str(value).strip()


def _whole(given: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = given.get(name, default)
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if not isinstance(number, int) or isinstance(number, bool) or not low <= number <= high:
        raise ConfigError(f"The option {name}={single_line(value)[:60]!r} must be a whole number from {low} to {high}.")
    return number
