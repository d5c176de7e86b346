"""The protocol's types, named as in the Wild Spaces Agent Protocol specification.

They are plain frozen dataclasses, because one observation holds a hundred of them; `wsap_core.protocol.wire` validates
data from outside the process.
"""

from __future__ import annotations

from wsap_core.protocol.actions import TOOL as TOOL
from wsap_core.protocol.actions import Action as Action
from wsap_core.protocol.actions import ActionDef as ActionDef
from wsap_core.protocol.actions import ActionResult as ActionResult
from wsap_core.protocol.actions import ActionSpace as ActionSpace
from wsap_core.protocol.actions import ParamDef as ParamDef
from wsap_core.protocol.availability import ActionAvailability as ActionAvailability
from wsap_core.protocol.availability import Possible as Possible
from wsap_core.protocol.avatars import AVATAR_ACTIONS as AVATAR_ACTIONS
from wsap_core.protocol.avatars import Avatar as Avatar
from wsap_core.protocol.avatars import AvatarRoster as AvatarRoster
from wsap_core.protocol.avatars import AvatarSpec as AvatarSpec
from wsap_core.protocol.avatars import AvatarState as AvatarState
from wsap_core.protocol.avatars import DeathEvent as DeathEvent
from wsap_core.protocol.avatars import EmbodiedObservation as EmbodiedObservation
from wsap_core.protocol.avatars import JackInResult as JackInResult
from wsap_core.protocol.avatars import JackOutResult as JackOutResult
from wsap_core.protocol.avatars import RespawnOption as RespawnOption
from wsap_core.protocol.base import Part as Part
from wsap_core.protocol.memory import HistoryEntry as HistoryEntry
from wsap_core.protocol.memory import Memory as Memory
from wsap_core.protocol.memory import Tool as Tool
from wsap_core.protocol.observation import Achievement as Achievement
from wsap_core.protocol.observation import AgentMessage as AgentMessage
from wsap_core.protocol.observation import Effect as Effect
from wsap_core.protocol.observation import Event as Event
from wsap_core.protocol.observation import Goal as Goal
from wsap_core.protocol.observation import Observation as Observation
from wsap_core.protocol.spatial import Entity as Entity
from wsap_core.protocol.spatial import Location as Location
from wsap_core.protocol.spatial import Terrain as Terrain
from wsap_core.protocol.ticks import Tick as Tick
from wsap_core.protocol.transit import BONUS_KINDS as BONUS_KINDS
from wsap_core.protocol.transit import ITEM_CATEGORIES as ITEM_CATEGORIES
from wsap_core.protocol.transit import SKILL_DOMAINS as SKILL_DOMAINS
from wsap_core.protocol.transit import TOP_TIER as TOP_TIER
from wsap_core.protocol.transit import Bonus as Bonus
from wsap_core.protocol.transit import Entry as Entry
from wsap_core.protocol.transit import PortableItem as PortableItem
from wsap_core.protocol.transit import Receipt as Receipt
from wsap_core.protocol.transit import TransferRule as TransferRule
from wsap_core.protocol.transit import TransitPackage as TransitPackage
from wsap_core.protocol.views import Block as Block
from wsap_core.protocol.views import ChatBlock as ChatBlock
from wsap_core.protocol.views import ChatLine as ChatLine
from wsap_core.protocol.views import GridMapBlock as GridMapBlock
from wsap_core.protocol.views import ImageBlock as ImageBlock
from wsap_core.protocol.views import PlaceGraphBlock as PlaceGraphBlock
from wsap_core.protocol.views import SeatsBlock as SeatsBlock
from wsap_core.protocol.views import SeatState as SeatState
from wsap_core.protocol.views import Selection as Selection
from wsap_core.protocol.views import TableBlock as TableBlock
from wsap_core.protocol.views import TextBlock as TextBlock
from wsap_core.protocol.views import TimelineBlock as TimelineBlock
from wsap_core.protocol.views import TimelineEntry as TimelineEntry
from wsap_core.protocol.views import View as View

PROTOCOL_TYPES = tuple(t for t in list(vars().values()) if isinstance(t, type) and issubclass(t, Part))
"""The protocol's own types: those imported above, whatever else was imported before."""
