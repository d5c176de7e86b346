"""The protocol's types: frozen dataclasses that every game, agent and runtime shares.

They follow the Wild Spaces Agent Protocol specification name by name. They are plain
dataclasses, because a single observation holds a hundred of them; what comes from outside
the process is validated by `wsap_core.protocol.wire`, not here.
"""

from __future__ import annotations

from wsap_core.protocol.actions import TOOL, Action, ActionDef, ActionResult, ActionSpace, ParamDef
from wsap_core.protocol.availability import ActionAvailability, Possible
from wsap_core.protocol.avatars import (
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
from wsap_core.protocol.base import Part
from wsap_core.protocol.memory import HistoryEntry, Memory, Tool
from wsap_core.protocol.observation import Achievement, AgentMessage, Effect, Event, Goal, Observation
from wsap_core.protocol.spatial import Entity, Location, Terrain
from wsap_core.protocol.ticks import Tick
from wsap_core.protocol.transit import (
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
from wsap_core.protocol.views import (
    Block,
    ChatBlock,
    ChatLine,
    GridMapBlock,
    ImageBlock,
    PlaceGraphBlock,
    Selection,
    TableBlock,
    TextBlock,
    TimelineBlock,
    TimelineEntry,
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
    "Selection",
    "TableBlock",
    "Terrain",
    "TextBlock",
    "Tick",
    "TimelineBlock",
    "TimelineEntry",
    "Tool",
    "TransferRule",
    "TransitPackage",
    "View",
]
