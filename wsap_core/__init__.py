"""The kernel of the Wild Spaces Agent Protocol: its types, hooks and seams.

Public names are imported on first use, so that `import wsap_core` is cheap; type checkers read `__init__.pyi`.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "wsap_core.errors": "WsapError",
    "wsap_core.hookspecs": "hookimpl",
    "wsap_core.host": "PluginHost",
    "wsap_core.protocol": """
        AVATAR_ACTIONS Achievement Action ActionAvailability ActionDef ActionResult ActionSpace AgentMessage
        Avatar AvatarRoster AvatarSpec AvatarState ChatBlock ChatLine DeathEvent Effect EmbodiedObservation
        Entity Event Goal GridMapBlock HistoryEntry ImageBlock JackInResult JackOutResult Location Memory
        Observation ParamDef PlaceGraphBlock Possible RespawnOption SeatState SeatsBlock Selection TableBlock
        Terrain TextBlock TimelineBlock TimelineEntry Tool View
    """,
    "wsap_core.protocol.text": "system_message user_message",
    "wsap_core.protocol.wire": "Codec",
    "wsap_core.seams.agent": "Agent",
    "wsap_core.seams.clock": "Clock SystemClock",
    "wsap_core.seams.context": "Context derive_seed",
    "wsap_core.seams.game": "AvatarGameAdapter GameAdapter",
    "wsap_core.specs": """
        AdapterSpec AgentSpec BackendSpec CommandSpec EpisodeSummary MemorySpec ScoreMetric ToolSpec
    """,
    "wsap_core.version": "PROTOCOL_VERSION",
    "wsap_core.worlds": "Barrier MESSAGE_ACTIONS Mailbox Outcome Seat World",
}
"""Module -> its public names; a test compares them with `__init__.pyi`."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:  # the names have every kind of type
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
