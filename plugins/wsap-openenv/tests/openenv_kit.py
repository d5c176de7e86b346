"""A server of a game in a thread of its own, and a client that speaks OpenEnv's wire."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import connect

from wsap_nexus.doors import outside
from wsap_nexus.http.listening import Address
from wsap_openenv.serving import serve
from wsap_openenv.sessions import Sessions, Terms


class Server:
    """A server that runs."""

    def __init__(self, url: str, sessions: Sessions, loop: asyncio.AbstractEventLoop) -> None:
        self.url, self.sessions, self._loop = url, sessions, loop

    @property
    def socket(self) -> str:
        """The address of the web socket."""
        return f"ws{self.url.removeprefix('http')}/ws"

    def count(self) -> int:
        """Return the number of sessions."""
        return self.within(lambda: len(self.sessions))

    def within(self, do: Callable[[], Any]) -> Any:
        """Return what a function returns that is called in the server's loop."""
        told: Future[Any] = Future()
        self._loop.call_soon_threadsafe(lambda: told.set_result(do()))
        return told.result(60)


@contextmanager
def served(
    tmp_path: Path, game: str, *, token: str | None = None, limits: dict[str, Any] | None = None, **how: Any
) -> Iterator[Server]:
    """Yield a server of a game, recorded in a database of the test's folder."""
    ready: Future[Server] = Future()
    until: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def live() -> None:
        loop, event = asyncio.get_running_loop(), asyncio.Event()
        until.append((loop, event))
        with outside.opened(str(tmp_path / "wsap.db")) as runs:
            sessions = Sessions(runs, Terms(game, **how), chance=lambda below: 11, **(limits or {}))
            told = lambda url: ready.set_result(Server(url, sessions, loop))  # noqa: E731
            await serve(sessions, Address(port=0), token=token, ready=told, until=event)

    def main() -> None:
        try:
            asyncio.run(live())
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            else:
                raise

    thread = threading.Thread(target=main)
    thread.start()
    try:
        yield ready.result(120)
    finally:
        for loop, event in until:
            if not loop.is_closed():
                loop.call_soon_threadsafe(event.set)
        thread.join()


class Client:
    """A client of a server."""

    def __init__(self, url: str, **how: Any) -> None:
        self._held = ExitStack()
        self.socket = self._held.enter_context(connect(url, **how))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *about: object) -> None:
        self._held.close()

    def ask(self, kind: str, **data: Any) -> Any:
        """Return the data of the answer to a message; an error is an AssertionError."""
        answer = self.raw(json.dumps({"type": kind, "data": data}))
        assert answer["type"] != "error", answer
        return answer["data"]

    def refused(self, kind: str, **data: Any) -> tuple[str, str]:
        """Return the code and message of the error that answers a message."""
        return self.error(json.dumps({"type": kind, "data": data}))

    def error(self, text: str) -> tuple[str, str]:
        """Return the code and message of the error that answers a text."""
        answer = self.raw(text)
        assert answer["type"] == "error", answer
        return answer["data"]["code"], answer["data"]["message"]

    def raw(self, text: str) -> Any:
        """Return the whole answer to a text."""
        self.socket.send(text)
        return json.loads(self.socket.recv(60))


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until something is so; AssertionError after minutes."""
    end = time.monotonic() + 180
    while not is_so():
        assert time.monotonic() < end
        threading.Event().wait(0.02)
