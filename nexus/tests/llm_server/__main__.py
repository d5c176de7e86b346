"""`python -m llm_server LATENCY [WORDS [TEXT]]`: for measurements. Prints its port; answers until its input ends.

Says the same to everybody, a streamed reply's pieces spread evenly over the latency, from bytes that are made
beforehand and with no more HTTP than that needs: what is measured is the client, so the server has to be cheap.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator

from llm_server.openai_api import chunks, whole
from llm_server.says import Say, encoded, plan

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


Stream = tuple[Callable[[bytes], None], Iterator[bytes]]
"""Where a streamed reply goes, and what is left of it."""


class Replies:
    """The bytes of one reply: whole, and in pieces."""

    def __init__(self, text: str) -> None:
        say = Say(text)
        made = plan(say, [{"content": "x"}], stop=[], most=None, think=False)
        body = encoded(json.dumps(whole("m", say, made)))
        head = b"HTTP/1.1 200 OK\r\nContent-Type: "
        self.whole = head + b"application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        frames = [f"data: {json.dumps(value)}\n\n".encode() for value in chunks("m", say, made, counted=True)]
        pieces = [b"%x\r\n%b\r\n" % (len(frame), frame) for frame in [*frames, b"data: [DONE]\n\n"]]
        pieces[0] = head + b"text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces[0]
        self.pieces = [*pieces[:-1], pieces[-1] + b"0\r\n\r\n"]


class Connection(asyncio.Protocol):
    """One client: requests in, prepared replies out."""

    def __init__(self, replies: Replies, latency: float, streams: list[Stream]) -> None:
        self._replies = replies
        self._latency = latency
        self._streams = streams
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self._rest += data
        while (end := self._rest.find(b"\r\n\r\n")) >= 0:
            found = _LENGTH.search(self._rest, 0, end)
            size = end + 4 + (int(found.group(1)) if found else 0)
            if len(self._rest) < size:
                return
            body, self._rest = self._rest[end:size], self._rest[size:]
            self._answer(streamed=re.search(rb'"stream": ?true', body) is not None)

    def _answer(self, *, streamed: bool) -> None:
        if streamed:
            self._streams.append((self._write, iter(self._replies.pieces)))
        else:
            asyncio.get_running_loop().call_later(self._latency, self._write, self._replies.whole)

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)


async def beat(streams: list[Stream], interval: float) -> None:
    """Send the next piece of every streamed reply at each beat; one timer for all is cheaper than one for each."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    while True:
        due += interval
        await asyncio.sleep(max(0.0, due - loop.time()))
        left = []
        for stream in streams:
            if (piece := next(stream[1], None)) is not None:
                stream[0](piece)
                left.append(stream)
        streams[:] = left


async def main(latency: float, text: str) -> None:
    """Serve until the standard input is closed."""
    loop = asyncio.get_running_loop()
    replies = Replies(text)
    streams: list[Stream] = []
    server = await loop.create_server(lambda: Connection(replies, latency, streams), "127.0.0.1", 0, backlog=2048)
    ticking = asyncio.create_task(beat(streams, latency / len(replies.pieces)))
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    ticking.cancel()


if __name__ == "__main__":
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    asyncio.run(main(float(sys.argv[1]), sys.argv[3] if len(sys.argv) > 3 else "word " * count))
