"""Things that agents brought to a game of several seats come home with them when it fails."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from life_kit import Place, host_with, nexus_at

from wsap_core import Action, ActionDef, ActionResult, ActionSpace, AdapterSpec, Context, Observation
from wsap_core.protocol import Entry, PortableItem, Receipt, TransitPackage
from wsap_core.protocol.wire import Codec, encode
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, Policy

SWORDS = {name: PortableItem(f"sword-{name}", "Sword", "weapon", 3, {}, "crafter") for name in ("ada", "bob")}


class Counter:
    """A counter at which each seat bids at any time; it falls over at the bid of the number `falls`."""

    game_description = "A counter."
    action_space = ActionSpace((ActionDef("bid", "Bid."),))

    def __init__(self, context: Context) -> None:
        self._falls = int(context.config.get("falls", 40))
        self._codec = Codec()
        self._faces: dict[str, Face] = {}
        self.bids, self.things, self.told = 0, dict[str, list[Any]](), dict[str, Any]()

    def reset(self, seed: int = 0) -> Observation:
        self.bids = 0
        return self.observe()

    def observe(self) -> Observation:
        return Observation({"bids": self.bids}, step=self.bids)

    def act(self, action: Action) -> ActionResult:
        self.bids += 1
        if self.bids >= self._falls:
            raise RuntimeError("The counter fell over.")
        return ActionResult(True, "Done.", observation=self.observe())

    def seat(self, agent_id: str) -> Face:
        return self._faces.setdefault(agent_id, Face(self))

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        self.things[avatar_id] = [encode(item) for item in entry.items]
        return Receipt(entry.transfer_id, {}, tuple(item.item_id for item in entry.items))

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        brought = [self._codec.decode(PortableItem, data) for data in self.things.pop(avatar_id, [])]
        return TransitPackage(transfer_id, tuple(brought))

    def snapshot(self) -> bytes:
        return json.dumps([self.bids, self.things]).encode()

    def restore(self, data: bytes) -> None:
        self.bids, self.things = json.loads(data)


class DoubleCounter(Counter):
    """A later version, in which each bid counts twice."""

    def act(self, action: Action) -> ActionResult:
        self.bids += 1
        return super().act(action)


class Face:
    """The counter as seen from one seat."""

    game_description, action_space = Counter.game_description, Counter.action_space

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def observe(self) -> Observation:
        return self._counter.observe()

    def reset(self, seed: int = 0) -> Observation:
        return self._counter.observe()

    def act(self, action: Action) -> ActionResult:
        return self._counter.act(action)


COUNTER = AdapterSpec(
    "counter",
    "A counter.",
    Counter,
    seats=(2, 2),
    abilities=("seed", "snapshot", "multi-seat", "transit"),
    timing="turns",
)


@asynccontextmanager
async def at_the_counter(path: Path, spec: AdapterSpec, *, pace: float) -> AsyncIterator[Place]:
    agents = {agent: {"*": Policy("random"), "nexus": EXTERNAL} for agent in SWORDS}
    async with nexus_at(
        path, agents, host=host_with(spec), games=("counter",), lobby_seconds=60.0, pace=pace, snapshot_every=1
    ) as place:
        yield place


async def enter(place: Place) -> None:
    with place.nexus.nexus_store.change() as tx:
        for agent, sword in SWORDS.items():
            tx.mint_item(agent, sword, game="crafter", session="")
    await asyncio.gather(*(place.nexus.enter(agent, "counter", EntryRequest()) for agent in SWORDS))


def all_are_home(place: Place) -> bool:
    with place.nexus.nexus_store.look() as tx:
        for agent, sword in SWORDS.items():
            assert [(r.item.item_id, r.place) for r in tx.items(agent)] == [(sword.item_id, "escrow")]
        return {tx.agent(agent).place for agent in SWORDS} == {"nexus"}


def test_things_come_home_from_a_game_of_several_seats_that_fails(tmp_path: Path) -> None:
    """Nobody can enter its world again, so what stayed in it would be lost."""

    async def scene() -> None:
        async with at_the_counter(tmp_path, COUNTER, pace=100.0) as place:
            await enter(place)
            await place.until_events("world_crashed", 2)
            assert all_are_home(place)

    asyncio.run(scene())


def test_agents_and_things_come_home_from_a_game_of_several_seats_that_can_not_be_repeated(tmp_path: Path) -> None:
    """As after an update that changed its rules; its record stays, and the game is not to blame."""

    async def begin() -> str:
        async with at_the_counter(tmp_path, COUNTER, pace=20.0) as place:
            await enter(place)
            (run,) = place.nexus.live.run_tasks
            await place.until(lambda: all(stay.stats.steps for stay in place.nexus.live.sessions.values()))
            return run

    async def go_on(run: str) -> None:
        changed = replace(COUNTER, factory=DoubleCounter)
        async with at_the_counter(tmp_path, changed, pace=20.0) as place:
            repository = place.nexus.store.repository
            played = repository.count_events(run, "step")
            crashed = await place.until_events("world_crashed", 2)
            assert all("diverge" in event.body["error"] or "differ" in event.body["error"] for event in crashed)
            assert all_are_home(place)
            assert repository.count_events(run, "step") == played > 0
            assert not place.events("game_failed", "agent_failed")
            assert place.nexus.entrance.game_info("counter").status == "available"

    asyncio.run(go_on(asyncio.run(begin())))
