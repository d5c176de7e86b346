"""`python -m llm_server LATENCY [PIECES [TEXT]]`, for measurements. Prints its port; runs until its input ends.

Sends the same prepared bytes to all clients with a minimum of HTTP, because the client is measured. The pieces of a
streamed reply, each a write and an HTTP chunk, are spread evenly over the latency; the last one is sent when a whole
reply would be.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace

from llm_server.openai_api import chunks, whole
from llm_server.says import Say, encoded, plan

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_STREAM = re.compile(rb'"stream": ?true')

Stream = tuple[Callable[[bytes], None], Iterator[bytes]]
"""The destination of a streamed reply, and its remaining pieces."""


class Replies:
    """The bytes of one reply, whole and as pieces of text (besides those that frame them)."""

    def __init__(self, text: str, pieces: int) -> None:
        say = Say(text)
        made = plan(say, [{"content": "x"}], stop=[], most=None, think=False)
        marks = [len(text) * i // pieces for i in range(pieces + 1)]
        made = replace(made, text=[text[a:b] for a, b in itertools.pairwise(marks)])
        body = encoded(json.dumps(whole("m", say, made)))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: "
        self.whole = head + b"application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        frames = [f"data: {json.dumps(value)}\n\n".encode() for value in chunks("m", say, made, counted=True)]
        parts = [b"%x\r\n%b\r\n" % (len(frame), frame) for frame in [*frames, b"data: [DONE]\n\n"]]
        parts[0] = head + b"text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + parts[0]
        # Usage and end are sent with the last piece, as by real servers.
        self.pieces = [*parts[:-3], b"".join(parts[-3:]) + b"0\r\n\r\n"]


class Wheel:
    """Sends the pieces of all streams with one timer, which is cheaper than one for each.

    Streams are in slots, and each turn of the wheel sends one piece of each, so that pieces are spread evenly, and the
    last one is sent between the latency and one slot later, never too soon.
    """

    def __init__(self, latency: float, pieces: int) -> None:
        self._slots: list[list[Stream]] = [[] for _ in range(8)]
        self._tick = latency / pieces / len(self._slots)
        self._next = 0

    def add(self, write: Callable[[bytes], None], pieces: list[bytes]) -> None:
        """Start a reply: its first piece is sent after a turn of the wheel."""
        self._slots[self._next].append((write, iter([b"", *pieces])))

    async def turn(self) -> None:
        """Turn until cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due += self._tick
            await asyncio.sleep(max(0.0, due - loop.time()))
            streams, left = self._slots[self._next], list[Stream]()
            for stream in streams:
                if (piece := next(stream[1], None)) is not None:
                    if piece:
                        stream[0](piece)
                    left.append(stream)
            self._slots[self._next] = left
            self._next = (self._next + 1) % len(self._slots)


class Connection(asyncio.Protocol):
    """One client connection with prepared replies."""

    def __init__(self, replies: Replies, latency: float, wheel: Wheel) -> None:
        self._replies = replies
        self._latency = latency
        self._wheel = wheel
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Reply to every complete request."""
        self._rest = self._rest + data if self._rest else data
        while (end := self._rest.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._rest, 0, end)
            size = end + 4 + (int(found.group(1)) if found else 0)
            if len(self._rest) < size:
                return
            streamed = _STREAM.search(self._rest, end, size) is not None
            self._rest = self._rest[size:]
            self._answer(streamed=streamed)

    def _answer(self, *, streamed: bool) -> None:
        if streamed:
            self._wheel.add(self._write, self._replies.pieces)
        else:
            asyncio.get_running_loop().call_later(self._latency, self._write, self._replies.whole)

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)


async def main(latency: float, pieces: int, text: str) -> None:
    """Serve until the standard input is closed."""
    loop = asyncio.get_running_loop()
    replies = Replies(text, pieces)
    wheel = Wheel(latency, len(replies.pieces))
    server = await loop.create_server(lambda: Connection(replies, latency, wheel), "127.0.0.1", 0, backlog=2048)
    turning = asyncio.create_task(wheel.turn())
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    turning.cancel()


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    asyncio.run(main(float(sys.argv[1]), count, sys.argv[3] if len(sys.argv) > 3 else "word " * count))
