"""The interactive view of a recorded run: steps back and forward, jumps, and playback."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace

from rich.console import Console, RenderableType

from wsap_core.untrusted import single_line
from wsap_nexus.terminal.keyboard import keys
from wsap_nexus.terminal.recorded import Recording
from wsap_nexus.terminal.screen import Look, compose
from wsap_nexus.terminal.story import Stage

LEAP = 50
"""Number of steps of Page Up and Page Down."""

PACES = (1, 2, 5, 10, 20, 50, 100, 200)
"""Steps per second of playback, for + and -."""

KEYS = (
    ("← →", "one step back or forward"),
    ("PgUp PgDn", f"{LEAP} steps back or forward"),
    ("Home End", "to the beginning or the end"),
    ("g", "go to a step: type its number, then Enter"),
    ("n and p", "to the next or previous achievement"),
    ("space", "play or pause"),
    ("+ and -", "play faster or slower"),
    ("Tab", "the next seat, if there are several"),
    ("q", "leave"),
    ("?", "this help"),
)

_KEYS_LINE = "←→ step  PgUp/PgDn ±50  g go to  n/p achievement  space play  ? help  q leave"
"""What fits a line of 80 characters; the help has the other keys."""


class Browser:
    """The position in a recorded run, and the effect of each key; position 0 is before the first step."""

    def __init__(self, recording: Recording, position: int = 0) -> None:
        self._recording = recording
        self._last = len(recording)
        self.position = max(0, min(position, self._last))
        """Number of steps up to the one shown."""
        self.running = False
        self.pace = 10.0
        """Steps per second while it plays."""
        self.left = False
        self._focus = 0
        self._typed: str | None = None
        self._help = False
        self._remark = ""
        self._jumps: dict[str, Callable[[], int]] = {
            "left": lambda: self.position - 1,
            "right": lambda: self.position + 1,
            "pageup": lambda: self.position - LEAP,
            "pagedown": lambda: self.position + LEAP,
            "home": lambda: 0,
            "end": lambda: self._last,
        }

    def press(self, key: str) -> None:
        """Handle a key."""
        self._remark = ""
        if self._help:
            self._help = False
        elif self._typed is not None:
            self._type(key)
        elif key in self._jumps:
            self.running = False
            self._go(self._jumps[key]())
        elif key in ("n", "p"):
            self._to_achievement(forth=key == "n")
        elif key == "space":
            self.running = not self.running
            if self.running and self.position >= self._last:
                self.position = 0
        elif key in ("+", "=", "-", "_"):
            self._change_pace(1 if key in "+=" else -1)
        elif key == "g":
            self._typed, self.running = "", False
        elif key == "tab":
            self._focus += 1
        elif key == "?":
            self._help = True
        elif key in ("q", "esc"):
            self.left = True

    def advance(self) -> None:
        """Go one step forward, and pause at the end."""
        self._go(self.position + 1)
        if self.position >= self._last:
            self.running = False

    def stage(self) -> Stage:
        """Return the run at the position."""
        stage = self._recording.stage(self.position, self._focus)
        return replace(stage, state=self._state(), keys=_KEYS_LINE)

    def screen(self, width: int, height: int, *, plain: bool = False) -> RenderableType:
        """Return the whole screen."""
        return compose(self.stage(), width, height, Look(plain=plain, help=KEYS if self._help else ()))

    def _state(self) -> str:
        if self._typed is not None:
            return f"go to step: {self._typed}▏"
        if self._remark:
            return self._remark
        where = f"{self.position}/{self._last}"
        return f"▶ {self.pace:g}/s {where}" if self.running else f"replay {where}"

    def _go(self, position: int) -> None:
        self.position = max(0, min(position, self._last))

    def _to_achievement(self, *, forth: bool) -> None:
        self.running = False
        find = self._recording.next_achievement if forth else self._recording.previous_achievement
        found = find(self.position)
        if found is None:
            self._remark = "no further achievement" if forth else "no earlier achievement"
        else:
            self._go(found)

    def _change_pace(self, by: int) -> None:
        index = min(range(len(PACES)), key=lambda i: abs(PACES[i] - self.pace))
        self.pace = float(PACES[max(0, min(index + by, len(PACES) - 1))])

    def _type(self, key: str) -> None:
        assert self._typed is not None, "asked by press()"
        if key == "enter":
            if self._typed:
                self._go(int(self._typed))
            self._typed = None
        elif key == "backspace":
            self._typed = self._typed[:-1]
        elif key.isascii() and key.isdigit() and len(self._typed) < 9:
            self._typed += key
        elif key in ("esc", "q", "g"):
            self._typed = None


async def browse(recording: Recording, console: Console, *, position: int = 0, fps: float = 20.0) -> int:
    """Show a run until the user leaves, and return the position then; WsapError if the recording can't be read."""
    browser = Browser(recording, position)
    pressed = asyncio.Event()
    if recording.remark:
        browser._remark = single_line(recording.remark)[:60]

    def press(key: str) -> None:
        browser.press(key)
        pressed.set()

    loop = asyncio.get_running_loop()
    size = None
    with keys.whole_screen(console, press) as live:
        moved, due = True, loop.time()
        while not browser.left:
            if moved or pressed.is_set() or console.size != size:
                pressed.clear()
                size = console.size
                live.update(browser.screen(size.width, size.height, plain=console.no_color), refresh=True)
            moved = False
            # At least four times a second, because the terminal may have been resized.
            wait = max(0.0, due - loop.time()) if browser.running else 0.25
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(wait, 0.25) if wait else 0.001):
                    await pressed.wait()
            while browser.running and loop.time() >= due:
                browser.advance()
                moved = True
                due = max(due + 1 / browser.pace, loop.time() - 1 / fps)
            if not browser.running:
                due = loop.time() + 1 / browser.pace
    return browser.position
