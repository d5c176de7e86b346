"""Bridge payloads beside perceptions and commands: the status (seed 001, section 5.3) and the additions of 1.1.0."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from wsap_tes3mp.protocol.errors import PROTOCOL_VERSION
from wsap_tes3mp.protocol.perception import InventoryItem, Moment, Name, Payload

LeaveMode = Literal["dormant", "suspend", "despawn"]
"""What happens to a body when its agent leaves: it sleeps in the world, disappears until the agent returns, or is
deleted."""

LONGEST_ID = 190
"""Most characters of the id of an agent that joins; others see its body under an id that is a little longer."""


class BridgeStatus(Payload):
    """The state of the bridge and its engine."""

    bridge_connected: bool
    engine: Name
    protocol_version: str = PROTOCOL_VERSION
    uptime_seconds: Annotated[float, Field(ge=0)]
    last_perception_at: Moment | None = None
    # 1.1.0
    boot_id: str | None = None
    agents: tuple[Name, ...] | None = None
    abilities: tuple[str, ...] | None = None
    """Optional features of the engine: see `wsap_tes3mp.engines.engine.EngineAbility`."""


class AgentInfo(Payload):
    """1.1.0: an agent with a body in the engine."""

    agent_id: Name
    name: Name
    connected: bool
    """Whether the body is in the world now."""
    dead: bool = False
    embodiment: str = "avatar"
    """`avatar` or `companion`."""
    busy: str | None = None
    """The id of the running command."""


class AgentList(Payload):
    """1.1.0: all agents with bodies."""

    agents: tuple[AgentInfo, ...]


class JoinRequest(Payload):
    """1.1.0: a request for a body, new or asleep."""

    agent_id: Annotated[str, Field(min_length=1, max_length=LONGEST_ID)]
    name: Name | None = None
    embodiment: Literal["avatar", "companion"] = "avatar"


class ItemsRequest(Payload):
    """1.1.0: items to add to an inventory and to remove from it; applied once per transfer id."""

    transfer_id: Name
    give: tuple[InventoryItem, ...] = ()
    take: tuple[InventoryItem, ...] = ()


class ItemsReceipt(Payload):
    """1.1.0: the items that were actually transferred."""

    transfer_id: Name
    given: tuple[InventoryItem, ...] = ()
    taken: tuple[InventoryItem, ...] = ()
