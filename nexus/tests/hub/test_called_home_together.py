"""Agents that are called home together, while the tick that their actions have begun still waits for a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from life_kit import Place, host_with, nexus_at
from living_worlds import MEADOW, Meadow

from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Context, Observation, PluginHost
from wsap_core.host import Registration
from wsap_core.protocol import Goal, Tick
from wsap_core.seams.model import Abilities, Message, OnText, Reply, Request
from wsap_core.spec_json import spec_to_json
from wsap_core.specs import BackendSpec
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.store import open_store
from wsap_nexus.runs.views.restoring import Runs
from wsap_nexus.store.entities import EntryRequest, Policy
from wsap_nexus.tasks import TURNS
from wsap_nexus.worlds import operations as ops
from wsap_nexus.worlds.workers.blame import BlameFile
from wsap_nexus.worlds.workers.frames import FrameReader, request
from wsap_nexus.worlds.workers.host import WorldHost

RUN = "nexus-glade"
AGENTS = ("ada", "bob", "cid", "dora", "eva", "fay")


class Choir(Meadow):
    """A meadow that asks a model once everybody has acted, and counts those who are still there then."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._models = context.services.require("models")

    async def advance(self) -> Tick:
        for gardener in list(self._gardeners.values()):
            await gardener.acted.wait()
        model = await self._models.open("slow/it")
        await model.complete(Request((Message("user", "Sing."),), key=f"{self.number + 1}/song"))
        return await super().advance()


CHOIR = replace(MEADOW, name="choir", factory=Choir, seats=(0, 9), asks_models=True)


class Slow:
    """A model that answers when it may."""

    model = "slow/it"
    abilities = Abilities()

    def __init__(self) -> None:
        self.may = asyncio.Event()
        self.may.set()
        self.waiting = 0

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        self.waiting += 1
        await self.may.wait()
        self.waiting -= 1
        return Reply("La.")

    async def aclose(self) -> None: ...


class Planter:
    """Plants, always."""

    def __init__(self, context: Context) -> None:
        self._world = context.world

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        return Action("plant") if self._world == "choir" else Action("wait_for_game", {"timeout": 600})

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []

    def snapshot(self) -> bytes:
        return b""

    def restore(self, data: bytes) -> None: ...


def host(model: Slow) -> PluginHost:
    found = host_with(CHOIR, AgentSpec("planter", "Plants.", Planter, abilities=("snapshot",)))
    found.backends.add(Registration(BackendSpec("slow", "", lambda context: model), "kit", "tests"))
    return found


def nexus(path: Path, model: Slow, agents: Sequence[str], workers: int) -> Any:
    policies = {agent: {"*": Policy("planter"), "nexus": Policy("planter")} for agent in agents}
    return nexus_at(
        path, policies, host=host(model), games=(), worlds=(KeptWorld("glade", "choir"),), pace=100.0,
        snapshot_every=0, workers=workers, living_in_workers=workers > 0,
    )  # fmt: skip


def ticks(place: Place) -> int:
    return len(place.logged(RUN, "tick"))


async def go_on(place: Place, number: int) -> None:
    before = ticks(place)
    await place.until(lambda: ticks(place) >= before + number)


@pytest.mark.every_database
@pytest.mark.parametrize("workers", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_they_are_gone_in_the_same_tick_at_a_look_and_at_each_restart(tmp_path: Path, workers: int) -> None:
    async def begin() -> None:
        model = Slow()
        async with nexus(tmp_path, model, AGENTS, workers) as place:
            for agent in AGENTS:
                await place.nexus.enter(agent, "choir", EntryRequest())
            await go_on(place, 2)
            model.may.clear()
            await place.until(lambda: model.waiting)
            last = place.logged(RUN, "tick")[-1].seq
            await place.until(lambda: sum(e.seq > last for e in place.logged(RUN, "chosen")) == len(AGENTS))
            for agent in AGENTS:
                assert place.nexus.recall(agent)
            await place.until(lambda: len(place.logged(RUN, "left")) == len(AGENTS))
            assert place.logged(RUN, "tick")[-1].seq == last
            model.may.set()
            await place.until_events("left", len(AGENTS))
            await go_on(place, 2)

    async def again() -> None:
        async with nexus(tmp_path, Slow(), (), workers) as place:
            await go_on(place, 2)
            assert not place.events("world_rewound", "game_failed")

    asyncio.run(begin())
    with open_store(str(tmp_path / "nexus.db")) as store:
        runs = Runs(host(Slow()), store.repository)
        for event in list(runs.history(RUN, "tick")):
            world = cast(Choir, asyncio.run(runs.restored(RUN, event["step"])))
            assert (world.number, world.flowers) == (event["step"], event["body"]["body"]["flowers"])
    for _ in range(2):
        asyncio.run(again())


def told_at(chunks: Sequence[Sequence[bytes]], blame: BlameFile) -> list[tuple[int, str]]:
    """Return the calls that a worker answers, with the first letter of each reply, if it gets these frames so."""
    found: list[tuple[int, str]] = []

    def send(data: bytes) -> None:
        found.extend((number, content[:1].decode()) for number, content in FrameReader().feed(data))

    async def test() -> None:
        worker, number = WorldHost(send, blame), 0
        for chunk in chunks:
            for content in chunk:
                worker.receive(number := number + 1, content)
            for _ in range(10 * TURNS):
                await asyncio.sleep(0)
        await worker.close()

    asyncio.run(test())
    return found


def test_a_worker_has_the_same_come_of_two_messages_whether_they_arrive_together_or_not() -> None:
    create = ops.Create(spec_to_json(MEADOW), str(MEADOW.factory), 3, {}, lives=True)
    seats = [request(ops.OpenSeat(seat), 1) for seat in ("ada", "bob")]
    plants = [request(ops.Resolve(seat, Action("plant")), 1) for seat in ("ada", "bob")]
    begin = [[request(create, 1)], [request(ops.Begin(3), 1)], seats, [request(ops.Advance(), 1)], plants[:1]]
    home, number = request(ops.LetGo("ada"), 1), 8
    blame = BlameFile.new()
    try:
        apart = told_at([*begin, plants[1:], [home]], blame)
        together = told_at([*begin, [plants[1], home]], blame)
    finally:
        blame.close()
    assert (number, "+") in apart
    assert together == apart
