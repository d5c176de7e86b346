"""A home whose worlds an earlier version lost at every start goes on; see `data/stuck_home/README.md`."""

from __future__ import annotations

import asyncio
import itertools
import lzma
import sqlite3
from pathlib import Path
from typing import Any

import hub_checks
import pytest
from life_kit import Place, Script, host_with, nexus_at

from wsap_core import Action
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.restoring import Runs
from wsap_nexus.server.routes import overview

HOME = Path(__file__).parent / "data" / "stuck_home" / "nexus.db.xz"
WORLDS = (
    KeptWorld("village", "sandbox:village", {"language": "en"}),
    KeptWorld("hamlet", "sandbox:village", {"language": "en", "model": "script/it"}),
)
IN_WORLDS = {"ann": "village", "bob": "village", "fay": "hamlet"}


def ticks(place: Place, world: str) -> list[int]:
    place.nexus.store.writer.flush()
    return [event.step or 0 for event in place.nexus.store.repository.read_events(f"nexus-{world}", kinds=("tick",))]


async def act(place: Place, agent: str, name: str) -> None:
    seat, _ = await place.nexus.live.external.observation(agent)
    await seat.act(Action(name))


async def lives(place: Place) -> dict[str, Any]:
    """Have each world go on for two ticks, with whoever is in it; return where the agents are then."""
    before = {world.name: len(ticks(place, world.name)) for world in WORLDS}
    done: set[str] = set()

    async def play(agent: str) -> None:
        while IN_WORLDS[agent] not in done:
            with place.nexus.nexus_store.look() as tx:
                at = tx.agent(agent).place
            if at == "nexus":
                return
            await act(place, agent, "wait")

    players = [asyncio.ensure_future(play(agent)) for agent in IN_WORLDS]
    try:
        for world, count in before.items():
            await place.until(lambda world=world, count=count: len(ticks(place, world)) >= count + 2)  # type: ignore[misc]
            done.add(world)
    finally:
        for player in players:
            player.cancel()
        await asyncio.gather(*players, return_exceptions=True)
    with place.nexus.nexus_store.look() as tx:
        for agent in ("ann", "bob", "cid", "dan", "eve", "fay"):
            (spoon,) = tx.items(agent)
            if tx.agent(agent).place == "nexus":
                assert spoon.place == "escrow", agent
        return {agent: tx.agent(agent).place for agent in IN_WORLDS}


@pytest.mark.slow
def test_the_worlds_of_a_home_that_was_stuck_go_on_or_back_with_their_agents_and_things(tmp_path: Path) -> None:
    database = tmp_path / "nexus.db"
    database.write_bytes(lzma.decompress(HOME.read_bytes()))
    with sqlite3.connect(database) as old:
        assert old.execute("SELECT version_num FROM alembic_version").fetchone() == ("0006",)
    numbers = itertools.count(1)

    def host() -> Any:
        return host_with(script=Script({"intent": lambda request: f'{{"intention": "I do thing {next(numbers)}."}}'}))

    def nexus() -> Any:
        return nexus_at(tmp_path, {}, host=host(), games=("matrix", "echo"), pace=50.0, worlds=WORLDS)

    async def test() -> None:
        async with nexus() as place:
            await place.until(lambda: {"village", "hamlet"} <= set(place.nexus.live.worlds.values()))
            where = await lives(place)
            with place.nexus.nexus_store.look() as tx:
                said = [item["id"] for item in overview._failed(tx)]
                # Who is at home without having asked for it was brought there, and somebody is told why.
                back = {event.body["world"] for event in place.events("world_rewound")}
                assert {IN_WORLDS[agent] for agent, at in where.items() if at == "nexus"} <= back <= set(said)
            # Two play the matrix: dan waits for nobody who has left.
            await act(place, "dan", "cooperate")
            assert not place.events("game_failed", "world_crashed")
            newest = {world.name: ticks(place, world.name)[-1] for world in WORLDS}
            for name, tick in newest.items():
                await Runs(place.nexus.context.host, place.nexus.store.repository).restored(f"nexus-{name}", tick)
        assert not hub_checks.problems(place.nexus.store.database)
        async with nexus() as place:
            await lives(place)

    asyncio.run(test())
