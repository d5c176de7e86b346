"""A nexus served over real HTTP in a thread of this process, for the tests of the wire API."""

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

from wsap_core.host import PluginHost
from wsap_nexus.http.access.auth import own_token
from wsap_nexus.http.access.guard import HttpLimits
from wsap_nexus.http.listening import Address
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.server.serve import serve

# Any, in this module: JSON, and whatever a coroutine gives.

PATIENCE = 300.0
"""Seconds to wait for what has to happen; never waited for in full unless it fails."""


@dataclass
class Served:
    """A nexus that answers."""

    url: str
    token: str
    nexus: Nexus
    loop: asyncio.AbstractEventLoop

    def client(self, token: str | None = None, **options: Any) -> httpx2.Client:
        """Return a client with the token of whoever runs the nexus, or another; "" for none."""
        token = self.token if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # Without TLS there are no certificates to load, which takes a client longer than its requests.
        return httpx2.Client(base_url=self.url, headers=headers, timeout=PATIENCE, verify=False, **options)

    def register(self, agent_id: str, **values: Any) -> httpx2.Client:
        """Register an agent that is decided for over the wire, and return a client with its token."""
        with self.client() as owner:
            answer = owner.post("/nexus/agents", json={"id": agent_id, **values})
        assert answer.status_code == 201, answer.text
        return self.client(answer.json()["token"])

    def in_loop(self, coroutine: Any) -> Any:
        """Run a coroutine in the nexus' own loop, and return what it gives."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE)


@contextmanager
def serving(
    folder: Path,
    *,
    host: PluginHost | None = None,
    settings: Settings | None = None,
    limits: HttpLimits | None = None,
    address: Address | None = None,
    database: str | None = None,
) -> Iterator[Served]:
    """Give a nexus that answers, on a database in the folder or the one given, and stop it in good order."""
    ready: Future[Served] = Future()
    folder.mkdir(parents=True, exist_ok=True)

    async def main(ended: threading.Event) -> None:
        with open_store(database or str(folder / "wsap.db")) as store:
            nexus = Nexus(host or PluginHost.discovered(), store, settings or Settings(seed=7, lobby_seconds=0.05))
            until = asyncio.Event()
            loop = asyncio.get_running_loop()
            loop.run_in_executor(None, lambda: (ended.wait(), loop.call_soon_threadsafe(until.set)))
            file = folder / "nexus.token"

            def told(url: str) -> None:
                ready.set_result(Served(url.rstrip("/"), own_token(file), nexus, loop))

            try:
                await serve(nexus, address or Address(port=0), file, ready=told, until=until, limits=limits)
            finally:
                ended.set()

    ended = threading.Event()

    def run() -> None:
        try:
            asyncio.run(main(ended))
        except BaseException as error:
            ended.set()
            if ready.done():
                raise
            ready.set_exception(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield ready.result(PATIENCE)
    finally:
        ended.set()
        thread.join(PATIENCE)


def problem(answer: httpx2.Response) -> tuple[int, str]:
    """Return the status and code of a refusal, after seeing that it has the one form."""
    error = answer.json()["error"]
    assert sorted(error) == ["code", "details", "message", "retry", "timestamp"]
    assert isinstance(error["retry"], bool)
    assert error["message"]
    return answer.status_code, error["code"]
