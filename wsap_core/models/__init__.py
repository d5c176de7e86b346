"""The protocol's types: frozen dataclasses that every game, agent and runtime shares.

They follow the Wild Spaces Agent Protocol specification name by name. They are plain
dataclasses, because a single observation holds a hundred of them; what comes from outside
the process is validated by `wsap_core.wire`, not here.
"""

from __future__ import annotations

from wsap_core.models.actions import (
    TOOL,
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    ActionSpace,
    ParamDef,
)
from wsap_core.models.availability import Possible
from wsap_core.models.avatars import (
    AVATAR_ACTIONS,
    Avatar,
    AvatarRoster,
    AvatarSpec,
    AvatarState,
    DeathEvent,
    EmbodiedObservation,
    JackInResult,
    JackOutResult,
    RespawnOption,
)
from wsap_core.models.base import Part
from wsap_core.models.goals import Achievement, Goal
from wsap_core.models.minds import AgentMessage, HistoryEntry, Memory, Tool
from wsap_core.models.observation import Effect, Event, Observation
from wsap_core.models.spatial import Entity, Location, Terrain
from wsap_core.models.transit import (
    BONUS_KINDS,
    ITEM_CATEGORIES,
    SKILL_DOMAINS,
    TOP_TIER,
    Bonus,
    Entry,
    PortableItem,
    Receipt,
    TransferRule,
    TransitPackage,
)
from wsap_core.models.views import (
    Block,
    ChatBlock,
    ChatLine,
    GridMapBlock,
    ImageBlock,
    PlaceGraphBlock,
    TableBlock,
    TextBlock,
    View,
)

__all__ = [
    "AVATAR_ACTIONS",
    "BONUS_KINDS",
    "ITEM_CATEGORIES",
    "SKILL_DOMAINS",
    "TOOL",
    "TOP_TIER",
    "Achievement",
    "Action",
    "ActionAvailability",
    "ActionDef",
    "ActionResult",
    "ActionSpace",
    "AgentMessage",
    "Avatar",
    "AvatarRoster",
    "AvatarSpec",
    "AvatarState",
    "Block",
    "Bonus",
    "ChatBlock",
    "ChatLine",
    "DeathEvent",
    "Effect",
    "EmbodiedObservation",
    "Entity",
    "Entry",
    "Event",
    "Goal",
    "GridMapBlock",
    "HistoryEntry",
    "ImageBlock",
    "JackInResult",
    "JackOutResult",
    "Location",
    "Memory",
    "Observation",
    "ParamDef",
    "Part",
    "PlaceGraphBlock",
    "PortableItem",
    "Possible",
    "Receipt",
    "RespawnOption",
    "TableBlock",
    "Terrain",
    "TextBlock",
    "Tool",
    "TransferRule",
    "TransitPackage",
    "View",
]
