"""A client of the nexus: it watches, talks, and lives there as an agent."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest
from mcp import Client
from mcp.types import CallToolResult, TextContent

from wsap_core.errors import UsageError
from wsap_core.host import PluginHost
from wsap_mcp import nexus_door
from wsap_mcp.tools import server_of
from wsap_nexus.client import RefusedError
from wsap_nexus.http.access.auth import own_token
from wsap_nexus.http.listening import Address
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.server.serve import serve
from wsap_nexus.store.entities import Policy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nexus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Yield the address of a nexus with one agent that lives there by itself, and its owner's token."""
    folder = tmp_path_factory.mktemp("nexus")
    ready: Future[str] = Future()
    ends: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def live() -> None:
        until = asyncio.Event()
        ends.append((asyncio.get_running_loop(), until))
        with open_store(str(folder / "wsap.db")) as store:
            nexus = Nexus(PluginHost.discovered(), store, Settings(pace=20.0, games=("echo", "crafter")))
            with nexus.nexus_store.change() as tx:
                tx.register("ada", name="Ada", policies={"*": Policy("wanderer", {}), "echo": Policy("random", {})})
            await serve(nexus, Address("127.0.0.1", 0), folder / "nexus.token", ready=ready.set_result, until=until)

    thread = threading.Thread(target=asyncio.run, args=(live(),))
    thread.start()
    try:
        yield ready.result(300).rstrip("/"), own_token(folder / "nexus.token")
    finally:
        loop, until = ends[0]
        loop.call_soon_threadsafe(until.set)
        thread.join()


def text(result: CallToolResult) -> str:
    (part,) = result.content
    assert isinstance(part, TextContent)
    return part.text


def test_a_client_lives_in_the_nexus(nexus: tuple[str, str]) -> None:
    url, token = nexus

    async def use() -> None:
        async with (
            nexus_door.connected(url, token, "eve") as door,
            Client(server_of("wsap-nexus", door.instructions, door.tools(), [])) as client,
        ):
            assert "You live there as 'eve'" in (client.instructions or "")
            seen = await client.call_tool("observe", {})
            assert seen.structured_content == {"place": "nexus", "step": 0}
            assert "crafter" in text(seen)
            entered = await client.call_tool("enter", {"game": "crafter", "goals": ["collect wood"]})
            assert not entered.is_error
            acted = await client.call_tool("act", {"action": "noop"})
            assert acted.structured_content["success"]
            refused = await client.call_tool("act", {"action": "fly"})
            assert refused.is_error
            left = await client.call_tool("leave", {})
            assert text(left).startswith("Left crafter after 3 decisions")
            events = await client.call_tool("events", {"agent": "eve", "limit": 10})
            assert {"entered", "left"} <= {event["kind"] for event in events.structured_content["events"]}
            overview = await client.call_tool("overview", {})
            assert overview.structured_content["counts"]["agents"] == 2
            assert "eve" in text(overview)
            unknown = await client.call_tool("enter", {"game": "craftr"})
            assert unknown.is_error
            assert "crafter" in text(unknown)

    asyncio.run(use())


def test_without_an_agent_a_client_only_watches_and_talks(nexus: tuple[str, str]) -> None:
    url, token = nexus

    async def use() -> None:
        async with (
            nexus_door.connected(url, token, None) as door,
            Client(server_of("wsap-nexus", door.instructions, door.tools(), [])) as client,
        ):
            assert {t.name for t in (await client.list_tools()).tools} == {"overview", "events", "games", "talk"}
            assert "echo" in (await client.call_tool("games", {})).structured_content["games"]
            answered = await client.call_tool("talk", {"agent": "ada", "text": "Where are you?"})
            assert text(answered)

    asyncio.run(use())


def test_nobody_takes_the_place_of_an_agent_that_lives_by_itself(nexus: tuple[str, str]) -> None:
    url, token = nexus

    async def use() -> None:
        with pytest.raises(UsageError, match="lives in this nexus by itself"):
            async with nexus_door.connected(url, token, "ada"):
                pass
        with pytest.raises(RefusedError):
            async with nexus_door.connected(url, "x" * 43, "eve"):
                pass

    asyncio.run(use())
