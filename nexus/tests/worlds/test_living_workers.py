"""Worlds that live, in workers: what one does to its process stops nobody else, and a killed one goes on."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hub_checks
import living_neighbours
import pytest
from asking_world import Teller, village_host
from life_kit import Place, host_with, nexus_at
from living_worlds import FAIR, MEADOW

from wsap_core import Action, AgentSpec, Context, Observation
from wsap_core.errors import WorldError
from wsap_core.protocol import PortableItem
from wsap_core.seams.agent import GetDefault
from wsap_core.seams.constraints import (
    CallConstraint,
    ChooseConstraint,
    Constraint,
    FunctionDef,
    JsonConstraint,
    RegexConstraint,
)
from wsap_core.seams.model import ImagePart, Message, Request, Sampling, TextPart
from wsap_core.seams.services import Services
from wsap_llm.keys import request_key
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs.store import open_store
from wsap_nexus.runs.views.restoring import Runs
from wsap_nexus.store.entities import EntryRequest, Policy
from wsap_nexus.worlds.living_world import LivingWorld
from wsap_nexus.worlds.workers.asked import read_request, write_request
from wsap_nexus.worlds.workers.link import WorkerLink
from wsap_nexus.worlds.workers.pool import WorkerPool, WorkerTimeouts

pytestmark = [
    pytest.mark.every_database,
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="keepers need fork"),
]

AGES = 3000.0
"""Seconds for a call, which pass only when a test says so."""


def pool_of(place: Place) -> WorkerPool:
    pool = place.nexus.placement.pool
    assert pool is not None
    return pool


def worker_of(place: Place, game: str) -> WorkerLink | None:
    """Return the worker in which a world of a game is played; None between two of them."""
    links = (link for link in pool_of(place).links if link.game == game and link.worlds and not link.is_ending)
    return next(links, None)


def events(place: Place, run: str, *kinds: str) -> list[Any]:
    return place.logged(run, *kinds)


def ticks(place: Place, run: str) -> list[int]:
    return [event.step or 0 for event in events(place, run, "tick")]


# --- what a game does to its process -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("loop", "it did not respond for 3000 s"),
        ("sleep", "it did not respond for 3000 s"),
        ("raise", "The tent is down."),
        ("eat", "more than the limit of 300"),
        ("exit", "its process ended with status 7"),
    ],
)
def test_a_world_that_misbehaves_in_a_tick_stops_nobody_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, why: str
) -> None:
    game = f"living-{kind}"
    bad, deeds = tmp_path / "bad", tmp_path / "deeds"
    host = host_with(MEADOW, living_neighbours.DIGGER, living_neighbours.GAMES[kind])
    worlds = (KeptWorld("den", game, {"folder": str(tmp_path)}), KeptWorld("glade", "meadow"))
    policies = {agent: {"*": Policy("digger"), "nexus": Policy("digger")} for agent in ("ada", "guest")}
    timeouts = WorkerTimeouts(deadline=AGES, memory=300 * 2**20)

    def let_time_pass(place: Place) -> None:
        """Let a call's time pass for the world that is at it, and for no other."""
        link = worker_of(place, game)
        if kind in ("loop", "sleep") and link is not None:
            link.silence += 2 * AGES
            pool_of(place).look(0.0)

    async def test() -> None:
        async with nexus_at(
            tmp_path,
            policies,
            host=host,
            games=(),
            worlds=worlds,
            workers=1,
            living_in_workers=True,
            timeouts=timeouts,
            pace=20.0,
        ) as place:
            with place.nexus.nexus_store.change() as tx:
                sword = PortableItem("sword", "Sword", "weapon", 3, {}, "kit")
                tx.mint_item("guest", sword, game="kit", session="")
            steps: Counter[str] = Counter()
            place.nexus.on_step(lambda stay, step: steps.update([stay.session.agent_id]))
            ada = await place.nexus.enter("ada", "meadow", EntryRequest())
            await place.nexus.enter("guest", game, EntryRequest())
            bad.touch()
            seen: list[int] = []
            at_it: list[WorkerLink | None] = []
            deeds_by_failure: list[int] = []

            def times() -> int:
                return len(deeds.read_bytes()) if deeds.exists() else 0

            def hear(event: Any) -> None:
                if event.kind == "game_failed" and bad.exists():
                    deeds_by_failure.append(times())
                    bad.unlink()

            def home() -> bool:
                if times() > len(seen):
                    seen.append(steps["ada"])
                    at_it.append(worker_of(place, game))
                others_went_on = bool(seen) and steps["ada"] > seen[-1] + 5
                if others_went_on and at_it[-1] is worker_of(place, game):
                    let_time_pass(place)
                return bool(place.events("left", agent="guest"))

            place.nexus.nexus_store.listen(hear)
            await place.until(home)
            assert deeds_by_failure == [1 if kind == "raise" else 2]  # only who does it again is to blame
            assert place.nexus.live.sessions["ada"].session.id == ada.session.id
            with place.nexus.nexus_store.look() as tx:
                assert tx.agent("guest").place == "nexus"
                assert tx.session(ada.session.id).closed is None
                assert Counter(record.item.item_id for record in tx.items("guest"))["sword"] == 1
            assert {event.game for event in place.events("game_failed")} == {game}
            assert place.nexus.breaker.of("meadow").status == "available"
            before, by_then = ticks(place, "nexus-den"), steps["ada"]
            await place.until(lambda: len(ticks(place, "nexus-den")) > len(before) + 2 and steps["ada"] > by_then + 5)
            assert ticks(place, "nexus-den") == list(range(1, len(ticks(place, "nexus-den")) + 1))
            await place.until(lambda: events(place, "nexus-den", "departed"))
            assert list(hub_checks.problems(place.nexus.store.database)) == []
            await place.nexus.enter("guest", game, EntryRequest(steps=2))
            await place.until_events("left", 2, agent="guest")

    with caplog.at_level(logging.WARNING):
        asyncio.run(test())
    failed = [record.getMessage() for record in caplog.records if "has failed" in record.getMessage()]
    assert failed
    assert all(text.startswith(f"The world 'den' has failed: The game '{game}'") and why in text for text in failed)


# --- what happens to its process -----------------------------------------------------------------------------


class Kills(Teller):
    """Has something done before it gives certain of its answers."""

    def __init__(self, at: set[int], do: Callable[[], None]) -> None:
        def answer(request: Request, number: int) -> str:
            if number in at:
                do()
            return f"#{number}"

        super().__init__(answer)


@pytest.mark.parametrize("at", [(6,), (8, 9), (3, 13, 14)])
def test_a_killed_worker_costs_no_tick_and_no_call(tmp_path: Path, at: tuple[int, ...]) -> None:
    places: list[Place] = []
    killed: set[int] = set()

    def kill() -> None:
        link = worker_of(places[0], "hamlet")
        if link is not None and link.pid is not None:
            killed.add(link.pid)
            with contextlib.suppress(ProcessLookupError):  # killed just now, and reaped, but not yet noticed
                os.kill(link.pid, signal.SIGKILL)

    teller = Kills(set(at), kill)

    async def test() -> None:
        async with nexus_at(
            tmp_path, {}, host=village_host(teller), games=(), worlds=(KeptWorld("ham", "hamlet"),), workers=1,
            living_in_workers=True, timeouts=WorkerTimeouts(deadline=AGES), pace=50.0,
        ) as place:  # fmt: skip
            places.append(place)
            await place.until(lambda: len(ticks(place, "nexus-ham")) >= 6)
            assert ticks(place, "nexus-ham") == list(range(1, len(ticks(place, "nexus-ham")) + 1))
            told = [event.data["body"]["told"] for event in events(place, "nexus-ham", "tick")][:6]
            assert len({word for tick in told for word in tick}) == 24  # each of another answer
            assert not place.events("game_failed")
            assert place.nexus.live.runs["nexus-ham"].world_journal.usage.asked_again == 0

    asyncio.run(test())
    asked = Counter(request.key for request in teller.requests)
    assert killed
    assert asked.most_common(1)[0][1] == 1
    assert len(asked) >= 24


@pytest.mark.parametrize("asks", ["before", "afterwards"])
def test_a_killed_worker_does_not_wait_for_an_agent_that_waits_for_it(tmp_path: Path, asks: str) -> None:
    places: list[Place] = []
    killed: list[int] = []

    class Unsure(living_neighbours.Digger):
        """Asks for the default action at its third decision, while its world's worker ends."""

        def __init__(self, context: Context) -> None:
            super().__init__(context)
            self._digs = 0

        def take_default_from(self, get_default: GetDefault) -> None:
            self._default = get_default

        async def decide(self, observation: Observation) -> Action:  # type: ignore[override]  # either is permitted
            action = super().decide(observation)
            self._digs += action.name == "plant"
            link = worker_of(places[0], "fair")
            if self._digs == 3 and not killed and link is not None and link.pid is not None:
                killed.append(link.pid)
                if asks == "before":
                    asked = asyncio.ensure_future(self._default())
                    await asyncio.sleep(0)
                    os.kill(link.pid, signal.SIGKILL)
                    return await asked or action
                os.kill(link.pid, signal.SIGKILL)
                await asyncio.wait({link.ended})
                return await self._default() or action
            return action

    async def test() -> None:
        policies = {"ada": {"*": Policy("unsure"), "nexus": Policy("unsure")}}
        host = host_with(FAIR, AgentSpec("unsure", "Asks.", Unsure, abilities=("snapshot",)))
        async with nexus_at(
            tmp_path, policies, host=host, games=(), worlds=(KeptWorld("park", "fair"),), workers=1,
            living_in_workers=True, timeouts=WorkerTimeouts(deadline=AGES), pace=50.0,
        ) as place:  # fmt: skip
            places.append(place)
            await place.nexus.enter("ada", "fair", EntryRequest())
            await place.until(lambda: killed)
            before = len(ticks(place, "nexus-park"))
            await place.until(lambda: len(ticks(place, "nexus-park")) > before + 2)
            assert not place.events("game_failed", "agent_failed", "left")

    asyncio.run(test())


@pytest.mark.parametrize("how", ["exit_game", "jack_out", "rest"])
def test_an_agent_called_home_while_it_goes_out_keeps_no_restart_and_no_look_waiting(tmp_path: Path, how: str) -> None:
    gate, game = tmp_path / "gate", living_neighbours.GATE

    class Goer(living_neighbours.Digger):
        """Plants, and goes out then."""

        planted = 0

        def decide(self, observation: Observation) -> Action:
            action = super().decide(observation)
            self.planted += action.name == "plant"
            return Action(how) if self.planted > 2 else action

    def nexus(agents: tuple[str, ...] = ()) -> Any:
        return nexus_at(
            tmp_path, {agent: {"*": Policy("goer"), "nexus": Policy("goer")} for agent in agents}, games=(),
            host=host_with(game, AgentSpec("goer", "Goes out.", Goer, abilities=("snapshot",))), workers=1,
            worlds=(KeptWorld("park", "gate", {"folder": str(tmp_path)}),), living_in_workers=True, snapshot_every=0,
            timeouts=WorkerTimeouts(deadline=AGES), pace=50.0,
        )  # fmt: skip

    async def begin() -> None:
        async with nexus(("ada",)) as place:
            os.mkfifo(gate)
            await place.nexus.enter("ada", "gate", EntryRequest())
            await place.until(lambda: events(place, "nexus-park", "chosen")[-1:] and how == chosen(place))
            assert place.nexus.recall("ada")
            loop = place.nexus.live.runs["nexus-park"].loop("ada")
            await place.until(lambda: loop.let_go)
            await asyncio.to_thread(gate.write_bytes, b"open")
            gate.unlink()
            await place.until_events("left", agent="ada")
            await later(place)

    def chosen(place: Place) -> str:
        return str(events(place, "nexus-park", "chosen")[-1].data["action"]["name"])

    async def later(place: Place) -> None:
        """Wait until the world has gone on."""
        before = len(ticks(place, "nexus-park"))
        await place.until(lambda: len(ticks(place, "nexus-park")) > before + 2)
        assert not place.events("world_rewound", "game_failed")

    async def again() -> None:
        async with nexus() as place:
            await later(place)

    asyncio.run(begin())
    with open_store(str(tmp_path / "nexus.db")) as store:
        runs = Runs(host_with(game), store.repository)
        for number in range(1, runs.ticks("nexus-park") + 1):
            world: Any = asyncio.run(runs.restored("nexus-park", number))
            assert world.number == number
    asyncio.run(again())


def test_who_waited_for_its_turn_reaches_the_world_before_who_came_later() -> None:
    async def test() -> None:
        pool = WorkerPool(1, WorkerTimeouts(deadline=AGES))
        try:
            world = LivingWorld(
                MEADOW, 1, {}, factory=MEADOW.factory, pool=pool, services=Services(),
                on_loss=lambda why, **how: WorldError(why),
            )  # fmt: skip
            await world.begin(1)
            answered: list[str] = []
            may_come = asyncio.Event()

            async def ask(name: str, come: asyncio.Event | None = None) -> None:
                if come is not None:
                    await come.wait()
                await world.influence({"rain": 1})
                answered.append(name)

            later = asyncio.create_task(ask("later", may_come))
            await asyncio.sleep(0)
            async with world.alone():
                waited = asyncio.create_task(ask("waited"))
                await asyncio.sleep(0)
                may_come.set()  # so it comes in the turn in which the other one learns that it may ask
            await asyncio.gather(waited, later)
            assert answered == ["waited", "later"]
            await world.close()
        finally:
            await pool.close()

    asyncio.run(test())


def test_a_world_whose_game_needs_what_workers_lack_is_played_at_home(tmp_path: Path) -> None:
    host = host_with(living_neighbours.READER)

    async def test() -> None:
        async with nexus_at(
            tmp_path,
            {},
            host=host,
            games=(),
            worlds=(KeptWorld("hall", "reader"),),
            workers=1,
            living_in_workers=True,
            pace=50.0,
        ) as place:
            await place.until(lambda: len(ticks(place, "nexus-hall")) >= 3)
            assert worker_of(place, "reader") is None
            assert not place.events("game_failed")

    asyncio.run(test())


# --- messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "constraint",
    [
        None,
        JsonConstraint({"type": "object", "properties": {"z": {"type": "string"}, "a": {"type": "integer"}}}, "it"),
        RegexConstraint("a+"),
        ChooseConstraint(("yes", "no")),
        CallConstraint((FunctionDef("go", "Go.", {"type": "object", "properties": {"to": {}}}),)),
    ],
)
def test_a_request_to_a_model_is_the_same_after_its_way_out_of_a_worker(constraint: Constraint | None) -> None:
    request = Request(
        (Message("system", "Be."), Message("user", (TextPart("Ж\n"), ImagePart("aGk=", alt="hi")))),
        "So", ("\n",), constraint, Sampling(9, 0.0, None, seed=3), True, {"ollama": {"num_ctx": 9, "b": [1, 2.5]}},
        "scene", "3/scene/square/0",
    )  # fmt: skip
    again = read_request(write_request(request))
    assert again == request
    assert (again.key, again.purpose) == (request.key, request.purpose)
    assert request_key("m", again) == request_key("m", request)
    if isinstance(constraint, JsonConstraint):
        assert isinstance(again.constraint, JsonConstraint)
        assert list(again.constraint.schema["properties"]) == ["z", "a"]  # a model writes them in this order
