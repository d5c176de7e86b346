"""The other payloads of a bridge: its status (seed 001, section 5.3), and our additions of 1.1.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field

from wsap_tes3mp.protocol.errors import PROTOCOL_VERSION
from wsap_tes3mp.protocol.perception import InventoryItem, Name, Payload

LeaveMode = Literal["dormant", "suspend", "despawn"]
"""How an agent leaves its body: it sleeps in the world, vanishes until it is wanted again, or is gone."""


class BridgeStatus(Payload):
    """Whether the bridge and its engine are well."""

    bridge_connected: bool
    engine: Name
    protocol_version: str = PROTOCOL_VERSION
    uptime_seconds: Annotated[float, Field(ge=0)]
    last_perception_at: AwareDatetime | None = None
    # 1.1.0
    boot_id: str | None = None
    agents: tuple[Name, ...] | None = None
    abilities: tuple[str, ...] | None = None
    """What the engine can do besides: see `wsap_tes3mp.engines.engine.EngineAbility`."""


class AgentInfo(Payload):
    """1.1.0: an agent that the engine has a body for."""

    agent_id: Name
    name: Name
    connected: bool
    """Whether the body is in the world now."""
    dead: bool = False
    embodiment: str = "avatar"
    """`avatar` or `companion`."""
    busy: str | None = None
    """The id of the command that is running."""


class AgentList(Payload):
    """1.1.0: the agents that there are bodies for."""

    agents: tuple[AgentInfo, ...]


class JoinRequest(Payload):
    """1.1.0: an agent wants a body, or its sleeping one back."""

    agent_id: Name
    name: Name | None = None
    embodiment: Literal["avatar", "companion"] = "avatar"


class ItemsRequest(Payload):
    """1.1.0: items that enter a body's inventory, or leave it; done once per transfer id."""

    transfer_id: Name
    give: tuple[InventoryItem, ...] = ()
    take: tuple[InventoryItem, ...] = ()
    bonuses: Mapping[str, Any] = Field(default_factory=dict)
    """Skill domain -> level from 0 to 1 that the body starts with. Any: JSON."""


class ItemsReceipt(Payload):
    """1.1.0: what of it was done."""

    transfer_id: Name
    given: tuple[InventoryItem, ...] = ()
    taken: tuple[InventoryItem, ...] = ()
