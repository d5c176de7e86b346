"""Views: typed blocks that viewers draw, never HTML."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wsap_core.protocol.base import Frozen, Part


@dataclass(frozen=True)
class ImageBlock:
    """A PNG picture."""

    base64: str
    """The PNG file in base64."""
    width: int = 0
    """In pixels."""
    height: int = 0
    """In pixels."""
    alt: str = ""
    """Alternative text."""
    kind: Literal["image"] = "image"

    @classmethod
    def from_png(cls, png: bytes, *, width: int, height: int, alt: str = "") -> ImageBlock:
        """Return a block with a PNG file."""
        return cls(base64.b64encode(png).decode("ascii"), width, height, alt)

    def png(self) -> bytes:
        """Return the PNG file."""
        return base64.b64decode(self.base64)


@dataclass(frozen=True)
class GridMapBlock(Frozen):
    """A map with one character per tile."""

    rows: Sequence[str] = ()
    """Rows of equal length, north (or the top) first."""
    legend: Mapping[str, str] = field(default_factory=dict)
    """Character -> meaning."""
    title: str = ""
    kind: Literal["grid"] = "grid"


@dataclass(frozen=True)
class PlaceGraphBlock(Frozen):
    """Places and the connections between them."""

    places: Sequence[str] = ()
    exits: Sequence[Sequence[str]] = ()
    """Pairs (from, to)."""
    here: str | None = None
    occupants: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Place -> who is there."""
    spots: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Place -> where it is on a map, (x, y) from 0 to 1 from the top left; viewers arrange places if one has none."""
    looks: Mapping[str, str] = field(default_factory=dict)
    """Place -> what it looks like on the map: house, square, mill, dam, orchard, forest, inn, shop, gate or cave."""
    doing: Mapping[str, str] = field(default_factory=dict)
    """Who -> what they do now, in a few words."""
    kind: Literal["places"] = "places"


@dataclass(frozen=True)
class SeatState:
    """A seat at a table, and whoever sits there."""

    name: str
    """Its name in the game, different from all others."""
    who: str = ""
    """Whoever sits there, as the world knows it: the world's name of the seat, or an agent's id. Viewers draw its face,
    and call it by the agent's name where they know it; empty if nobody may know."""
    state: Literal["in", "out", "away"] = "in"
    """`out` is out of the game, such as a dead player."""
    turn: bool = False
    """Whether it is to act now."""
    note: str = ""
    """What is known about it, such as its role."""
    badge: str = ""
    """What it is now, in a word or two, such as "on trial"."""


@dataclass(frozen=True)
class SeatsBlock(Frozen):
    """Players around a table."""

    seats: Sequence[SeatState] = ()
    """Clockwise."""
    links: Sequence[Sequence[str]] = ()
    """Arrows: (name of a seat, name of another, kind), such as ("Ann", "Bob", "vote")."""
    centre: str = ""
    """What is in the middle of the table: the name of a seat, or a few words."""
    phases: Sequence[str] = ()
    """The parts of a round, in order."""
    phase: str = ""
    """The current one of them."""
    dark: bool = False
    """Whether it is night."""
    alt: str = ""
    """The state of the game in a sentence, for whoever can't see the table."""
    kind: Literal["seats"] = "seats"


@dataclass(frozen=True)
class ChatLine:
    """One line of a conversation."""

    speaker: str
    text: str
    channel: str = ""


@dataclass(frozen=True)
class ChatBlock(Frozen):
    """A conversation, oldest line first."""

    lines: Sequence[ChatLine] = ()
    title: str = ""
    kind: Literal["chat"] = "chat"


@dataclass(frozen=True)
class TableBlock(Frozen):
    """A table of text."""

    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    title: str = ""
    kind: Literal["table"] = "table"


@dataclass(frozen=True)
class TextBlock:
    """A paragraph or more of plain text."""

    text: str
    title: str = ""
    kind: Literal["text"] = "text"


@dataclass(frozen=True)
class TimelineEntry(Part):
    """Something that happened."""

    text: str
    """One or more sentences."""
    number: int | None = None
    """Its tick, round or step, from 1."""
    title: str = ""
    place: str = ""
    who: Sequence[str] = ()
    """The characters concerned."""
    details: Sequence[str] = ()
    """Lines that viewers show on request, such as the recorded event."""


@dataclass(frozen=True)
class TimelineBlock(Frozen):
    """Events, oldest first."""

    entries: Sequence[TimelineEntry] = ()
    title: str = ""
    kind: Literal["timeline"] = "timeline"


Block = ImageBlock | GridMapBlock | PlaceGraphBlock | SeatsBlock | ChatBlock | TableBlock | TextBlock | TimelineBlock
"""Any block; `kind` distinguishes them on the wire."""


@dataclass(frozen=True)
class Selection(Part):
    """A setting of a view that its viewer may change. Viewers also let people select a `tick` (an entry's number), a
    `place` (of a graph or entry) and a `character` (in a place or entry) in the blocks."""

    name: str
    """Such as `tick`."""
    chosen: str = ""
    """The current value; empty for the default, such as the newest tick or all characters."""
    choices: Sequence[str] = ()
    """The valid values, if it is an enumeration."""
    highest: int = 0
    """For a number, the highest valid one, from 1. With neither this nor choices, any text is valid, such as a search
    term."""
    title: str = ""
    """Display name; `name` when empty."""


@dataclass(frozen=True)
class View(Frozen):
    """A picture of a world or seat now, or of a recorded run, as blocks."""

    blocks: Sequence[Block] = ()
    title: str = ""
    selections: Sequence[Selection] = ()
    """Settings of a run's view."""
    caption: str = ""
    """What happens, in a sentence, for pages that show it below the picture."""
