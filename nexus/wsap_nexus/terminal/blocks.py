"""Every kind of view block as something rich can draw."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from wsap_core.protocol import (
    ChatBlock,
    GridMapBlock,
    ImageBlock,
    Observation,
    PlaceGraphBlock,
    TableBlock,
    TextBlock,
    TimelineBlock,
    View,
)
from wsap_core.protocol.views import Block
from wsap_core.untrusted import single_line, strip_control
from wsap_nexus.terminal.gridmap import GridMap
from wsap_nexus.terminal.picture import Picture
from wsap_nexus.terminal.sheets import MOST_ROWS, Indented, Sheet, Talk

LONGEST_TEXT = 20_000
"""Characters of a text block that are shown at most."""


def draw_block(block: Block, *, plain: bool = False, details: bool = False) -> RenderableType:
    """Return a block as something rich can draw; text in it is shown, never interpreted.

    Args:
        details: with what a timeline's entries rest on.
    """
    if isinstance(block, GridMapBlock):
        return GridMap(block, plain=plain)
    if isinstance(block, ImageBlock):
        return Picture(block)
    if isinstance(block, TableBlock):
        return Sheet(block)
    if isinstance(block, ChatBlock):
        return Talk(block)
    if isinstance(block, PlaceGraphBlock):
        return _places(block)
    if isinstance(block, TimelineBlock):
        return _timeline(block, details=details)
    return Text(strip_control(block.text)[:LONGEST_TEXT])


def title_of(block: Block) -> str:
    """Return what a block is called, on one line; empty where it has no name."""
    return single_line(getattr(block, "title", ""))[:60]


def map_of(view: View | None) -> GridMapBlock | None:
    """Return the first map of a view, if it has one."""
    blocks = view.blocks if view is not None else ()
    return next((b for b in blocks if isinstance(b, GridMapBlock) and b.rows), None)


def image_of(view: View | None) -> ImageBlock | None:
    """Return the first picture of a view, if it has one."""
    blocks = view.blocks if view is not None else ()
    return next((b for b in blocks if isinstance(b, ImageBlock)), None)


def other_blocks(view: View | None) -> list[Block]:
    """Return what a view has besides maps and pictures."""
    blocks = view.blocks if view is not None else ()
    return [b for b in blocks if not isinstance(b, GridMapBlock | ImageBlock)]


def blocks_of(view: View | None, observation: Observation | None) -> list[Block]:
    """Return the blocks to show where there is neither map nor picture: the world's, else the seat's own text."""
    blocks = other_blocks(view)
    if not blocks and observation is not None:
        blocks = [TextBlock(observation.to_text().strip("\n"))]
    return blocks


def _places(block: PlaceGraphBlock) -> RenderableType:
    lines = []
    for place in block.places[:MOST_ROWS]:
        here = place == block.here
        text = Text("● " if here else "○ ", "bold yellow" if here else "dim")
        text.append(single_line(place), "bold" if here else "")
        ways = [single_line(pair[1]) for pair in block.exits if len(pair) == 2 and pair[0] == place]
        if ways:
            text.append(" → " + ", ".join(ways), "dim")
        people = [single_line(name) for name in block.occupants.get(place, ())]
        if people:
            text.append("  " + ", ".join(people), "cyan")
        lines.append(text)
    return Group(*lines)


def _timeline(block: TimelineBlock, *, details: bool) -> RenderableType:
    parts: list[RenderableType] = []
    for entry in block.entries[-MOST_ROWS:]:
        head = Text("" if entry.number is None else f"{entry.number}  ", "bold yellow")
        for words, style in ((entry.title, "bold"), (entry.place, "bold"), (", ".join(entry.who), "cyan")):
            if words:
                head.append(" · " if head.plain.strip() and not head.plain.endswith("  ") else "", "dim")
                head.append(single_line(words), style)
        head.rstrip()
        if head.plain:
            parts.append(head)
        parts.append(Indented(Text(strip_control(entry.text)[:LONGEST_TEXT]), 2))
        parts += [Indented(Text(f"· {single_line(line)}", "dim"), 4) for line in entry.details if details]
    return Group(*parts) if parts else Text("Nothing to show.", "dim")
