"""The server: a thread, a port, a queue of responses."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from llm_server import ollama_api, openai_api
from llm_server.says import Card, Received, Say

MODELS = {
    "qwen3:8b": Card(40960, ("completion", "tools", "thinking")),
    "llama3.2:latest": Card(131072, family="llama", parameters="3.2B"),
    "llava:7b": Card(32768, ("completion", "vision"), family="llama", parameters="7B"),
}


class ModelServer:
    """Responds on 127.0.0.1 until it is stopped.

    Args:
                default: the response if none is queued: a `Say`, or a function of the request's body.
                key: the key required by the OpenAI API; none if None.
                port: the port; a free one if 0.
    """

    def __init__(
        self, default: Say | Callable[[Any], Say] | None = None, *, key: str | None = None, port: int = 0
    ) -> None:
        self.default = default if default is not None else Say()
        self.key = key
        self.complete: Callable[[Any], Any] | None = None
        """Returns the response of `/v1/completions` as JSON for a request's body; None for no such endpoint."""
        self.models: dict[str, Card] = dict(MODELS)
        self.loading = 0
        """How often the list of models is refused as llama.cpp's server does while it loads its model."""
        self.requests: list[Received] = []
        """The received requests."""
        self.port = port
        self._now = 0
        self._left = 0
        self._arrived = threading.Condition()
        self._says: deque[Say] = deque()
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._release = asyncio.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="llm-server", daemon=True)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        if not self._ready.wait(20):
            raise RuntimeError("the server did not start")
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop, unless it has stopped."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._release.set)
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)
        if self._thread.is_alive():
            raise RuntimeError("the server did not stop")

    @property
    def address(self) -> str:
        """The base URL for Ollama's clients."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        """The base URL for OpenAI's clients."""
        return f"{self.address}/v1"

    @property
    def last(self) -> Any:
        """The body of the last request with a body."""
        return next(r.body for r in reversed(self.requests) if r.body is not None)

    @property
    def asked(self) -> list[Received]:
        """The received requests for replies."""
        return [r for r in self.requests if r.path in ("/v1/chat/completions", "/api/chat")]

    def say(self, *says: Say) -> None:
        """Queue responses for the next requests."""
        self._says.extend(says)

    def release(self) -> None:
        """Release all waiting responses, now and from now on."""
        self._loop.call_soon_threadsafe(self._release.set)

    def await_requests(self, count: int) -> None:
        """Wait until this number of requests are processed concurrently."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: self._now >= count, 300):
                raise TimeoutError(f"{self._now} requests arrived, not {count}")

    def await_leaving(self) -> None:
        """Wait until a client has left a stream before its end."""
        with self._arrived:
            if not self._arrived.wait_for(lambda: self._left > 0, 300):
                raise TimeoutError("nobody left")

    def next_say(self, body: Any) -> Say:
        """Return the response to a request."""
        if self._says:
            return self._says.popleft()
        return self.default(body) if callable(self.default) else self.default

    async def receive(self, request: web.Request) -> Any:
        """Store a request and return its JSON; None without a body, `...` for invalid JSON."""
        raw = await request.read()
        try:
            body = json.loads(raw) if raw else None
        except ValueError:
            body = ...
        self.requests.append(Received(request.method, request.path, dict(request.headers), body))
        return body

    async def before(self, say: Say) -> None:
        """Wait for as long as a response requires."""
        if say.wait:
            await self._release.wait()
        if say.latency:
            await asyncio.sleep(say.latency)

    async def send_whole(self, request: web.Request, say: Say, body: bytes) -> web.StreamResponse:
        """Send a JSON body, or half of it."""
        if say.raw is not None:
            body = say.raw
        if say.half:
            body = body[: len(body) // 2]
        response = web.StreamResponse(status=say.status, headers=dict(say.headers))
        response.content_type = "application/json"
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(body if say.cut is None else body[: len(body) // 2])
        if say.cut is not None:
            self._drop(request)
        return response

    async def send_pieces(
        self, request: web.Request, say: Say, pieces: Sequence[bytes], content_type: str
    ) -> web.StreamResponse:
        """Send pieces one after the other, and drop the connection if required."""
        response = web.StreamResponse(status=200, headers=dict(say.headers))
        response.content_type = content_type
        await response.prepare(request)
        for number, piece in enumerate(pieces):
            if say.cut is not None and number >= say.cut:
                self._drop(request)
                return response
            parts = [piece[at : at + 1] for at in range(len(piece))] if say.style == "bytes" else [piece]
            try:
                for part in parts:
                    await response.write(part)
            except ConnectionResetError:
                with self._arrived:
                    self._left += 1
                    self._arrived.notify_all()
                return response
        if say.cut is not None:
            self._drop(request)
        return response

    def _drop(self, request: web.Request) -> None:
        if request.transport is not None:
            request.transport.abort()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        @web.middleware
        async def count(request: web.Request, handler: Any) -> web.StreamResponse:
            with self._arrived:
                self._now += 1
                self._arrived.notify_all()
            try:
                return await handler(request)
            finally:
                self._now -= 1

        app = web.Application(middlewares=[count], client_max_size=64 * 1024 * 1024)
        openai_api.add_routes(app, self)
        ollama_api.add_routes(app, self)
        runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, backlog=2048)
        await site.start()
        assert site._server is not None
        self.port = site._server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()
