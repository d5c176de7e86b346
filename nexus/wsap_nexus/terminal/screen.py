"""The layout of a run on one screen, for every size of terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.layout import Layout
from rich.panel import Panel
from rich.text import Text

from wsap_core.protocol import ChatBlock, GridMapBlock, ImageBlock, View
from wsap_core.untrusted import single_line
from wsap_nexus.terminal import panels
from wsap_nexus.terminal.blocks import Picture, Sheet, Stacked, blocks_of, draw_block, image_of, map_of, title_of
from wsap_nexus.terminal.gridmap import GridMap, light_of
from wsap_nexus.terminal.story import SeatScene, Stage

SMALLEST = (60, 18)
"""Minimum columns and rows of the screen."""

_BORDER = "grey42"
_PLAN_ROWS = 2
_LAST_WORDS = 6
_LONG = 10
"""Maximum lines of a table before it is packed."""
_TALL = 26
"""Minimum rows to show the other seats to a person who plays."""


@dataclass(frozen=True)
class Look:
    """The options of the screen."""

    frame: bool = False
    """Show the game's picture instead of the map, if it has one."""
    plain: bool = False
    """Use no colours."""
    help: Sequence[tuple[str, str]] = ()
    """Keys and their effects, shown instead of the run if not empty."""
    scroll: panels.Scroll | None = None
    """A playing person's scroll position in the result of the last action."""
    prompt: Callable[[int], Sequence[Text]] | None = None
    """Returns the question to the person at the keyboard in lines of that width; shown instead of the achievements."""


def fits(width: int, height: int) -> bool:
    """Return whether a terminal of that size is large enough."""
    return width >= SMALLEST[0] and height >= SMALLEST[1]


def too_small(width: int, height: int) -> str:
    """Return the message for a terminal that is too small."""
    return f"The terminal has {width}x{height} characters; the view needs at least {SMALLEST[0]}x{SMALLEST[1]}."


def compose(stage: Stage, width: int, height: int, look: Look) -> RenderableType:
    """Return the whole screen."""
    if not fits(width, height):
        return Text(too_small(width, height) + " Make it larger, or press q to stop.", "bold yellow")
    taken = panels.spending(stage, width, 3 if height >= 30 else 2 if height >= 24 else 1)
    told = textwrap.wrap(single_line(stage.notice), width - 2, max_lines=2)
    written = [] if stage.writing is None else [panels.writing(stage.writing, width)]
    rows = height - 3 - len(taken) - len(told) - len(written)
    body = _help(look.help) if look.help else _body(stage, width, rows, look)
    news = _status_is_news(stage)
    root = Layout(name="root")
    root.split_column(
        Layout(panels.headline(stage, width), size=1),
        Layout(panels.figures(stage, status=_status_on_top(stage) and news, now=news), size=1),
        *(Layout(line, size=1) for line in taken),
        *(Layout(Text(f" {line}", "yellow", no_wrap=True, overflow="ellipsis"), size=1) for line in told),
        Layout(body, name="body"),
        *(Layout(line, size=1) for line in written),
        Layout(Text(f" {single_line(stage.keys)}", "dim", no_wrap=True, overflow="ellipsis"), size=1),
    )
    return root


def _body(stage: Stage, width: int, height: int, look: Look) -> RenderableType:
    seat = stage.seat
    chart = map_of(seat.view) or map_of(_own_view(seat))
    image = image_of(seat.view) if look.frame else None
    left_width, picture_height = _left_size(chart, image, width, height, few=stage)
    picture = _picture(seat, chart, image, look)
    left, without_inventory = _left(stage, picture, left_width, height, picture_height)
    right = _right(stage, width - left_width, height, look, with_inventory=without_inventory)
    row = Layout()
    row.split_row(Layout(left, size=left_width), Layout(right))
    return row


def last_picture(stage: Stage, width: int) -> RenderableType | None:
    """Return the last view of a game with several seats, with only the last messages; None for a map or picture."""
    seat = stage.seat
    if seat.view is None or map_of(seat.view) is not None or image_of(seat.view) is not None:
        return None
    lines: list[RenderableType] = []
    for block in blocks_of(seat.view, seat.observation):
        if isinstance(block, ChatBlock):
            block = replace(block, lines=tuple(block.lines)[-_LAST_WORDS:])
        title, drawn = title_of(block), draw_block(block)
        if isinstance(drawn, Sheet) and drawn.lines > _LONG:
            drawn = Group(*drawn.packed(width - 4, _LONG))
        lines += [*([Text(title, "bold")] if title else []), drawn, Text("")]
    return _panel(Group(*lines[:-1]), f"{single_line(stage.title)}: {single_line(seat.view.title)[:60] or 'the end'}")


def _status_on_top(stage: Stage) -> bool:
    """Return whether the status is in the second line: with several seats it is short, and room is needed."""
    return len(stage.seats) > 1 and not panels.has_bars(stage.seat)


def _status_is_news(stage: Stage) -> bool:
    """Return whether the status is current: that of a waiting player is from its last turn, its view is newer."""
    return not _played(stage) or stage.seat.view is None


def _played(stage: Stage) -> bool:
    """Return whether a person plays among others, whose seats are hidden."""
    return any(seat.hidden for seat in stage.seats)


def _own_view(seat: SeatScene) -> View | None:
    return seat.observation.to_view() if seat.observation is not None else None


def _left_size(
    chart: GridMapBlock | None, image: ImageBlock | None, width: int, height: int, *, few: Stage
) -> tuple[int, int]:
    """Return the width of the left column and the height of its picture, borders included."""
    below = 0 if _status_on_top(few) else _rows_of_vitals(few.seat, height) + 2
    if image is not None:
        across = max(1, image.width or 1) / max(1, image.height or 1)
        rows = max(7, min(height - below, int(width * 0.6) // 2))
        return min(int(width * 0.6), int((rows - 2) * 2 * across) + 4), rows
    if chart is not None:
        drawn = GridMap(chart)
        scale = drawn.scale(int(width * 0.52) - 4, height - below - 2)
        across_map, rows = drawn.size(scale)
        return max(28, min(across_map + 4, int(width * 0.6))), min(rows + 2, height - below)
    # With several seats the view says more than the last actions, but a person who plays needs room to type.
    share = 0.45 if len(few.seats) == 1 else 0.5 if _played(few) else 0.58
    return max(28, int(width * share)), height - below


def _rows_of_vitals(seat: SeatScene, height: int) -> int:
    """Return the rows of the status; two entries share one if there are few."""
    entries = len(panels.vitals(seat, 40)) or 1
    return min(8, -(-entries // 2) if _in_pairs(height) else entries)


def _in_pairs(height: int) -> bool:
    return 18 <= height < 26


def _vitals(seat: SeatScene, width: int, height: int) -> list[Text]:
    if not _in_pairs(height):
        return panels.vitals(seat, width)
    each = (width - 2) // 2
    entries = panels.vitals(seat, each)
    for entry in entries:
        entry.truncate(each, overflow="ellipsis", pad=True)
    pairs = [entries[i : i + 2] for i in range(0, len(entries), 2)]
    return [Text("  ").join(pair) for pair in pairs]


def _left(stage: Stage, picture: RenderableType, width: int, height: int, picture_height: int) -> tuple[Layout, bool]:
    """Return the left column, and whether the inventory did not fit."""
    seat = stage.seat
    parts = [Layout(picture, size=picture_height)]
    left = height - picture_height
    if not _status_on_top(stage):
        vital_rows = _rows_of_vitals(seat, height) + 2
        parts.append(Layout(_panel(_lines(_vitals(seat, width - 4, height)), "Status"), size=min(vital_rows, left)))
        left -= vital_rows
    carries = panels.has_inventory(seat.observation)
    if left >= 4 and carries:
        carried = _lines(panels.inventory(seat.observation, width - 4))
        parts.append(Layout(_panel(carried, "Inventory"), size=left))
    elif left > 0:
        parts.append(Layout(Text(" "), size=left))
    column = Layout()
    column.split_column(*parts)
    return column, left < 4 and carries


def _picture(seat: SeatScene, chart: GridMapBlock | None, image: ImageBlock | None, look: Look) -> RenderableType:
    observation = seat.observation
    here = panels.place(observation)
    if image is not None:
        return _panel(Picture(image), "Frame", subtitle=here)
    if chart is not None:
        light = light_of(observation.time_of_day if observation is not None else None)
        facing = str(getattr(observation, "facing", "") or "")
        drawn = GridMap(chart, facing=facing, light=light, plain=look.plain)
        return _panel(drawn, single_line(chart.title) or "Map", subtitle=here)
    blocks = blocks_of(seat.view, observation)
    titles = [title_of(block) for block in blocks]
    drawn_title = single_line(seat.view.title)[:60] if seat.view is not None else ""
    title = titles[0] if len(blocks) == 1 and titles[0] else drawn_title or "View"
    drawn_blocks = [
        (name if len(blocks) > 1 else "", draw_block(block, plain=look.plain), not isinstance(block, ChatBlock))
        for block, name in zip(blocks, titles, strict=True)
    ]
    return _panel(Stacked(drawn_blocks), title, subtitle=here)


def _right(stage: Stage, width: int, height: int, look: Look, *, with_inventory: bool) -> Layout:
    seat = stage.seat
    inner = width - 4
    parts: list[Layout] = []
    left = height
    if len(stage.seats) > 1 and not (_played(stage) and height < _TALL):
        rows = panels.table_of_seats(stage, inner, max(2, height // 4))
        parts.append(Layout(_panel(_lines(rows), "Seats"), size=len(rows) + 2))
        left -= len(rows) + 2
    said = panels.heard(seat.observation, 4)
    if said and left > 14:
        parts.append(Layout(_panel(_lines(said), "Messages"), size=len(said) + 2))
        left -= len(said) + 2
    if seat.plan and left > 18:
        # It may be old, so it gets little room.
        intended = Text(" → ".join(single_line(line) for line in seat.plan), "dim", overflow="ellipsis")
        wrapped = min(_PLAN_ROWS, 1 + cell_len(intended.plain) // max(1, inner - 8))
        made = f"Plan, made before step {seat.planned}"
        parts.append(Layout(_panel(intended, made), size=wrapped + 2))
        left -= wrapped + 2
    if with_inventory:
        carried = panels.inventory(seat.observation, inner)[: 3 if left > 18 else 2 if left > 15 else 1]
        parts.append(Layout(_panel(_lines(carried), "Inventory"), size=len(carried) + 2))
        left -= len(carried) + 2
    bottom, bottom_rows = _bottom(stage, inner, left, look)
    rows_for_actions = left - bottom_rows
    lines = panels.actions(seat, inner, rows_for_actions - 2, scroll=look.scroll)
    parts.append(Layout(_panel(_lines(lines), "Last actions"), size=rows_for_actions))
    if bottom is not None:
        parts.append(Layout(bottom, size=bottom_rows))
    column = Layout()
    column.split_column(*parts)
    return column


def _bottom(stage: Stage, width: int, height: int, look: Look) -> tuple[RenderableType | None, int]:
    if look.prompt is not None:
        lines = look.prompt(width)
        rows = min(len(lines) + 2, max(5, height * 6 // 10))
        return _panel(_lines(lines), "Your turn", style="bold yellow"), rows
    seat = stage.seat
    if not stage.catalogue and not seat.unlocked:
        return None, 0
    room = max(1, height * 6 // 10 - 2)
    lines = panels.achievements(seat, stage.catalogue, width, room)
    total = f"/{len(stage.catalogue)}" if stage.catalogue else ""
    return _panel(_lines(lines), f"Achievements {len(seat.unlocked)}{total}"), len(lines) + 2


def _help(keys: Sequence[tuple[str, str]]) -> RenderableType:
    lines = [Text.assemble((f"  {key:<14}", "bold yellow"), what) for key, what in keys]
    return _panel(_lines([Text(""), *lines]), "Keys")


def _lines(lines: Sequence[Text]) -> RenderableType:
    return Group(*lines) if lines else Text(" ")


def _panel(content: RenderableType, title: str, *, subtitle: str = "", style: str = _BORDER) -> Panel:
    # Titles as Text: a string would be parsed as markup.
    below = Text(subtitle[:60], "dim") if subtitle else None
    return Panel(content, title=Text(title), title_align="left", subtitle=below, subtitle_align="left",
                 border_style=style, padding=(0, 1))  # fmt: skip
