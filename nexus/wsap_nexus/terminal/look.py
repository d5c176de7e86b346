"""A game's view of a run in a terminal: printed once, or interactive with selections."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.layout import Layout
from rich.panel import Panel
from rich.segment import Segment
from rich.text import Text

from wsap_core.protocol import Selection, TimelineBlock, View
from wsap_core.protocol.views import Block
from wsap_core.untrusted import single_line
from wsap_nexus.terminal.blocks import draw_block, title_of
from wsap_nexus.terminal.keyboard import keys

__all__ = ["Viewer", "draw_view", "look"]

REFRESH = 1.0
"""Seconds after which the view is refreshed, because the run may be in progress."""
_WIDE = 100
_BORDER = "grey42"


def draw_view(view: View, *, details: bool = False) -> RenderableType:
    """Return all blocks of a view below each other, with their titles."""
    parts: list[RenderableType] = [Text(single_line(view.title), "bold")] if view.title else []
    for block in view.blocks:
        title = title_of(block)
        parts += [Text(""), *([Text(title, "bold underline")] if title else []), draw_block(block, details=details)]
    return Group(*parts)


class Viewer:
    """The selections in a run's view, and the effect of each key; `load` returns the view for selections."""

    def __init__(self, load: Callable[[Mapping[str, str]], View], selection: Mapping[str, str]) -> None:
        self._load = load
        self._chosen = dict(selection)
        self.left = False
        self._window = _Window()
        self._details = False
        self._typed: str | None = None
        self._asked: Selection | None = None
        self.refresh()

    @property
    def selection(self) -> Mapping[str, str]:
        """Name -> selected value."""
        return self._chosen

    def refresh(self) -> None:
        """Load the view again."""
        self.view = self._load(self._chosen)

    def press(self, key: str) -> None:
        """Handle a key."""
        number, text, lists = self._number(), self._text(), self._lists()
        if self._typed is not None:
            self._type(key)
        elif key in ("q", "esc"):
            self.left = True
        elif key == "d":
            self._details = not self._details
        elif key in ("up", "down", "pageup", "pagedown"):
            self._window.scroll(key)
        elif key in ("g", "/") and (asked := number if key == "g" else text) is not None:
            self._typed, self._asked = "", asked
        elif number is not None and key in ("left", "right", "home", "end"):
            at = int(number.chosen) if number.chosen.isdecimal() else number.highest
            self._go(number, {"left": at - 1, "right": at + 1, "home": 1, "end": number.highest}[key])
        elif key.lower() in lists:
            chosen = lists[key.lower()]
            ring = ["", *chosen.choices]
            here = ring.index(chosen.chosen) if chosen.chosen in ring else 0
            self._choose(chosen.name, ring[(here + (1 if key.islower() else -1)) % len(ring)])

    def screen(self, width: int, height: int) -> RenderableType:
        """Return the whole screen."""
        root = Layout()
        head = Text(f" {single_line(self.view.title)}", "bold", no_wrap=True, overflow="ellipsis")
        root.split_column(
            Layout(head, size=1),
            Layout(self._selected(), size=1),
            Layout(self._body(width), name="body"),
            Layout(Text(f" {self._keys()}", "dim", no_wrap=True, overflow="ellipsis"), size=1),
        )
        return root

    def _body(self, width: int) -> RenderableType:
        told = [block for block in self.view.blocks if isinstance(block, TimelineBlock)]
        others = [block for block in self.view.blocks if not isinstance(block, TimelineBlock)]
        wide = width >= _WIDE and bool(told and others)
        self._window.content = self._drawn(told if wide else [*others, *told])
        title = title_of(told[0]) if len(told) == 1 and wide else ""
        main = Panel(self._window, title=Text(title), title_align="left", border_style=_BORDER, padding=(0, 1))
        if not wide:
            return main
        row = Layout()
        beside = Panel(self._drawn(others), border_style=_BORDER, padding=(0, 1))
        row.split_row(Layout(main, ratio=3), Layout(beside, ratio=2))
        return row

    def _drawn(self, blocks: Sequence[Block]) -> RenderableType:
        parts: list[RenderableType] = []
        for block in blocks:
            title = "" if len(blocks) == 1 else title_of(block)
            parts += [*([Text("")] if parts else []), *([Text(title, "bold underline")] if title else [])]
            parts.append(draw_block(block, details=self._details))
        return Group(*parts) if parts else Text("There is nothing to show.", "dim")

    def _selected(self) -> Text:
        line = Text(" ", no_wrap=True, overflow="ellipsis")
        for selection in self.view.selections:
            line.append(f"{single_line(selection.title or selection.name)} ", "dim")
            if selection.highest:
                at = selection.chosen or str(selection.highest)
                line.append(f"{single_line(at)}/{selection.highest}", "bold")
            else:
                line.append(
                    single_line(selection.chosen) or ("all" if selection.choices else "-"),
                    "bold" if selection.chosen else "",
                )
            line.append("   ")
        if self._typed is not None:
            line.append(f"{'go to' if self._asked and self._asked.highest else 'find'}: {self._typed}▏", "bold yellow")
        return line

    def _keys(self) -> str:
        number = self._number()
        moves = f"←→ {number.name}  Home/End  g go to  " if number is not None else ""
        lists = "".join(f"{letter} {single_line(chosen.name)}  " for letter, chosen in self._lists().items())
        text = self._text()
        lists += f"/ {single_line(text.name)}  " if text is not None else ""
        return f"{moves}{lists}↑↓ PgUp/PgDn scroll  d details  q leave"

    def _text(self) -> Selection | None:
        free = (selection for selection in self.view.selections if not selection.highest and not selection.choices)
        return next(free, None)

    def _number(self) -> Selection | None:
        return next((selection for selection in self.view.selections if selection.highest), None)

    def _lists(self) -> dict[str, Selection]:
        """Return letter -> the list that it cycles through."""
        found: dict[str, Selection] = {}
        for selection in self.view.selections:
            letter = next((c for c in selection.name.lower() if c.isalpha() and c not in "qdg" and c not in found), "")
            if selection.choices and letter:
                found[letter] = selection
        return found

    def _type(self, key: str) -> None:
        assert self._typed is not None, "asked by press()"
        assert self._asked is not None, "asked by press()"
        number = bool(self._asked.highest)
        key = " " if key == "space" else key
        if key == "enter":
            typed, self._typed = self._typed.strip(), None
            if not number:
                self._choose(self._asked.name, typed)
            elif typed:
                self._go(self._asked, int(typed))
        elif key == "backspace":
            self._typed = self._typed[:-1]
        elif key == "esc":
            self._typed = None
        elif len(key) == 1 and (key in "0123456789" and len(self._typed) < 9 if number else key.isprintable()):
            self._typed += key

    def _go(self, number: Selection, to: int) -> None:
        # At the end nothing is selected, to follow a run in progress.
        self._choose(number.name, "" if to >= number.highest else str(max(1, to)))

    def _choose(self, name: str, value: str) -> None:
        self._chosen.pop(name, None)
        if value:
            self._chosen[name] = value
        self._window.at_end()
        self.refresh()


class _Window:
    """As much of the content as fits: its end, unless the user has scrolled up."""

    def __init__(self) -> None:
        self.content: RenderableType = ""
        self._above = 0
        self._rows = 1

    def at_end(self) -> None:
        self._above = 0

    def scroll(self, key: str) -> None:
        by = self._rows - 1 if key.startswith("page") else 1
        self._above = max(0, self._above + (by if key.endswith("up") else -by))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self.content, options.update(height=None), pad=False)
        self._rows = options.height or len(lines)
        self._above = min(self._above, max(0, len(lines) - self._rows))
        last = len(lines) - self._above
        for line in lines[max(0, last - self._rows) : last]:
            yield from line
            yield Segment.line()


async def look(viewer: Viewer, console: Console) -> None:
    """Show a run's view until the user leaves; WsapError if a view can't be loaded."""
    pressed: asyncio.Queue[str] = asyncio.Queue()
    with keys.whole_screen(console, pressed.put_nowait) as live:
        while not viewer.left:
            live.update(viewer.screen(console.size.width, console.size.height), refresh=True)
            key = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REFRESH):
                    key = await pressed.get()
            viewer.press(key) if key is not None else viewer.refresh()
