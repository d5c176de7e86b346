"""Perceptions: `PerceptionOutput` (seed 001, section 3), with the optional additions of 1.1.0.

Unknown fields are ignored and unknown entity types accepted, so that bridges of newer minor versions can be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

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


class Payload(BaseModel):
    """Base of all payloads: frozen, finite numbers only, unknown fields ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)


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
    timestamp: AwareDatetime
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
    dialogue: OpenDialogue | None = None
    """None if none is open or the engine can't know; `fidelity` says which."""
    completed_quests: tuple[ActiveQuest, ...] | None = None
    fidelity: Mapping[str, Fidelity] | None = None
    """How the engine knows a field (a dotted path such as `environment.is_combat`) or performs a command
    (`command.dialogue`); anything not listed is observed."""
