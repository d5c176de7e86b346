"""The kernel of the Wild Spaces Agent Protocol: its types, hooks and seams.

Public names are imported when first used, so that `import wsap_core` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES: dict[str, str] = {
    **dict.fromkeys(
        [
            "AVATAR_ACTIONS",
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
            "ChatBlock",
            "ChatLine",
            "DeathEvent",
            "Effect",
            "EmbodiedObservation",
            "Entity",
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
            "Possible",
            "PlaceGraphBlock",
            "RespawnOption",
            "TableBlock",
            "Terrain",
            "TextBlock",
            "Tool",
            "View",
        ],
        "wsap_core.protocol",
    ),
    **dict.fromkeys(("AvatarGameAdapter", "GameAdapter"), "wsap_core.seams.game"),
    **dict.fromkeys(("Agent",), "wsap_core.seams.agent"),
    **dict.fromkeys(("Clock", "Context", "SystemClock", "derive_seed"), "wsap_core.seams.context"),
    **dict.fromkeys(
        [
            "AdapterSpec",
            "AgentSpec",
            "BackendSpec",
            "CommandSpec",
            "EpisodeSummary",
            "GameInfo",
            "MemorySpec",
            "ScoreMetric",
            "ToolSpec",
        ],
        "wsap_core.specs",
    ),
    **dict.fromkeys(("hookimpl",), "wsap_core.hookspecs"),
    **dict.fromkeys(("PluginHost",), "wsap_core.host"),
    **dict.fromkeys(("Codec",), "wsap_core.protocol.wire"),
    **dict.fromkeys(("PROTOCOL_VERSION",), "wsap_core.version"),
    **dict.fromkeys(("system_message", "user_message"), "wsap_core.protocol.text"),
    **dict.fromkeys(("MESSAGE_ACTIONS", "Barrier", "Mailbox", "Outcome", "Seat", "World"), "wsap_core.worlds"),
    **dict.fromkeys(("WsapError",), "wsap_core.errors"),
}

if TYPE_CHECKING:
    from wsap_core.errors import WsapError
    from wsap_core.hookspecs import hookimpl
    from wsap_core.host import PluginHost
    from wsap_core.protocol import (
        AVATAR_ACTIONS,
        Achievement,
        Action,
        ActionAvailability,
        ActionDef,
        ActionResult,
        ActionSpace,
        AgentMessage,
        Avatar,
        AvatarRoster,
        AvatarSpec,
        AvatarState,
        ChatBlock,
        ChatLine,
        DeathEvent,
        Effect,
        EmbodiedObservation,
        Entity,
        Event,
        Goal,
        GridMapBlock,
        HistoryEntry,
        ImageBlock,
        JackInResult,
        JackOutResult,
        Location,
        Memory,
        Observation,
        ParamDef,
        PlaceGraphBlock,
        Possible,
        RespawnOption,
        TableBlock,
        Terrain,
        TextBlock,
        Tool,
        View,
    )
    from wsap_core.protocol.text import system_message, user_message
    from wsap_core.protocol.wire import Codec
    from wsap_core.seams.agent import Agent
    from wsap_core.seams.context import Clock, Context, SystemClock, derive_seed
    from wsap_core.seams.game import AvatarGameAdapter, GameAdapter
    from wsap_core.specs import (
        AdapterSpec,
        AgentSpec,
        BackendSpec,
        CommandSpec,
        EpisodeSummary,
        GameInfo,
        MemorySpec,
        ScoreMetric,
        ToolSpec,
    )
    from wsap_core.version import PROTOCOL_VERSION
    from wsap_core.worlds import MESSAGE_ACTIONS, Barrier, Mailbox, Outcome, Seat, World

__all__ = [  # kept in step with _HOMES by a test
    "AVATAR_ACTIONS",
    "MESSAGE_ACTIONS",
    "PROTOCOL_VERSION",
    "Achievement",
    "Action",
    "ActionAvailability",
    "ActionDef",
    "ActionResult",
    "ActionSpace",
    "AdapterSpec",
    "Agent",
    "AgentMessage",
    "AgentSpec",
    "Avatar",
    "AvatarGameAdapter",
    "AvatarRoster",
    "AvatarSpec",
    "AvatarState",
    "BackendSpec",
    "Barrier",
    "ChatBlock",
    "ChatLine",
    "Clock",
    "Codec",
    "CommandSpec",
    "Context",
    "DeathEvent",
    "Effect",
    "EmbodiedObservation",
    "Entity",
    "EpisodeSummary",
    "Event",
    "GameAdapter",
    "GameInfo",
    "Goal",
    "GridMapBlock",
    "HistoryEntry",
    "ImageBlock",
    "JackInResult",
    "JackOutResult",
    "Location",
    "Mailbox",
    "Memory",
    "MemorySpec",
    "Observation",
    "Outcome",
    "ParamDef",
    "PlaceGraphBlock",
    "PluginHost",
    "Possible",
    "RespawnOption",
    "ScoreMetric",
    "Seat",
    "SystemClock",
    "TableBlock",
    "Terrain",
    "TextBlock",
    "Tool",
    "ToolSpec",
    "View",
    "World",
    "WsapError",
    "derive_seed",
    "hookimpl",
    "system_message",
    "user_message",
]


def __getattr__(name: str) -> Any:
    # Any: the names have every kind of type; type checkers read the imports above.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
