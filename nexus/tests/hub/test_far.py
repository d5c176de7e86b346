"""Worlds in other processes: they go on when their game's process ends and comes back, and nothing is lost if not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hub_kit
import pytest
from warm import begin_python
from wire_server import PATIENCE, Served, problem, serving

from wsap_core.errors import ProtocolVersionError
from wsap_core.protocol import Action, AvatarSpec, Entry, PortableItem
from wsap_core.protocol.wire import encode
from wsap_core.seams.context import derive_seed
from wsap_core.specs import AdapterSpec
from wsap_core.version import PROTOCOL_VERSION
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.hub.games.remote_games import read_spec
from wsap_nexus.hub.nexus import Settings
from wsap_nexus.hub.transit.entering import prepare_enter
from wsap_nexus.store.entities import EntryRequest
from wsap_nexus.worlds.port import LocalWorld, WorldPort
from wsap_nexus.worlds.remote import http_lines
from wsap_nexus.worlds.remote.game_client import GameClient, GameLostError, GameTimeouts
from wsap_nexus.worlds.remote.http_lines import HttpLines
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.seats import SeatPort

# Any, in this module: JSON.

TOKEN = "t" * 20
ALL = "seed,snapshot,avatars,transit"
GAME = """
import sys
from dataclasses import replace
sys.path.insert(0, sys.argv[1])
import hub_kit
from wsap_nexus.worlds.remote.serve_world import serve_world
spec = replace(hub_kit.QUARRY, name="far-quarry", abilities=tuple(sys.argv[3].split(",")))
serve_world(spec, port=int(sys.argv[2]), token="t" * 20)
"""
DEEDS = ("dig", "dig", "dig", "rest", "dig", "dig", "rest", "forge", "dig", "forge", "dig", "rest") * 2


class Process:
    """A game's process, which can be killed and started again at its address.

    Args:
        abilities: of the game.
    """

    def __init__(self, abilities: str = ALL) -> None:
        self._abilities = abilities
        self._port = 0
        self.url = ""
        self._start()

    def _start(self) -> None:
        self._process = begin_python(GAME, str(Path(__file__).parents[1] / "kit"), str(self._port), self._abilities)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().split()[-1]
        self._port = urlsplit(self.url).port or 0

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()
        self._process.communicate()

    def anew(self) -> None:
        """Kill it and start it again: it knows nothing of what was."""
        self.kill()
        self._start()


@contextmanager
def process(abilities: str = ALL) -> Iterator[Process]:
    game = Process(abilities)
    try:
        yield game
    finally:
        game.kill()


@pytest.fixture
def game() -> Iterator[Process]:
    with process() as running:
        yield running


ITEM = PortableItem("rope-1", "rope", "tool", 1, origin="crafter")
ENTRY = Entry("transfer-1", "eve", {"crafting": 0.5}, (ITEM,))


async def arrive(face: WorldPort) -> SeatPort:
    await face.begin(7)
    body = await face.create_avatar("eve", AvatarSpec("Eve"))
    assert body is not None
    receipt = await face.admit(body.avatar_id, ENTRY)
    assert list(receipt.admitted) == ["rope-1"]
    return await face.open_seat("eve")


async def do(seat: SeatPort, deeds: tuple[str, ...]) -> list[Any]:
    """Do some deeds and return what was seen and what came of them, as JSON."""
    found = []
    for deed in deeds:
        seen = await seat.observe()
        outcome = await seat.step(Action(deed))
        found.append((encode(seen), encode(outcome.result)))
        if seat.done:
            break
    return found


async def undisturbed(deeds: tuple[str, ...]) -> tuple[list[Any], Any]:
    """Return what the same deeds lead to in a world in this process, and what is let out in the end."""
    world = LocalWorld(hub_kit.QUARRY, 5, {})
    found = await do(await arrive(world), deeds)
    return found, encode(await world.release("digger-1", "eve-leaves"))


async def far_world(
    url: str, number: int = 1, *, failed: Callable[[WorldFailedError], None] | None = None, every: int = 4, **how: Any
) -> tuple[RemoteWorld, GameClient]:
    client = GameClient(url, TOKEN, **how)
    spec: AdapterSpec = read_spec(await client.ask("GET", "/"), client)
    lines = HttpLines(spec, f"w-{number}", client, failed)
    return RemoteWorld(spec, 5, {}, pool=lines, on_failure=failed, snapshot_every=every), client


def test_a_request_that_is_repeated_when_its_game_is_let_go_opens_no_connection() -> None:
    async def play(url: str) -> None:
        waited: list[float] = []

        async def closing(seconds: float) -> None:
            waited.append(seconds)
            await client.close()

        client = GameClient(url, TOKEN, sleep=closing)
        with pytest.raises(GameLostError, match="are closed"):
            await client.ask("GET", "/")
        assert len(waited) == 1

    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        asyncio.run(play(f"http://127.0.0.1:{nobody.getsockname()[1]}"))


@pytest.mark.slow
@pytest.mark.parametrize("abilities", [ALL, "seed,avatars,transit"], ids=["from its state", "from its beginning"])
@pytest.mark.parametrize("when", [1, 13])
def test_a_world_goes_on_where_it_was_when_its_game_is_started_anew(abilities: str, when: int) -> None:
    async def play(game: Process) -> None:
        failures: list[WorldFailedError] = []
        world, client = await far_world(game.url, failed=failures.append)
        seat = await arrive(world)
        found = await do(seat, DEEDS[:when])
        await asyncio.to_thread(game.anew)
        found += await do(seat, DEEDS[when:])
        wanted, package = await undisturbed(DEEDS)
        assert found == wanted
        assert world.rebuilt == 1
        assert len(failures) == 1
        # It is let out once, also when the game forgets that it was.
        assert encode(await world.release("digger-1", "eve-leaves")) == package
        await asyncio.to_thread(game.anew)
        assert encode(await world.release("digger-1", "eve-leaves")) == package
        await world.close()
        await client.close()

    with process(abilities) as game:
        asyncio.run(play(game))


def test_the_end_of_a_process_counts_once_however_many_worlds_were_in_it(game: Process) -> None:
    async def play() -> None:
        failures: list[WorldFailedError] = []
        first, client = await far_world(game.url, failed=failures.append)
        lines = HttpLines(first.spec, "w-2", client, failures.append)
        second = RemoteWorld(first.spec, 5, {}, pool=lines, on_failure=failures.append)
        seats = [await arrive(first), await arrive(second)]
        await asyncio.to_thread(game.anew)
        wanted, _ = await undisturbed(DEEDS[:3])
        assert await asyncio.gather(*(do(seat, DEEDS[:3]) for seat in seats)) == [wanted, wanted]
        assert len(failures) == 1
        await asyncio.gather(first.close(), second.close())
        await client.close()

    asyncio.run(play())


def test_a_break_of_the_connection_alone_is_no_failure_of_the_game(game: Process) -> None:
    async def play() -> None:
        failures: list[WorldFailedError] = []
        world, client = await far_world(game.url, failed=failures.append)
        seat = await arrive(world)
        cut, client._client = client._client, None
        assert cut is not None
        await cut.aclose()  # every connection is cut; the next request makes another
        wanted, _ = await undisturbed(DEEDS[:3])
        assert await do(seat, DEEDS[:3]) == wanted
        assert (failures, world.rebuilt) == ([], 0)
        assert all(entry.answer is None for _, entry in world._line.journal.events)  # replies are not kept
        await world.close()
        await client.close()

    asyncio.run(play())


def test_without_snapshots_and_seeds_a_world_is_not_brought_back_and_it_is_said_why() -> None:
    async def play(game: Process) -> None:
        world, client = await far_world(game.url)
        seat = await arrive(world)
        await do(seat, DEEDS[:3])
        await asyncio.to_thread(game.anew)
        with pytest.raises(WorldFailedError, match="no snapshots and no seeds"):
            await do(seat, DEEDS[3:])
        await world.close()
        await client.close()

    with process("avatars,transit") as game:
        asyncio.run(play(game))


def test_a_game_that_does_not_come_back_is_given_up(game: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_lines, "BACK", 0.2)

    async def play() -> None:
        failures: list[WorldFailedError] = []
        world, client = await far_world(game.url, failed=failures.append, timeouts=GameTimeouts(seconds=0.0))
        lines = HttpLines(world.spec, "w-2", client, failures.append)
        other = RemoteWorld(world.spec, 5, {}, pool=lines, on_failure=failures.append)
        seats = [await arrive(world), await arrive(other)]
        await asyncio.to_thread(game.kill)
        counted = []
        for seat in seats:
            with pytest.raises(WorldFailedError, match="did not return within") as caught:
                await do(seat, DEEDS[:1])
            counted.append(caught.value.counted)
        # What both notice is one failure, and nobody was at work when it ended: whoever is told first counts it.
        assert (counted, failures) == ([False, True], [])
        await asyncio.gather(world.close(), other.close())
        await client.close()

    asyncio.run(play())


def test_a_name_that_the_game_does_not_know_is_its_word_and_not_its_end(game: Process) -> None:
    async def play() -> None:
        world, client = await far_world(game.url)
        await arrive(world)
        await client.ask("DELETE", "/worlds/w-1")
        with pytest.raises(WorldFailedError, match="has lost its world"):
            await world.avatars("eve")
        assert world.rebuilt == 0
        await world.close()
        await client.close()

    asyncio.run(play())


# --- in a nexus -----------------------------------------------------------------------------------------


@contextmanager
def nexus_with(folder: Path, game: Process, **settings: Any) -> Iterator[Served]:
    with ExitStack() as stack:
        how = Settings(seed=7, lobby_seconds=0.05, **settings)
        served = stack.enter_context(serving(folder, host=hub_kit.host(), settings=how))
        with served.client() as owner:
            owner.post("/nexus/games", json={"base_url": game.url, "token": TOKEN})
        yield served


def give(served: Served, agent: str) -> None:
    with served.nexus.nexus_store.change() as tx:
        tx.mint_item(agent, ITEM, game="crafter", session="before")


def where(served: Served, agent: str) -> dict[str, str]:
    with served.nexus.nexus_store.look() as tx:
        return {record.item.item_id: record.place for record in tx.items(agent)}


@pytest.mark.slow
def test_an_agent_notices_nothing_when_its_game_is_started_anew(
    tmp_path: Path, game: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_lines, "BACK", PATIENCE)  # a start takes as long as it takes
    with nexus_with(tmp_path, game) as served, served.register("eve") as eve:
        give(served, "eve")
        arrived = eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "far-quarry"}).json()
        for _ in range(3):
            assert eve.post(f"{arrived['bridge_url']}/act", json={"name": "dig"}).status_code == 200
        game.anew()
        for number in range(3):
            acted = eve.post(f"{arrived['bridge_url']}/act", json={"name": "dig"})
            assert acted.status_code == 200, acted.text
            assert acted.json()["result"]["observation"]["step"] == 4 + number
        left = eve.post(f"{arrived['bridge_url']}/jack-out", json={}).json()
        assert "rope-1" in [item["item_id"] for item in left["package"]["items"]]
        assert where(served, "eve")["rope-1"] == "escrow"


@pytest.mark.slow
def test_bodies_are_known_by_the_name_that_the_game_has_here(tmp_path: Path, game: Process) -> None:
    with nexus_with(tmp_path, game) as served, served.register("eve") as eve:
        arrived = eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "far-quarry"}).json()
        eve.post(f"{arrived['bridge_url']}/jack-out", json={})
        with served.nexus.nexus_store.look() as tx:
            assert [body.avatar.game_id for body in tx.avatars("eve", "far-quarry")] == ["far-quarry"]
            assert tx.avatars("eve", "quarry") == []


@pytest.mark.slow
def test_agents_come_home_from_a_game_that_cannot_bring_its_worlds_back_and_it_is_offline(tmp_path: Path) -> None:
    with (
        process("avatars,transit") as game,
        nexus_with(tmp_path, game, max_failures=1) as served,
        served.register("eve") as eve,
    ):
        give(served, "eve")
        arrived = eve.post("/nexus/transit/enter", json={"agent_id": "eve", "game": "far-quarry"}).json()
        game.anew()
        refused = eve.post(f"{arrived['bridge_url']}/act", json={"name": "dig"})
        assert refused.status_code >= 400, refused.text
        served.in_loop(until(lambda: where(served, "eve") == {"rope-1": "escrow"}, served))
        with served.nexus.nexus_store.look() as tx:
            (session,) = tx.sessions(agent_id="eve")
            told = tx.events(kinds=("world_crashed",), limit=10)[0].body
        assert session.reason == "world_failed"
        assert "no snapshots and no seeds" in told["error"]
        assert served.nexus.breaker.of("far-quarry").status == "offline"


async def until(holds: Callable[[], bool], served: Served) -> None:
    """Wait for events of the nexus until something holds."""
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    stop = served.nexus.nexus_store.listen(lambda _: loop.call_soon_threadsafe(changed.set))
    try:
        while not holds():
            await asyncio.wait_for(changed.wait(), PATIENCE)
            changed.clear()
    finally:
        stop()


def in_the_middle(served: Served) -> Callable[[], Awaitable[str]]:
    """Return what brings an agent's things into the game and goes no further, as a nexus killed there does."""

    async def cut() -> str:
        nexus = served.nexus
        spec = nexus.remote_games.specs()["far-quarry"]
        with nexus.nexus_store.change() as tx:
            way = prepare_enter(tx, "eve", spec, EntryRequest())
            record = tx.add_world(spec.name, "eve", derive_seed(7, "way"), {})
            tx.send_to(way.transfer_id, record.id)
        world = nexus.remote_games.world(spec, record)
        await world.begin(record.seed)
        body = await world.create_avatar("eve", AvatarSpec("Eve"))
        assert body is not None
        await world.admit(body.avatar_id, Entry(way.transfer_id, "eve", {}, (ITEM,)))
        return record.id

    return cut


@pytest.mark.slow
def test_a_world_in_which_nobody_arrived_does_not_stay_in_the_game(tmp_path: Path, game: Process) -> None:
    with nexus_with(tmp_path, game) as served:
        served.register("eve").close()
        give(served, "eve")
        world = served.in_loop(in_the_middle(served)())
    with nexus_with(tmp_path, game) as served:
        served.in_loop(served.nexus.remote_games.settle())
        assert where(served, "eve") == {"rope-1": "escrow"}
        client = served.nexus.remote_games.specs()["far-quarry"].factory
        with pytest.raises(WorldFailedError, match="has lost its world"):
            served.in_loop(client.ask("GET", f"/worlds/{world}/snapshot"))


# --- a person decides -----------------------------------------------------------------------------------


@contextmanager
def doubt(folder: Path, game: Process) -> Iterator[Served]:
    """Give a nexus with a move in doubt into a game that is gone."""
    with nexus_with(folder, game) as served:
        served.register("eve").close()
        give(served, "eve")
        served.in_loop(in_the_middle(served)())
    game.kill()
    with serving(folder, host=hub_kit.host()) as served:
        assert where(served, "eve") == {"rope-1": "transfer"}
        yield served


@pytest.mark.parametrize(("outcome", "place"), [("returned", "escrow"), ("arrived", "lost")])
@pytest.mark.slow
def test_a_person_settles_a_move_that_stays_in_doubt(tmp_path: Path, game: Process, outcome: str, place: str) -> None:
    with doubt(tmp_path, game) as served, served.client() as owner, served.client("") as anybody:
        path = "/nexus/agents/eve/settle"
        assert problem(anybody.post(path, json={"outcome": outcome}))[0] == 401
        assert problem(owner.post(path, json={"outcome": "vanished"}))[0] == 400
        assert problem(owner.post(path, json={"outcome": outcome, "transfer": "transfer-99"})) == (404, "UNKNOWN_NAME")
        assert where(served, "eve") == {"rope-1": "transfer"}
        answer = owner.post(path, json={"outcome": outcome})
        assert answer.status_code == 200, answer.text
        (settled,) = answer.json()["settled"]
        # The world was made for this way alone, and is no more: what arrived there is lost.
        assert (settled["outcome"], settled["items"], settled["place"]) == (outcome, ["rope-1"], place)
        assert where(served, "eve") == {"rope-1": place}
        with served.nexus.nexus_store.look() as tx:
            (event,) = tx.events(kinds=("transfer_settled",), limit=10)
            assert tx.transfers("prepared", "unknown") == []
        assert (event.agent_id, event.game, event.body["outcome"]) == ("eve", "far-quarry", outcome)
        assert problem(owner.post(path, json={"outcome": outcome})) == (409, "TRANSIT_REFUSED")
        assert served.in_loop(served.nexus.remote_games.settle()) == 0


@pytest.mark.slow
def test_what_a_game_says_after_a_person_has_decided_changes_nothing(tmp_path: Path, game: Process) -> None:
    with doubt(tmp_path, game) as served, served.client() as owner:
        elsewhere = served.nexus.remote_games
        with served.nexus.nexus_store.look() as tx:
            (row,) = tx.transfers("unknown")
        owner.post("/nexus/agents/eve/settle", json={"outcome": "arrived"})

        async def late() -> None:
            elsewhere._withdrawn(row, {"known": False})
            package = {"transfer_id": row.id, "items": [encode(ITEM)]}
            elsewhere._withdrawn(row, {"known": True, "package": package})

        served.in_loop(late())
        assert where(served, "eve") == {"rope-1": "lost"}


@pytest.mark.parametrize("version", [PROTOCOL_VERSION, "1.99.3"])
def test_a_game_of_a_newer_minor_version_of_the_protocol_is_read(version: str) -> None:
    told = {"game": {"name": "town", "protocol_version": version}}
    assert read_spec(told, GameClient("http://127.0.0.1:7801", TOKEN)).protocol_version == version


@pytest.mark.parametrize("version", ["2.0.0", "0.9.0", "1.0", "one", "1.0.0.0", "1.٢.0", "1.0.0\n"])
def test_a_game_of_another_major_version_or_of_no_version_is_refused(version: str) -> None:
    told = {"game": {"name": "town", "protocol_version": version}}
    with pytest.raises(ProtocolVersionError, match="game at http://127"):
        read_spec(told, GameClient("http://127.0.0.1:7801", TOKEN))


def test_of_the_terms_of_an_entry_only_those_of_the_protocol_are_taken_over() -> None:
    terms = {"spawn": ["challenging"], "bogus": ["x"]}
    told = {"game": {"name": "town", "protocol_version": PROTOCOL_VERSION, "terms": terms}}
    assert read_spec(told, GameClient("http://127.0.0.1:7801", TOKEN)).terms == {"spawn": ("challenging",)}
