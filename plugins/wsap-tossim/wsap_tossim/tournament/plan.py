"""The plan of a tournament: which entrant plays which seat in which game, all from one seed.

Seats follow a Latin square (`wsap_eval.stats.square`): all games of a block have the same deal, that is, the same roles
at the same seats and the same random draws, and over a block each entrant plays every seat, role and faction once.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from wsap_core.errors import ConfigError
from wsap_core.seams.context import derive_seed
from wsap_core.untrusted import single_line
from wsap_eval.kit import drawn_places, square, turn_of
from wsap_tossim.engine.data.model import Role
from wsap_tossim.engine.setups import deal
from wsap_tossim.engine.victory import side_of
from wsap_tossim.options import TownOptions

__all__ = ["FEWEST", "MOST", "Entrant", "Fixture", "Settings", "entrants_of", "fixture"]

FEWEST, MOST = 2, 50
"""Bounds on the number of entrants."""
LONGEST_LABEL = 60
SEATINGS = ("mixed", "sides")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9_-]*/[^\s]+")
_NAMES = (
    *("Ada", "Ben", "Cleo", "Dov", "Edna", "Filip", "Greta", "Hugo", "Ines", "Jonas", "Kira", "Leon", "Mona"),
    *("Nils", "Olga", "Pavel", "Quinn", "Rita", "Sven", "Tilda"),
)
"""Default names of players."""


@dataclass(frozen=True)
class Entrant:
    """A participant of a tournament."""

    label: str
    """Its unique name in the report, on one line."""
    kind: str
    """`scripted`, `random` or `model`."""
    address: str = ""
    """Address of a model, such as `ollama/qwen3:8b`."""


def entrants_of(words: Sequence[str]) -> tuple[Entrant, ...]:
    """Return the named entrants, in this order.

    Args:
        words: each `scripted`, `random` or a model's address; a prefix `LABEL=` lets the same one take part twice.

    Raises:
        ConfigError: an entrant is invalid, two have the same label, or there are too few or too many.
    """
    if not FEWEST <= len(words) <= MOST:
        raise ConfigError(f"A tournament has {FEWEST} to {MOST} entrants, not {len(words)}.")
    found: list[Entrant] = []
    for word in words:
        label, equals, what = word.partition("=")
        if not equals:
            label, what = word, word
        label = single_line(label)
        if not 1 <= len(label) <= LONGEST_LABEL:
            raise ConfigError(f"The label {label[:LONGEST_LABEL]!r} has {len(label)} characters; a label has 1 to 60.")
        if label in [e.label for e in found]:
            raise ConfigError(f"Two entrants are called {label!r}; rename one: other={single_line(what)[:60]}.")
        if what in ("scripted", "random"):
            found.append(Entrant(label, what))
        elif _ADDRESS.fullmatch(what):
            found.append(Entrant(label, "model", what))
        else:
            raise ConfigError(
                f"{single_line(what)[:60]!r} is not an entrant; use scripted, random, or the address of a model, "
                "such as ollama/qwen3:8b."
            )
    return tuple(found)


@dataclass(frozen=True)
class Settings:
    """The settings that determine the games of a tournament."""

    entrants: tuple[Entrant, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    """Game options for `TownOptions.read`: mode, roles, rules and its switches, names."""
    seed: int = 0
    seating: str = "mixed"
    """`mixed`: seats are dealt to the entrants one by one. `sides`: one entrant plays a whole side."""
    model_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the model agents."""
    beliefs: bool = False
    """Whether models are asked for their beliefs after each game."""

    # raises ConfigError for invalid options, an API key among them included
    def __post_init__(self) -> None:
        if self.seating not in SEATINGS:
            raise ConfigError(f"The seating {self.seating!r} must be {' or '.join(SEATINGS)}.")
        TownOptions.read(self.options)
        if "model" in self.model_options:
            raise ConfigError("The entrants determine the models; leave --agent-option model=... out.")
        key = self.model_options.get("model.api_key")
        if key is not None and not str(key).startswith("env:"):
            raise ConfigError(
                "The settings of a tournament are stored, so they can't contain an API key; set it in the environment, "
                "and name the variable if it is not the default: --model-option api_key=env:NAME."
            )

    def to_json(self) -> dict[str, Any]:
        """Return the settings as stored; JSON-ready."""
        return {
            "entrants": [{"label": e.label, "kind": e.kind, "address": e.address} for e in self.entrants],
            "options": dict(self.options),
            "seed": self.seed,
            "seating": self.seating,
            "model_options": dict(self.model_options),
            "beliefs": self.beliefs,
        }


@dataclass(frozen=True)
class Fixture:
    """One planned game."""

    number: int
    """From 0."""
    block: int
    """The games of a block have the same deal."""
    seed: int
    """Seed of the deal and all random draws."""
    seats: tuple[int, ...]
    """Seat -> number of its entrant."""
    names: tuple[str, ...]
    """Seat -> name of its player."""
    decider_seeds: tuple[int, ...]
    """Seat -> seed of its player."""

    def has_models(self, entrants: Sequence[Entrant]) -> bool:
        """Return whether a model takes part in this game."""
        return any(entrants[e].kind == "model" for e in self.seats)


def fixture(settings: Settings, number: int) -> Fixture:
    """Return a game of a tournament, a function of the settings and its number."""
    many = len(settings.entrants)
    block, turn = turn_of(number, many)
    seed = derive_seed(settings.seed, "tournament", "deal", block)
    options = _read(_key(settings.options))
    roles = deal(options.setup, seed)
    lots = random.Random(f"{settings.seed}:seats:{block}")  # play, not secrets
    seats = square(_places(roles, settings.seating, lots), turn, many)
    naming = random.Random(f"{settings.seed}:names:{number}")  # as above
    pool = list(options.names if "names" in settings.options else _NAMES)
    naming.shuffle(pool)
    minds = tuple(derive_seed(settings.seed, "tournament", "mind", number, seat) for seat in range(len(roles)))
    return Fixture(number, block, seed, seats, tuple(pool[: len(roles)]), minds)


def _places(roles: Sequence[Role], seating: str, lots: random.Random) -> list[int]:
    """Return each seat's place in the block's order; seats with the same place go to the same entrant."""
    if seating == "mixed":
        return drawn_places(len(roles), lots)
    # players who win beside others are sides of their own
    sides = [side_of(role) or f"seat {n}" for n, role in enumerate(roles)]
    names = sorted(set(sides))
    lots.shuffle(names)
    return [names.index(one) for one in sides]


def _key(options: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in sorted(options.items()))


@lru_cache(maxsize=8)
def _read(options: tuple[tuple[str, Any], ...]) -> TownOptions:
    return TownOptions.read(dict(options))
