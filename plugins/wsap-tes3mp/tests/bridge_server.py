"""A bridge served over real HTTP in a thread of this process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from scripted_engine import ScriptedEngine

from wsap_nexus.http.access.guard import HttpLimits
from wsap_nexus.http.listening import Address
from wsap_tes3mp.bridge.app import serve
from wsap_tes3mp.bridge.bridge import Bridge
from wsap_tes3mp.log.log import CommandLog

PATIENCE = 60.0
"""Seconds to wait for what has to happen; never waited for in full unless it fails."""
TOKEN = "t" * 32
LIMITS = HttpLimits(rate=1e6, burst=1e6, body_seconds=5, heartbeat=0.2)


@dataclass
class Served:
    """A bridge that answers. Any: JSON."""

    url: str
    engine: ScriptedEngine
    bridge: Bridge
    log: CommandLog
    loop: asyncio.AbstractEventLoop
    http: httpx2.Client

    def post(self, body: Any = None, **headers: str) -> httpx2.Response:
        """Submit a command."""
        return self.http.post("/command", json=command() if body is None else body, headers=headers)

    def then(self, work: Any) -> None:
        """Let commands end as a coroutine function of the loop says."""
        self.engine.then = work

    def in_loop(self, work: Any) -> Any:
        """Call a function in the loop of the bridge, and return what it gives."""

        async def call() -> Any:
            return work()

        return asyncio.run_coroutine_threadsafe(call(), self.loop).result(PATIENCE)


def command(name: str = "wait", **changes: Any) -> dict[str, Any]:
    """Return a command as the seed prints it."""
    params: dict[str, Any] = {"duration_seconds": 1.0} if name == "wait" else {}
    body = {
        "protocol_version": "1.0.0",
        "timestamp": "2026-03-21T14:30:01Z",
        "agent_id": "ada",
        "command": name,
        "params": params,
        "reasoning": "Nothing to do.",
    }
    return {**body, **changes}


@contextmanager
def serving(
    *agents: str, path: Path | None = None, trusting: bool = False, limits: HttpLimits = LIMITS, **options: Any
) -> Iterator[Served]:
    """Give a bridge that answers, and stop it in good order. Any: of `Bridge`."""
    ready: Future[Served] = Future()
    ended = threading.Event()

    async def main() -> None:
        with CommandLog(path) as log:
            engine = ScriptedEngine(*agents)
            bridge = Bridge(engine, log, **options)
            until, loop = asyncio.Event(), asyncio.get_running_loop()
            waiting = loop.run_in_executor(None, lambda: (ended.wait(), loop.call_soon_threadsafe(until.set)))

            def told(url: str) -> None:
                url = url.rstrip("/")
                http = httpx2.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE)
                ready.set_result(Served(url, engine, bridge, log, loop, http))

            try:
                await serve(
                    bridge, Address("127.0.0.1", 0), TOKEN, until=until, ready=told, limits=limits, trusting=trusting
                )
            finally:
                ended.set()
                await waiting

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            if not ready.done():
                ready.set_exception(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        served = ready.result(PATIENCE)
        with served.http:
            yield served
    finally:
        ended.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
