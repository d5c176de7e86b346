"""Perceptions: `PerceptionOutput` (seed 001, section 3), with the optional additions of 1.1.0.

Unknown fields are ignored and unknown entity types accepted, so that bridges of newer minor versions can be read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from wsap_core.protocol.wire import dumps
from wsap_tes3mp.protocol.errors import PROTOCOL_VERSION

Name = Annotated[str, Field(min_length=1, max_length=200)]
"""An id or a name."""
Number = Annotated[float, Field(allow_inf_nan=False)]
ENTITY_TYPES = ("npc", "creature", "item", "door", "container")
"""The seed's vocabulary; engines may add types."""
OPAQUE = {"raw_engine_data", "boot_id"}
"""Fields of a perception that no decision may depend on."""
Fidelity = Literal["observed", "derived", "unavailable"]
"""How an engine knows a value: from the game, inferred from events, or not at all."""


def _read_moment(value: object) -> datetime:
    if isinstance(value, datetime) or (isinstance(value, str) and _DATE.match(value)):
        with suppress(ValidationError):
            return _AWARE.validate_python(value)
    raise ValueError("a timestamp is a text with a time zone, such as 2026-03-21T14:30:00Z")


_AWARE = TypeAdapter[datetime](AwareDatetime)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]")
Moment = Annotated[AwareDatetime, BeforeValidator(_read_moment)]
"""A timestamp in RFC 3339, never a number."""


class Payload(BaseModel):
    """Base of all payloads: frozen, finite numbers only, unknown fields ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    @classmethod
    def exactly(cls, data: JsonValue) -> Self:
        """Return a payload from JSON-ready data, as strictly as its JSON Schema: no number is made of a text.

        Raises:
            pydantic.ValidationError: it does not fit.
            WireError: it is no JSON.
        """
        return cls.model_validate_json(dumps(_whole(data)), strict=True)


def _whole(data: JsonValue) -> JsonValue:
    """Return data with 2.0 as 2: for JSON Schema both are whole numbers, and every whole number is a number."""
    if isinstance(data, dict):
        return {key: _whole(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_whole(value) for value in data]
    return int(data) if isinstance(data, float) and data.is_integer() else data


class Location(Payload):
    """The agent's position."""

    cell: Name
    x: Number
    y: Number
    z: Number
    interior: bool


class Health(Payload):
    """The agent's health."""

    current: Annotated[int, Field(ge=0)]
    max: Annotated[int, Field(gt=0)]

    @model_validator(mode="after")
    def _within(self) -> Health:
        if self.current > self.max:
            raise ValueError(f"current health {self.current} is above its maximum {self.max}")
        return self


class NearbyEntity(Payload):
    """Somebody or something within the perception radius."""

    entity_id: Name
    name: Name
    entity_type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
    distance: Annotated[float, Field(ge=0)]
    disposition: Annotated[int, Field(ge=0, le=100)] | None = None
    """Its attitude to the agent; None if it has none or the engine can't know."""


class InventorySummary(Payload):
    """Totals of what the agent carries."""

    gold: Annotated[int, Field(ge=0)]
    item_count: Annotated[int, Field(ge=0)]
    encumbrance_pct: Annotated[float, Field(ge=0)]
    """Carried weight divided by capacity; above 1 the agent is overloaded."""


class ActiveQuest(Payload):
    """A quest in progress."""

    quest_id: Name
    name: Name
    stage: Annotated[int, Field(ge=0)]


class Environment(Payload):
    """The state of the world around the agent."""

    time_of_day: Name
    weather: Name
    is_combat: bool
    is_dialogue: bool


class InventoryItem(Payload):
    """1.1.0: one kind of item in the inventory."""

    item_id: Name
    name: Name
    count: Annotated[int, Field(ge=1)]
    equipped: bool = False


class OpenDialogue(Payload):
    """1.1.0: the open dialogue."""

    entity_id: Name
    text: Annotated[str, Field(max_length=4000)] = ""
    """The last thing said."""
    topics: tuple[Name, ...] = ()
    choices: tuple[Annotated[str, Field(max_length=400)], ...] = ()
    """Answers, picked by `choice_idx` from 0; empty while topics are open."""


class PerceptionOutput(Payload):
    """One snapshot of the world as one agent perceives it."""

    protocol_version: str = PROTOCOL_VERSION
    timestamp: Moment
    agent_id: Name
    location: Location
    health: Health
    nearby_entities: tuple[NearbyEntity, ...]
    inventory_summary: InventorySummary
    active_quests: tuple[ActiveQuest, ...]
    environment: Environment
    raw_engine_data: Mapping[str, Any] = Field(default_factory=dict)
    """Opaque; nothing depends on it. Any: JSON."""
    # 1.1.0: optional; None if the engine can't know.
    boot_id: str | None = None
    """Identifies one run of the engine; sequence numbers of different boots can't be compared."""
    sequence: Annotated[int, Field(ge=0)] | None = None
    """Increases within a boot whenever the agent's perception changes."""
    inventory: tuple[InventoryItem, ...] | None = None
    reach: Annotated[float, Field(gt=0)] | None = None
    """The distance up to which things can be used, people talked to and foes fought."""
    dialogue: OpenDialogue | None = None
    """None if none is open or the engine can't know; `fidelity` says which."""
    completed_quests: tuple[ActiveQuest, ...] | None = None
    fidelity: Mapping[str, Fidelity] | None = None
    """How the engine knows a field (a dotted path such as `environment.is_combat`) or performs a command
    (`command.dialogue`); anything not listed is observed."""
