"""The options of the world `morrowind`, and their effect on its spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError

from wsap_core.errors import ConfigError
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_tes3mp.world.catalogue import MOST_SEATS


class WorldOptions(BaseModel, frozen=True, coerce_numbers_to_str=True, str_strip_whitespace=True):
    """The options, checked; see `OPTIONS` of the catalogue."""

    engine: Literal["simulated", "tes3mp"] = "simulated"
    bridge: Annotated[str, Field(pattern=r"^(https?://[^/].*)?$")] = ""
    token: str = ""
    address: str = ""
    agent: str = ""
    seats: Annotated[int, Field(ge=1, le=MOST_SEATS)] = 1
    length: Annotated[int, Field(ge=0, le=10**9)] = 500
    quests: Annotated[int, Field(ge=0, le=100)] = 2
    log: str = ""
    episode: str = ""
    patience: Annotated[float, Field(ge=1, le=3600)] = 60.0

    @property
    def live(self) -> bool:
        """Whether the world runs by its own clock and can't be rewound."""
        return bool(self.bridge) or self.engine != "simulated"

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> WorldOptions:
        """Return the given options (Any: of every kind); `ConfigError` if one is invalid."""
        values = {name: given[name] for name in cls.model_fields if given.get(name) not in (None, "")}
        try:
            found = cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            option = f"{first['loc'][0]}={single_line(first['input'])[:60]!r}"
            raise ConfigError(f"The option {option} is invalid: {single_line(first['msg'])}.") from None
        if found.bridge and "engine" in values:
            raise ConfigError("Give the option bridge or engine, not both: a bridge has its own engine.")
        if found.live and found.seats > 1:
            raise ConfigError("The option seats is for the embedded world; a run in a live world has one agent.")
        idle = ("address", "log") if found.bridge else () if found.live else ("address", "token", "agent", "patience")
        if unused := next((name for name in idle if name in values), None):
            where = "with the option bridge" if found.bridge else "in the embedded world"
            raise ConfigError(f"The option {unused} has no effect {where}; leave it out.")
        endless = {"length": 0, "quests": 0} if found.live else {}
        return found.model_copy(update={**endless, **found.model_dump(include=found.model_fields_set)})


def variant(spec: AdapterSpec, options: Mapping[str, Any]) -> AdapterSpec:
    """Return the spec of the world described by the options: its seats, and whether it is live."""
    read = WorldOptions.read(options)
    abilities: Any = tuple(a for a in spec.abilities if a != "multi-seat" or read.seats > 1)
    if read.live:
        abilities = (*(a for a in abilities if a not in ("seed", "snapshot")), "irreversible")
    terms = {} if read.live else spec.terms
    return replace(spec, abilities=abilities, seats=(read.seats, read.seats), persistent=read.live, terms=terms)
