"""The keyboard of a terminal, key by key, without waiting for Enter."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

_SEQUENCES = {
    "[A": "up", "[B": "down", "[C": "right", "[D": "left", "[H": "home", "[F": "end",
    "OA": "up", "OB": "down", "OC": "right", "OD": "left", "OH": "home", "OF": "end",
    "[1~": "home", "[4~": "end", "[7~": "home", "[8~": "end", "[5~": "pageup", "[6~": "pagedown",
    "[3~": "delete", "[Z": "backtab",
}  # fmt: skip
_NAMED = {
    " ": "space",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "ctrl-c",
    "\x04": "ctrl-d",
}
_WINDOWS = {"H": "up", "P": "down", "M": "right", "K": "left", "G": "home", "O": "end", "I": "pageup", "Q": "pagedown"}


class KeyDecoder:
    """Decodes a terminal's input into names of keys: "a", "space", "left", "pageup", "esc"."""

    def __init__(self) -> None:
        self._text = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> list[str]:
        """Return the keys in the input; other control sequences are ignored."""
        text = self._text.decode(data)
        keys: list[str] = []
        position = 0
        while position < len(text):
            character = text[position]
            if character == "\x1b":
                key, length = _escape(text[position + 1 :])
                position += 1 + length
                if key:
                    keys.append(key)
                continue
            position += 1
            if character in _NAMED:
                keys.append(_NAMED[character])
            elif character.isprintable():
                keys.append(character)
        return keys


def _escape(rest: str) -> tuple[str, int]:
    """Return the key of an escape sequence, and its length without the escape character."""
    if not rest or rest[0] not in "[O":
        return "esc", 0
    length = 1
    while length < len(rest) and not (rest[length].isalpha() or rest[length] == "~"):
        length += 1
    sequence = rest[: length + 1]
    if len(sequence) == 1:
        return "esc", 0
    return _SEQUENCES.get(sequence, ""), len(sequence)


@contextlib.contextmanager
def whole_screen(console: Console, on_key: Callable[[str], None]) -> Iterator[Live]:
    """Yield the whole terminal for drawing, and pass each key to `on_key`; see `listening`."""
    from rich.live import Live  # deferred for weight

    with (
        Live(console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False) as live,
        listening(on_key),
    ):
        yield live


def has_keyboard() -> bool:
    """Return whether standard input is a terminal."""
    try:
        return sys.stdin.isatty()
    except (AttributeError, ValueError):  # closed, or replaced by something that is not a file
        return False


@contextlib.contextmanager
def listening(on_key: Callable[[str], None]) -> Iterator[None]:
    """Pass each key that is pressed during the block to `on_key`, in the running event loop.

    The terminal's settings are always restored. Ctrl-C remains a signal. Without a terminal at standard input there
    are no keys.
    """
    if not has_keyboard():
        yield
        return
    loop = asyncio.get_running_loop()
    if sys.platform == "win32":
        with _listening_windows(loop, on_key):
            yield
        return
    import termios  # not available on Windows
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    decoder = KeyDecoder()

    def read() -> None:
        try:
            data = os.read(descriptor, 1024)
        except OSError:
            data = b""
        if not data:  # the terminal is gone
            loop.remove_reader(descriptor)
            return
        for key in decoder.feed(data):
            on_key(key)

    try:
        tty.setcbreak(descriptor, termios.TCSANOW)
        loop.add_reader(descriptor, read)
        yield
    finally:
        loop.remove_reader(descriptor)
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _listening_windows(loop: asyncio.AbstractEventLoop, on_key: Callable[[str], None]) -> Iterator[None]:
    import threading

    msvcrt: Any = __import__("msvcrt")  # Any: only Windows has it and its types
    ended = threading.Event()

    def listen() -> None:
        while not ended.wait(0.02):
            while msvcrt.kbhit():
                character = msvcrt.getwch()
                key = _WINDOWS.get(msvcrt.getwch()) if character in "\x00\xe0" else _NAMED.get(character, character)
                if key:
                    loop.call_soon_threadsafe(on_key, key)

    thread = threading.Thread(target=listen, name="wsap-keys", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
