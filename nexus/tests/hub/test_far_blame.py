"""Who is held to blame for the end of a game's process elsewhere: a world that alone was at work then, and no other.

The process is an application within this one, and requests to it are held where a test wants them, so that every
order in which an end is heard of is arranged, and nothing is waited for by the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2
import hub_kit
import pytest
from test_far import DEEDS, arrive, do, undisturbed

from wsap_core.protocol.wire import dumps
from wsap_core.specs import OptionDef
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.hub.games.remote_games import read_spec
from wsap_nexus.worlds.remote.game_client import GameClient
from wsap_nexus.worlds.remote.http_lines import HttpLines
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.remote.serve_world import world_app

# Any, in this module: JSON.

URL = "http://127.0.0.1:7801"


async def until(holds: Callable[[], bool]) -> None:
    """Let others have their turn until something holds."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 each turn of the others may be the one, and no time passes
            await asyncio.sleep(0)


class Town(GameClient):
    """A game's process, and the way to it, on which requests are held."""

    def __init__(self) -> None:
        super().__init__(URL, sleep=self._wait_for_it)
        self.app: Any = None  # ASGI; None while there is no process
        self.waiting = 0
        """How many requests wait for the process to be there again."""
        self.holding = False
        """Whether actions are held while they are carried out."""
        self.carried_out: dict[str, asyncio.Future[None]] = {}
        """What is held so, by world."""
        self.through: set[str] | None = None
        """The worlds whose requests get through to the process; None for all."""
        self.returning: set[str] | None = None
        """Worlds that are about to be brought back, where they are held before that; None where they are not."""
        self.start()

    def start(self) -> None:
        """Start the process; it knows nothing of what was."""
        self.app = world_app(hub_kit.QUARRY)

    def end(self) -> None:
        """End the process: whoever is at work in it is cut off, and nobody gets through any more."""
        self.app = None
        for held in self.carried_out.values():
            held.set_exception(httpx2.ReadError("the connection was reset"))
        self.carried_out.clear()

    def let_through(self) -> None:
        """Hold nothing any more."""
        self.holding, self.through, self.returning = False, None, None
        for held in self.carried_out.values():
            held.set_result(None)
        self.carried_out.clear()

    async def _wait_for_it(self, _: float) -> None:
        self.waiting += 1
        await until(lambda: self.app is not None)
        self.waiting -= 1

    async def _send(self, method: str, path: str, body: Any, key: str) -> tuple[int, Any]:
        """Send, unless it is held."""
        if self.app is None:
            raise httpx2.ConnectError("nobody listens")
        world = path.split("/")[2] if path.startswith("/worlds/") else ""
        if world:
            await until(lambda: self.through is None or world in self.through)
            if self.holding and path.endswith("/act") and world in self.app.state.host.worlds:
                self.carried_out[world] = asyncio.get_running_loop().create_future()
                await self.carried_out[world]
        task = asyncio.current_task()
        if task is not None and task.get_name().startswith("bring") and self.returning is not None:
            self.returning.add(f"{id(task)}")
            await until(lambda: self.returning is None)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(self.app), base_url=URL) as client:
            headers = {} if method == "GET" else {"Idempotency-Key": key}
            answered = await client.request(method, path, json=body, headers=headers)
        return answered.status_code, self._read(answered.status_code, answered.content, path)


def test_a_served_game_tells_nobody_what_is_preset_of_its_machine() -> None:
    own = (OptionDef("log", "A file.", names="path"), OptionDef("kind", "Any text."))
    app = world_app(replace(hub_kit.QUARRY, options=own, preset={"log": "/srv/ann/log", "kind": "deep"}))

    async def asked() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=URL) as client:
            return await client.get("/")

    told = asyncio.run(asked())
    assert told.json()["game"]["preset"] == {"kind": "deep"}
    assert "/srv/ann" not in told.text


async def worlds(town: Town, number: int, failed: Callable[[WorldFailedError], None]) -> list[RemoteWorld]:
    """Return worlds in it that nothing was asked of yet: `w-1`, `w-2` ..."""
    spec = read_spec(await town.ask("GET", "/"), town)
    ways = [HttpLines(spec, f"w-{n}", town, failed) for n in range(1, number + 1)]
    return [RemoteWorld(spec, 5, {}, pool=lines, on_failure=failed) for lines in ways]


def test_a_served_game_takes_no_option_that_names_what_its_machine_has() -> None:
    own = (OptionDef("log", "A file.", names="path"), OptionDef("kind", "Any text."))
    app = world_app(replace(hub_kit.QUARRY, options=own))

    async def put(options: dict[str, object]) -> httpx2.Response:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=URL) as client:
            return await client.put(
                "/worlds/w-1", json={"options": options}, headers={"Idempotency-Key": dumps(options)}
            )

    refused = [asyncio.run(put(options)) for options in ({"log": "/tmp/x"}, {"kind": "@/etc/passwd"})]
    assert [answer.status_code for answer in refused] == [403, 403]
    assert "The option log names a file or folder of this machine" in refused[0].json()["error"]["message"]
    assert app.state.host.worlds == {}


@pytest.mark.slow
def test_of_several_worlds_at_work_when_their_process_ends_nobody_is_to_blame_whoever_hears_of_it_last() -> None:
    async def play() -> None:
        failures: list[WorldFailedError] = []
        town = Town()
        faces = await worlds(town, 3, failures.append)
        seats = [await arrive(face) for face in faces]
        town.holding = True
        playing = [asyncio.create_task(do(seat, DEEDS[:3])) for seat in seats]
        for _ in range(2):
            # All are at work when it ends; then one after the other hears of it, and is through with its call
            # before the next one does.
            await until(lambda: set(town.carried_out) == {"w-1", "w-2", "w-3"})
            town.through, town.returning = set(), set()
            town.end()
            town.start()
            for number in (1, 2, 3):
                town.through.add(f"w-{number}")
                await until(lambda number=number: len(town.returning or ()) == number)  # type: ignore[misc]
            town.through = town.returning = None
        await until(lambda: set(town.carried_out) == {"w-1", "w-2", "w-3"})
        town.let_through()
        wanted, _ = await undisturbed(DEEDS[:3])
        assert await asyncio.gather(*playing) == [wanted] * 3
        # Each end counts once, as the game's.
        assert ["was restarted" in str(failure) for failure in failures] == [True, True]
        for face in faces:
            await face.close()

    asyncio.run(play())


def test_a_world_that_alone_was_at_work_when_its_process_ended_twice_in_a_row_is_given_up() -> None:
    async def play() -> None:
        failures: list[WorldFailedError] = []
        town = Town()
        face, other = await worlds(town, 2, failures.append)
        seat, idle = await arrive(face), await arrive(other)
        town.holding = True
        playing = asyncio.create_task(do(seat, DEEDS[:3]))
        for _ in range(2):
            await until(lambda: set(town.carried_out) == {"w-1"})
            town.end()
            town.start()
        with pytest.raises(WorldFailedError, match="failed: its process ended") as caught:
            await playing
        assert caught.value.counted
        assert len(failures) == 1, "it is one failure, repeated"
        town.let_through()
        wanted, _ = await undisturbed(DEEDS[:3])
        assert await do(idle, DEEDS[:3]) == wanted  # the other one is brought back when it is asked
        await asyncio.gather(face.close(), other.close())

    asyncio.run(play())


def test_whoever_asks_only_when_the_process_is_gone_is_not_to_blame_for_that() -> None:
    async def play() -> None:
        failures: list[WorldFailedError] = []
        town = Town()
        (face,) = await worlds(town, 1, failures.append)
        seat = await arrive(face)
        town.end()  # nobody is at work
        town.holding = True
        playing = asyncio.create_task(do(seat, DEEDS[:3]))
        await until(lambda: town.waiting == 1)
        town.start()
        await until(lambda: set(town.carried_out) == {"w-1"})
        town.end()  # now it is alone at work, once
        town.start()
        await until(lambda: set(town.carried_out) == {"w-1"})
        town.let_through()
        wanted, _ = await undisturbed(DEEDS[:3])
        assert await playing == wanted
        assert len(failures) == 2
        await face.close()

    asyncio.run(play())


def test_what_else_is_asked_of_the_process_counts_as_work_that_may_have_ended_it() -> None:
    async def play() -> None:
        failures: list[WorldFailedError] = []
        town = Town()
        (face,) = await worlds(town, 1, failures.append)
        seat = await arrive(face)
        town.holding = True
        playing = asyncio.create_task(do(seat, DEEDS[:1]))
        for _ in range(2):
            await until(lambda: set(town.carried_out) == {"w-1"})
            town.begin_work("/transfers/transfer-1")  # a move in doubt is withdrawn meanwhile
            town.end()
            await until(lambda: town.waiting == 1)
            town.end_work("/transfers/transfer-1")
            town.start()
        await until(lambda: set(town.carried_out) == {"w-1"})
        town.let_through()
        wanted, _ = await undisturbed(DEEDS[:1])
        assert await playing == wanted
        await face.close()

    asyncio.run(play())
