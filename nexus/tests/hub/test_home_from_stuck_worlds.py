"""A game in this process that lets an agent neither in nor out keeps nobody: for ever, or whom a person wants back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import hub_checks
import pytest
from life_kit import Hasty, Place, host_with, nexus_at
from living_worlds import FAIR, Fair

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, AdapterSpec, AgentSpec, Context, Observation
from wsap_core.errors import WsapError
from wsap_core.protocol import Entry, PortableItem, Receipt, Tick, TransitPackage
from wsap_nexus.hub.play import kept, passages
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.store.entities import EntryRequest, Policy
from wsap_nexus.worlds.workers.pool import WorkerTimeouts

pytestmark = pytest.mark.every_database

RUN = "nexus-glade"


class Bog(Fair):
    """A fair whose ticks and entrances take their time."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.held = ""
        self.go = asyncio.Event()

    async def advance(self) -> Tick:
        if self.held == "tick":
            await self.go.wait()
        return await super().advance()

    async def admit(self, avatar_id: str, entry: Entry) -> Receipt:  # type: ignore[override]  # either is permitted
        if self.held == "admit":
            await self.go.wait()
        return super().admit(avatar_id, entry)


BOG = replace(FAIR, name="bog", factory=Bog)


class Cave:
    """Has room for one, and lets it out, or in, never; `never` is the method that does not return."""

    game_description = "A cave."
    action_space = ActionSpace((ActionDef("dig", "Dig."),))
    never = "release"

    def reset(self, seed: int = 0) -> Observation:
        return self.observe()

    def observe(self) -> Observation:
        return Observation(step=0)

    def act(self, action: Action) -> ActionResult:
        return ActionResult(True, "Done.", observation=self.observe())

    async def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        await self._go("admit")
        return Receipt(entry.transfer_id, {}, tuple(item.item_id for item in entry.items))

    async def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        await self._go("release")
        return TransitPackage(transfer_id)

    async def _go(self, way: str) -> None:
        if way == Cave.never:
            await asyncio.Event().wait()


CAVE = AdapterSpec("cave", "A cave.", Cave, abilities=("transit",))


@pytest.mark.parametrize("way", ["admit", "release"])
def test_a_game_in_this_process_has_a_limited_time_to_let_an_agent_in_or_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(Cave, "never", way)
    policies = {"ada": {"*": Policy("random"), "nexus": Policy("random")}}

    async def test() -> None:
        async with nexus_at(
            tmp_path, policies, host=host_with(CAVE), games=("cave",), timeouts=WorkerTimeouts(deadline=0.02)
        ) as place:
            if way == "admit":
                with pytest.raises(WsapError, match="did not let 'ada' in within 0 s"):
                    await place.nexus.enter("ada", "cave", EntryRequest())
            else:
                await place.nexus.enter("ada", "cave", EntryRequest(steps=2))
                (crashed,) = await place.until_events("world_crashed", agent="ada")
                assert "did not let 'ada' go within 0 s" in crashed.body["error"]
            await place.until(lambda: at(place, "ada") == "nexus")
            assert place.events("game_failed")

    asyncio.run(test())


def nexus(path: Path) -> Any:
    from test_called_home_together import Planter

    class Anywhere(Planter):
        """Plants in the bog."""

        def __init__(self, context: Context) -> None:
            super().__init__(context)
            self._world = "choir" if context.world == "bog" else context.world

    host = host_with(BOG, AgentSpec("planter", "Plants.", Anywhere, abilities=("snapshot",)))
    policies = {agent: {"*": Policy("planter"), "nexus": Policy("planter")} for agent in ("ada", "bob")}
    worlds = (KeptWorld("glade", "bog"),)
    return nexus_at(path, policies, host=host, games=(), worlds=worlds, clock=Hasty(), pace=100.0)


def bog(place: Place) -> Bog:
    world = place.nexus.kept.open[0].passages.run.world
    assert world is not None
    adapter = world.adapter
    assert isinstance(adapter, Bog)
    return adapter


def ticks(place: Place) -> int:
    return len(place.logged(RUN, "tick"))


def at(place: Place, agent: str) -> str:
    with place.nexus.nexus_store.look() as tx:
        return tx.agent(agent).place


async def go_on(place: Place) -> None:
    before = ticks(place)
    await place.until(lambda: ticks(place) >= before + 2)


async def enter_and_get_stuck(place: Place) -> Bog:
    """Let ada play in the bog until a tick of it does not end; return the bog."""
    await place.nexus.enter("ada", "bog", EntryRequest())
    await place.until(lambda: len(place.logged(RUN, "step")) > 2)
    stuck = bog(place)
    stuck.held = "tick"
    run = place.nexus.kept.open[0].passages.run
    await place.until(lambda: run.ticking is not None)
    return stuck


@pytest.mark.parametrize("by", ["recall", "offline"])
def test_an_agent_comes_home_from_a_tick_that_does_not_end(tmp_path: Path, by: str) -> None:
    async def test() -> None:
        async with nexus(tmp_path) as place:
            with place.nexus.nexus_store.change() as tx:
                spoon = PortableItem("t-1:spoon", "spoon", "tool", 1, origin="kit")
                tx.mint_item("ada", spoon, game="kit", session="", transfer_id="t-1")
            stuck = await enter_and_get_stuck(place)
            if by == "recall":
                assert place.nexus.recall("ada")
            else:
                place.nexus.set_game_status("bog", "offline")
            (left,) = await place.until_events("left", agent="ada")
            assert (left.body["reason"], left.body["avatar_state"]) == (
                "kicked" if by == "recall" else "game_offline", "dormant",
            )  # fmt: skip
            with place.nexus.nexus_store.look() as tx:
                (spoon_now,) = tx.items("ada")
            assert (at(place, "ada"), spoon_now.place) == ("nexus", "escrow")
            stuck.held = ""
            stuck.go.set()
            await go_on(place)
            assert place.logged(RUN, "departed")
            place.nexus.set_game_status("bog", "available")
            await place.nexus.enter("ada", "bog", EntryRequest(steps=2))
            await place.until_events("left", 2, agent="ada")
        assert not hub_checks.problems(place.nexus.store.database)
        async with nexus(tmp_path) as place:
            await go_on(place)
            assert not place.events("world_rewound", "game_failed")

    asyncio.run(test())


def test_an_agent_that_came_home_from_such_a_tick_is_let_out_of_the_world_before_it_is_let_in_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passages, "INSISTED", 0.0)

    async def begin() -> None:
        async with nexus(tmp_path) as place:
            await enter_and_get_stuck(place)
            assert place.nexus.recall("ada")
            await place.until_events("left", agent="ada")
            assert not place.logged(RUN, "departed")
            place.nexus.store.repository.drop_kept_states(RUN)

    async def again() -> None:
        async with nexus(tmp_path) as place:
            # It asks to come in while the world still repeats what it did the last time.
            await place.nexus.enter("ada", "bog", EntryRequest(steps=2))
            _, left = await place.until_events("left", 2, agent="ada")
            assert (left.body["reason"], left.body["steps"]) == ("step_limit", 2)
            await go_on(place)
            logged = place.logged(RUN, "joined", "departed")
            assert [event.kind for event in logged] == ["joined", "departed", "joined", "departed"]
            place.nexus.store.repository.drop_kept_states(RUN)

    async def repeated() -> None:
        async with nexus(tmp_path) as place:
            await go_on(place)
            assert not place.events("world_rewound", "game_failed")
            assert not hub_checks.problems(place.nexus.store.database)

    for part in (begin, again, repeated):
        asyncio.run(part())


@pytest.mark.parametrize("where", ["tick", "admit"])
def test_an_agent_on_its_way_into_such_a_world_is_called_back(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "INSISTED", 0.0)

    async def test() -> None:
        async with nexus(tmp_path) as place:
            await go_on(place)
            stuck = bog(place)
            stuck.held = where
            run = place.nexus.kept.open[0].passages.run
            await place.until(lambda: where == "admit" or run.ticking is not None)
            coming = asyncio.create_task(place.nexus.enter("ada", "bog", EntryRequest()))
            await place.until(lambda: "ada" in place.nexus.live.entering)
            if where == "admit":
                await place.until(lambda: not place.nexus.kept.open[0].passages.waiting)
            assert place.nexus.recall("ada")
            with pytest.raises(WsapError, match="was called back before the world 'glade' had let it in"):
                await coming
            assert at(place, "ada") == "nexus"
            stuck.held = ""
            stuck.go.set()
            await go_on(place)
            assert at(place, "ada") == "nexus"
            await place.nexus.enter("ada", "bog", EntryRequest(steps=2))
            await place.until_events("left", agent="ada")
        assert not hub_checks.problems(place.nexus.store.database)
        async with nexus(tmp_path) as place:
            await go_on(place)
            assert not place.events("world_rewound", "game_failed")

    asyncio.run(test())
