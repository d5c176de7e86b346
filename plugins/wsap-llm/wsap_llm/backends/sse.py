"""Server-sent events, read from bytes as they come.

The format is the `text/event-stream` of the HTML standard: lines that end in LF, CR or CRLF, comments
that begin with a colon, several `data` lines joined by LF, an empty line that ends an event.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LINE_END = re.compile(rb"\r\n|\n|\r")

_LONG = 1 << 16
# Of an event that is longer than this, in bytes, whole lines are taken as they come.


class EventReader:
    """Takes bytes, cut anywhere, and gives the data of each event; fields other than `data` are passed over."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._first = True

    def feed(self, piece: bytes) -> Iterator[str]:
        """Give the data of every event that is complete now.

        Raises:
            UnicodeDecodeError: the data of an event is not UTF-8.
        """
        rest = self._rest + piece if self._rest else piece
        if self._first and rest:
            if len(rest) < 3 and b"\xef\xbb\xbf".startswith(rest):
                self._rest = rest
                return
            self._first = False
            rest = rest.removeprefix(b"\xef\xbb\xbf")
        self._rest = rest
        if not self._data and b"\r" not in rest:
            yield from self._blocks()
        if self._data or b"\r" in self._rest or len(self._rest) >= _LONG:
            yield from self._lines()

    def close(self) -> Iterator[str]:
        """Give the last event if the stream ended without the empty line that belongs after it.

        The standard drops it; servers that end on `data: [DONE]` alone exist.

        Raises:
            UnicodeDecodeError: the data of the event is not UTF-8.
        """
        for line in _LINE_END.split(self._rest):
            self._take(line)
        self._rest = b""
        if self._data:
            yield self._finish()

    def _blocks(self) -> Iterator[str]:
        """Take whole events, as nearly every server writes them: one line of data, LF, an empty line."""
        *blocks, self._rest = self._rest.split(b"\n\n")
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                yield block[6:].decode()
                continue
            for line in block.split(b"\n"):
                self._take(line)
            if self._data:
                yield self._finish()

    def _lines(self) -> Iterator[str]:
        """Take one line after the other, whatever they end in."""
        rest, start = self._rest, 0
        for end in _LINE_END.finditer(rest):
            if end.group() == b"\r" and end.end() == len(rest):
                break  # the second half of a CRLF may be on its way
            line = rest[start : end.start()]
            start = end.end()
            if line:
                self._take(line)
            elif self._data:
                yield self._finish()
        self._rest = rest[start:]

    def _take(self, line: bytes) -> None:
        if line == b"data":
            self._data.append(b"")
        elif line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])

    def _finish(self) -> str:
        data, self._data = self._data, []
        return (data[0] if len(data) == 1 else b"\n".join(data)).decode()
