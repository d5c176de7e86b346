"""What a viewer can draw: typed blocks, never HTML."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wsap_core.protocol.base import Frozen, Part


@dataclass(frozen=True)
class ImageBlock:
    """A picture, as PNG."""

    base64: str
    """The PNG file in base64; `png()` gives the bytes."""
    width: int = 0
    """In pixels."""
    height: int = 0
    """In pixels."""
    alt: str = ""
    """What it shows, for those who can't see it."""
    kind: Literal["image"] = "image"

    @classmethod
    def from_png(cls, png: bytes, *, width: int, height: int, alt: str = "") -> ImageBlock:
        """Return a block that holds the given PNG file."""
        return cls(base64.b64encode(png).decode("ascii"), width, height, alt)

    def png(self) -> bytes:
        """Return the PNG file."""
        return base64.b64decode(self.base64)


@dataclass(frozen=True)
class GridMapBlock(Frozen):
    """A map of characters, one a tile."""

    rows: Sequence[str] = ()
    """Equal-length rows, north (or the top) first."""
    legend: Mapping[str, str] = field(default_factory=dict)
    """Character -> what it stands for."""
    title: str = ""
    kind: Literal["grid"] = "grid"


@dataclass(frozen=True)
class PlaceGraphBlock(Frozen):
    """Places and the ways between them."""

    places: Sequence[str] = ()
    exits: Sequence[Sequence[str]] = ()
    """Pairs (from, to)."""
    here: str | None = None
    occupants: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Place -> who is there."""
    kind: Literal["places"] = "places"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "exits", tuple(map(tuple, self.exits)))
        object.__setattr__(self, "occupants", {place: tuple(who) for place, who in self.occupants.items()})


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

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rows", tuple(map(tuple, self.rows)))


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
    """A sentence, a paragraph or more."""
    number: int | None = None
    """The tick, round or step that it happened in, from 1; None where there is none."""
    title: str = ""
    place: str = ""
    who: Sequence[str] = ()
    """Whom it is about."""
    details: Sequence[str] = ()
    """What it rests on, a line each, such as the recorded event; viewers show it when asked."""


@dataclass(frozen=True)
class TimelineBlock(Frozen):
    """What happened, oldest first."""

    entries: Sequence[TimelineEntry] = ()
    title: str = ""
    kind: Literal["timeline"] = "timeline"


Block = ImageBlock | GridMapBlock | PlaceGraphBlock | ChatBlock | TableBlock | TextBlock | TimelineBlock
"""Any block; told apart on the wire by `kind`."""


@dataclass(frozen=True)
class Selection(Part):
    """One thing that a viewer may select, and what is selected.

    Three names have a meaning in blocks: a `tick` is the number of a timeline's entry, a `place` is a place of a graph
    or an entry, a `character` is somebody in a place or an entry. Viewers let people select them there, too.
    """

    name: str
    """What it is asked for by, such as `tick`."""
    chosen: str = ""
    """What is selected; empty for nothing in particular: the newest tick, all characters."""
    choices: Sequence[str] = ()
    """What may be selected, where it is one of a few."""
    highest: int = 0
    """Where a number may be selected: from 1 to this. With neither this nor choices any text may be, such as words to
    search for."""
    title: str = ""
    """Its name for people; the name when empty."""


@dataclass(frozen=True)
class View(Frozen):
    """What a viewer shows of a world (or of one seat) now, or of a recorded run."""

    blocks: Sequence[Block] = ()
    title: str = ""
    selections: Sequence[Selection] = ()
    """What may be selected, so that another view is shown; only views of a run have some."""
