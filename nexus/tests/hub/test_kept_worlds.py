"""Worlds that live in a nexus: they go on while nobody is in them, and agents come into them in play and leave."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import hub_checks
import living_neighbours
import pytest
import sqlalchemy
from life_kit import Hasty, Place, at_desk, host_with, nexus_at
from living_worlds import FAIR, MEADOW, Meadow

from wsap_core import Action, ActionResult, ActionSpace, AgentSpec, Context, Observation
from wsap_core.errors import StorageLockedError, UsageError
from wsap_core.protocol import AvatarState, Goal, PortableItem, Tick
from wsap_core.protocol.wire import dumps
from wsap_core.seams.clock import SystemClock
from wsap_llm.backends.pool import ModelPool
from wsap_nexus.cli.nexus.report import kept_of
from wsap_nexus.errors import AgentPausedError, GameUnavailableError
from wsap_nexus.hub.play import passages
from wsap_nexus.hub.settings import KeptWorld
from wsap_nexus.runs import run as played
from wsap_nexus.runs.open_run import OpenRun
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play import saving
from wsap_nexus.runs.play.asking import MOST
from wsap_nexus.runs.record.deadlock import WORLD_TIMEOUT
from wsap_nexus.runs.session import resolve_specs
from wsap_nexus.runs.store import open_store
from wsap_nexus.runs.totals import read_totals
from wsap_nexus.runs.views.restoring import Runs, played_to
from wsap_nexus.server.routes import overview
from wsap_nexus.server.watched.frames import Frames
from wsap_nexus.services import StoreRunner
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import EntryRequest, Policy
from wsap_nexus.store.history import find_tick
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.upkeep.prune import prune
from wsap_nexus.tasks import TURNS
from wsap_nexus.worlds.port import LocalWorld

pytestmark = pytest.mark.every_database

RUN = "nexus-glade"
GLADE = KeptWorld("glade", "meadow")


class Planter:
    """Waits in the nexus, and plants and rests by turns in a meadow."""

    def __init__(self, context: Context) -> None:
        self._world = context.world
        self._asked = 0

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        if self._world not in ("meadow", "fair"):
            return Action("wait_for_game", {"timeout": 600})
        self._asked += 1
        return Action("plant" if self._asked % 2 else "rest")

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []

    def snapshot(self) -> bytes:
        return str(self._asked).encode()

    def restore(self, data: bytes) -> None:
        self._asked = int(data)


class Swamp(Meadow):
    """A meadow whose third tick fails four times."""

    times = 0

    async def advance(self) -> Tick:
        if self.number >= 2 and Swamp.times < 4:
            Swamp.times += 1
            raise RuntimeError("It sinks.")
        return await super().advance()


SWAMP = replace(MEADOW, name="swamp", factory=Swamp)


class Held(SystemClock):
    """Waits for a second or longer until it may go on."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        if seconds >= 1:
            await self.go.wait()
        await asyncio.sleep(min(seconds, 0.01))


class Clumsy(Planter):
    """Plants twice, and fails then."""

    def decide(self, observation: Observation) -> Action:
        if self._asked == 2:
            raise RuntimeError("The spade is broken.")
        return super().decide(observation)


class Quitter(Planter):
    """Plants, does what is not possible, and leaves by choice."""

    def decide(self, observation: Observation) -> Action:
        if self._asked == 2:
            self._asked += 1
            return Action("fly")
        return Action("exit_game", {"reason": "enough"}) if self._asked > 3 else super().decide(observation)


class Stubborn(Planter):
    """Does again and again what is not possible."""

    def decide(self, observation: Observation) -> Action:
        return Action("fly") if self._world == "meadow" else super().decide(observation)


STUBBORN = AgentSpec("stubborn", "Can't be stopped.", Stubborn, abilities=("snapshot",))
QUITTER = AgentSpec("quitter", "Leaves.", Quitter, abilities=("snapshot",))
CLUMSY = AgentSpec("clumsy", "Fails.", Clumsy, abilities=("snapshot",))
PLANTER = AgentSpec("planter", "Plants.", Planter, abilities=("snapshot",))
PERSON = AgentSpec("person", "Plants, and decides elsewhere.", Planter, interactive=True)
RESTLESS = AgentSpec("restless", "Plants, and can't be saved.", Planter)


@asynccontextmanager
async def glade(
    path: Path, *, agents: Sequence[str] = ("ada", "bob"), decider: str = "planter", **settings: Any
) -> AsyncIterator[Place]:
    policies = {agent: {"*": Policy(decider), "nexus": Policy(decider)} for agent in agents}
    given = {"worlds": (GLADE,), "games": ("echo",), "pace": 100.0, **settings}
    host = host_with(MEADOW, FAIR, SWAMP, PLANTER, RESTLESS, CLUMSY, QUITTER, STUBBORN, PERSON)
    async with nexus_at(path, policies, host=host, **given) as place:
        yield place


def events(place: Place, *kinds: str) -> list[Any]:
    return place.logged(RUN, *kinds)


def ticks(place: Place) -> list[int]:
    return [event.step or 0 for event in events(place, "tick")]


async def until_tick(place: Place, number: int) -> None:
    await place.until(lambda: len(ticks(place)) >= number)


def test_a_world_goes_on_while_nobody_is_in_it_and_after_the_nexus_was_stopped(tmp_path: Path) -> None:
    async def live(until: int) -> list[int]:
        async with glade(tmp_path, agents=()) as place:
            await until_tick(place, until)
        return ticks(place)

    async def test() -> None:
        first = await live(5)
        second = await live(len(first) + 5)
        assert second == list(range(1, len(second) + 1))
        assert len(second) >= len(first) + 5

    asyncio.run(test())


def test_agents_come_into_a_world_in_play_and_leave_it_while_it_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with glade(tmp_path) as place:
            await until_tick(place, 3)
            ada = await place.nexus.enter("ada", "meadow", EntryRequest(world="glade"))
            await place.nexus.enter("bob", "meadow", EntryRequest(steps=4))
            left = (await place.until_events("left", agent="bob"))[0]
            assert (left.body["reason"], left.body["steps"]) == ("step_limit", 4)
            assert left.body["done"] == {"action:plant": 2, "action:rest": 2}
            closed = await place.nexus.exit("ada")
            assert (closed.id, closed.reason) == (ada.session.id, "kicked")
            await until_tick(place, ticks(place)[-1] + 3)
            await place.nexus.enter("bob", "meadow", EntryRequest(steps=2))  # the same body again
            await place.until_events("left", 2, agent="bob")
            passages = [(e.kind, e.seat) for e in events(place, "joined", "departed")]
            assert passages[0] == ("joined", "ada")
            assert sorted(passages) == sorted(
                [("joined", "ada"), ("joined", "bob"), ("joined", "bob"), ("departed", "ada"), ("departed", "bob"),
                 ("departed", "bob")]
            )  # fmt: skip
            planted = sum(e.data["body"]["planted"] for e in events(place, "tick"))
            done = [e.data["step"]["action"]["name"] for e in events(place, "step")]
            assert planted == done.count("plant")

    asyncio.run(test())


def test_an_agent_has_played_for_as_long_as_it_was_in_a_world_not_for_as_long_as_that_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with glade(tmp_path) as place:
            await until_tick(place, 3)
            began = time.monotonic()
            await place.nexus.enter("bob", "meadow", EntryRequest(steps=4))
            await place.until_events("left", agent="bob")
            with place.nexus.nexus_store.look() as tx:
                assert 0 < tx.agent("bob").playtime <= time.monotonic() - began

    asyncio.run(test())


@pytest.mark.parametrize("decider", ["planter", "restless"])
@pytest.mark.slow
def test_who_is_in_a_world_when_the_nexus_stops_is_in_it_when_it_is_started_again(tmp_path: Path, decider: str) -> None:
    async def test() -> None:
        async with glade(tmp_path, decider=decider, snapshot_every=7) as place:
            await place.nexus.enter("bob", "meadow", EntryRequest(steps=3))
            await place.until_events("left", agent="bob")
            await place.nexus.enter("ada", "meadow", EntryRequest(steps=30))
            await until_tick(place, ticks(place)[-1] + 5)
        before = [e.data["step"] for e in events(place, "step")]
        for _ in range(2):
            async with glade(tmp_path, agents=(), decider=decider, snapshot_every=7) as place:
                await until_tick(place, ticks(place)[-1] + 4)
                stay = place.nexus.live.sessions["ada"]
                steps = [e.data["step"] for e in events(place, "step")]
                assert steps[: len(before)] == before
                before = steps
                assert stay.stats.steps == sum(s["seat"] == "ada" for s in steps)
        async with glade(tmp_path, agents=(), decider=decider) as place:
            left = (await place.until_events("left", agent="ada"))[0]
            assert left.body["steps"] == 30
            mine = [e.data["step"]["action"]["name"] for e in events(place, "step") if e.seat == "ada"]
            assert mine == ["plant", "rest"] * 15
        assert ticks(place) == list(range(1, len(ticks(place)) + 1))

    asyncio.run(test())


def test_who_comes_back_is_in_the_body_it_left_with_what_it_could_not_take(tmp_path: Path) -> None:
    async def test() -> None:
        worlds = (KeptWorld("fair", "fair"),)
        async with glade(tmp_path, agents=("ada",), worlds=worlds) as place:
            with place.nexus.nexus_store.change() as tx:
                for number in (1, 2):
                    thing = PortableItem(f"t-{number}:thing", "thing", "tool", 1, origin="kit")
                    tx.mint_item("ada", thing, game="kit", session="", transfer_id=f"t-{number}")
            for _ in range(2):
                await place.nexus.enter("ada", "fair", EntryRequest(steps=3))
                await place.until_events("left", agent="ada")
            await place.until_events("left", 2, agent="ada")
            assert not hub_checks.problems(place.nexus.store.database)
            with place.nexus.nexus_store.look() as tx:
                where = {record.item.item_id: record.place for record in tx.items("ada")}
                skills = tx.skills("ada")
            kept = {item for item, place in where.items() if place == "world"}
            assert len(kept) == 2  # the fair keeps one thing of each who leaves
            assert "t-1:thing" in kept
            assert len(where) == 6  # and two flowers from each stay
            assert skills["crafting"] > 0
            entered = place.events("entered", agent="ada")
            assert [event.body["woken"] for event in entered] == [False, True]

    asyncio.run(test())


def test_an_agent_that_fails_is_paused_and_leaves_and_the_world_goes_on_and_takes_influences(tmp_path: Path) -> None:
    async def test() -> None:
        async with glade(tmp_path, decider="clumsy", agents=("ada",)) as place:
            await place.nexus.enter("ada", "meadow", EntryRequest())
            (left,) = await place.until_events("left", agent="ada")
            assert left.body["steps"] == 2
            with place.nexus.nexus_store.look() as tx:
                assert (tx.agent("ada").state, tx.agent("ada").place) == ("paused", "nexus")
            place.nexus.store.repository.add_to_inbox(RUN, {"rain": 40})
            await place.until(lambda: events(place, "influence"))
            await until_tick(place, ticks(place)[-1] + 3)

    asyncio.run(test())


def test_an_agent_that_only_does_what_is_refused_holds_no_world(tmp_path: Path) -> None:
    async def test() -> None:
        async with glade(tmp_path, agents=("ada",), decider="stubborn") as place:
            await place.nexus.enter("ada", "meadow", EntryRequest())
            (failed,) = await place.until_events("agent_failed", agent="ada")
            assert "took longer than 600 s for its turn" in failed.body["error"]
            await place.until_events("left", agent="ada")
            before = len(ticks(place))
            await until_tick(place, before + 3)
            assert len([event for event in events(place, "step") if event.seat == "ada"]) == MOST

    asyncio.run(test())


def test_a_world_that_fails_comes_back_by_itself_after_longer_and_longer_pauses(tmp_path: Path) -> None:
    Swamp.times, clock = 0, Hasty()

    async def test() -> None:
        worlds = (KeptWorld("glade", "swamp"),)
        async with glade(tmp_path, agents=("ada",), worlds=worlds, clock=clock, max_failures=100) as place:
            await until_tick(place, 8)
            await place.until(lambda: place.nexus.kept.open)
            assert Swamp.times == 4
            assert ticks(place) == list(range(1, len(ticks(place)) + 1))
            # On a server the lead is looked at every 2 seconds by the same clock.
            assert [seconds for seconds in clock.waited if seconds in (1, 4, 8, 16)][:3] == [1, 4, 8]
            assert 2 in clock.waited

    asyncio.run(test())


def test_who_comes_home_from_a_world_that_failed_and_goes_on_has_a_body_that_sleeps_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown, failed = Meadow.advance, list[int]()

    async def once(meadow: Meadow) -> Tick:
        if meadow.number >= 5 and meadow._gardeners and not failed:
            failed.append(meadow.number)
            raise RuntimeError("It rains frogs.")
        return await grown(meadow)

    monkeypatch.setattr(Meadow, "advance", once)

    async def test() -> None:
        async with glade(tmp_path, agents=("ada",), clock=Hasty()) as place:
            await place.nexus.enter("ada", "meadow", EntryRequest(world="glade"))
            (crashed,) = await place.until_events("world_crashed")
            (left,) = await place.until_events("left", agent="ada")
            assert (crashed.body["kept"], left.body["avatar_state"]) == (True, "dormant")
            with place.nexus.nexus_store.look() as tx:
                ((body, world),) = [(one.avatar, tx.world(one.world_id)) for one in tx.avatars("ada", "meadow")]
            assert (body.state, body.bound_agent, world.run_id) == (AvatarState.DORMANT, None, RUN)
            await until_tick(place, len(ticks(place)) + 2)
            await place.nexus.enter("ada", "meadow", EntryRequest(steps=2))
            assert place.events("entered", agent="ada")[-1].body["woken"]
            await place.until_events("left", 2, agent="ada")

    asyncio.run(test())
    assert failed


def test_a_game_that_was_taken_offline_needs_attention_with_the_command_that_opens_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with glade(tmp_path, agents=("ada",)) as place:
            place.nexus.set_game_status("meadow", "offline", "It failed 3 times.")
            with place.nexus.nexus_store.look() as tx:
                (item,) = [one for one in overview.attention(place.nexus, tx, private=True) if one["kind"] == "game"]
            said, _, command = item["what"].partition(" Open it with: wsap nexus ")
            assert (item["id"], said) == ("meadow", "offline: It failed 3 times.")
            assert command == "games online meadow"
            before = len(ticks(place))
            await until_tick(place, before + 2)  # the world goes on meanwhile
            place.nexus.set_game_status("meadow", "available")
            await place.nexus.enter("ada", "meadow", EntryRequest(steps=1))

    asyncio.run(test())


@pytest.mark.slow
def test_who_is_in_a_world_whose_recording_can_not_be_read_comes_home(tmp_path: Path) -> None:
    async def test() -> None:
        async with glade(tmp_path) as place:
            await until_tick(place, 3)
            await place.nexus.enter("ada", "meadow", EntryRequest(world="glade"))
            await place.until(lambda: len(events(place, "step")) > 2)
        with Database.open(tmp_path / "nexus.db") as database, database.write() as connection:
            count = "SELECT count(*) FROM event WHERE kind = 'step' AND seat = 'ada' AND run_id = 'nexus-glade'"
            steps = connection.exec_driver_sql(count).scalar_one()
            connection.exec_driver_sql("UPDATE event SET codec = 'unheard of' WHERE kind IN ('joined', 'step', 'tick')")
        async with glade(tmp_path, agents=()) as place:
            await place.until_events("left", agent="ada")
            with place.nexus.nexus_store.look() as tx:
                assert tx.agent("ada").place == "nexus"
                assert tx.sessions(agent_id="ada")[0].steps == steps > 2
                assert tx.world("glade").run_id == RUN, "the world is still there to be mended"

    asyncio.run(test())


def test_listings_name_the_worlds_that_go_on_by_themselves(tmp_path: Path) -> None:
    async def test() -> None:
        async with glade(tmp_path, agents=("ada",)) as place:
            await place.nexus.enter("ada", "meadow", EntryRequest(world="glade"))
            await until_tick(place, 3)
            with place.nexus.nexus_store.look() as tx:
                (line,) = kept_of(tx)
            assert (line.name, line.game, line.agents, line.failures) == ("glade", "meadow", 1, 0)
            assert line.tick >= 3
            assert line.text() == f"glade (meadow): tick {line.tick}, 1 agent"

    asyncio.run(test())


def test_a_game_none_of_whose_worlds_lives_here_is_listed_as_offline_with_what_opens_it(tmp_path: Path) -> None:
    async def test() -> None:
        settings = {"worlds": (GLADE,), "games": ("echo", "fair")}
        async with glade(tmp_path, agents=("ada",), **settings) as place:
            entrance = place.nexus.entrance
            status = {info.id: (info.status, info.reason) for info in entrance.games()}
            why = "No world of fair lives here; start the nexus with --world NAME=fair"
            assert status == {"echo": ("available", ""), "meadow": ("available", ""), "fair": ("offline", why)}
            with pytest.raises(GameUnavailableError, match=f"fair is offline: {why}"):
                entrance.request_enter("ada", "fair", EntryRequest())
            desk = at_desk(place.nexus, "ada")
            assert "fair is offline" in (await desk.act(Action("list_games"))).message
            assert why in (await desk.act(Action("game_details", {"game": "fair"}))).message
            assert [entry.game for entry in desk.observe().suggestions] == ["echo", "meadow"]

    asyncio.run(test())


def test_a_world_that_is_to_be_started_again_is_in_maintenance_until_then(tmp_path: Path) -> None:
    Swamp.times, clock = 0, Held()

    async def test() -> None:
        worlds = (KeptWorld("glade", "swamp"),)
        async with glade(tmp_path, agents=("ada",), worlds=worlds, clock=clock, max_failures=100) as place:
            entrance = place.nexus.entrance
            await place.until(lambda: entrance.game_info("swamp").status == "maintenance")
            assert entrance.game_info("swamp").reason == "The world 'glade' has failed and will be started again."
            Swamp.times = 4
            clock.go.set()
            await place.until(lambda: entrance.game_info("swamp").status == "available")

    asyncio.run(test())


@pytest.mark.slow
def test_any_tick_of_a_world_that_agents_come_into_is_restored_and_branched_without_them(tmp_path: Path) -> None:
    async def test() -> None:
        async with glade(tmp_path, snapshot_every=5) as place:
            await until_tick(place, 3)
            await place.nexus.enter("ada", "meadow", EntryRequest(world="glade"))
            await place.nexus.enter("bob", "meadow", EntryRequest(steps=4))
            await place.until_events("left", agent="bob")
            place.nexus.store.repository.add_to_inbox(RUN, {"rain": 9})
            await until_tick(place, ticks(place)[-1] + 3)
            await place.nexus.exit("ada")
            await place.nexus.enter("bob", "meadow", EntryRequest())
            await until_tick(place, ticks(place)[-1] + 9)
        with open_store(str(tmp_path / "nexus.db")) as store:
            host = host_with(MEADOW)
            runs, runner = Runs(host, store.repository), StoreRunner(host, store, ModelPool(host))
            recorded = {event.step: event.data["body"] for event in store.repository.read_events(RUN, kinds=("tick",))}
            assert len(recorded) > 15
            for number, body in recorded.items():
                world = cast(Meadow, await runs.restored(RUN, number))
                assert (world.number, world.flowers) == (number, body["flowers"])
            middle = len(recorded) // 2
            await runner.branch(RUN, middle, "alone")
            await runner.play("meadow", {}, run="alone", steps=2)
            first, second = store.repository.read_events("alone", kinds=("tick",))
            assert (first.step, second.step) == (middle + 1, middle + 2)
            assert first.data["body"]["planted"] == 0
            with pytest.raises(UsageError, match="branch it instead"):
                await runner.rewind(RUN, 2)

    asyncio.run(test())


# --- no world is lost at a restart ---------------------------------------------------------------------


def looked_at(path: Path) -> None:
    """Look at each tick of the world, and branch the middle one, without a nexus."""
    with open_store(str(path / "nexus.db")) as store:
        host = host_with(MEADOW, FAIR)
        runs, runner = Runs(host, store.repository), StoreRunner(host, store, ModelPool(host))
        newest = runs.ticks(RUN)
        standing = {e["step"]: e["body"]["body"] for e in runs.history(RUN, "tick")}
        assert sorted(standing) == list(range(1, newest + 1))
        for number, body in standing.items():
            world = cast(Meadow, asyncio.run(runs.restored(RUN, number)))
            assert (world.number, world.flowers) == (number, body["flowers"])
        name = f"branch-{len(store.repository.list_runs())}"
        asyncio.run(runner.branch(RUN, newest // 2, name))


def keep_each_state(patch: pytest.MonkeyPatch) -> None:
    """Keep the state after each tick, however long that takes."""
    patch.setattr(saving, "PAUSE", 0.0)
    patch.setattr(saving, "SHARE", 0)


def forget_states(path: Path) -> None:
    """Delete what was saved of the world, so that a restart repeats all of its ticks."""
    with open_store(str(path / "nexus.db")) as store:
        store.repository.drop_kept_states(RUN)
        with store.database.write() as connection:
            connection.execute(sqlalchemy.text("UPDATE event SET kind = 'saved' WHERE kind = 'snapshot'"))


async def goes_on(path: Path, **settings: Any) -> None:
    async with glade(path, agents=(), **settings) as place:
        await until_tick(place, len(ticks(place)) + 3)
        assert not place.events("world_rewound", "game_failed")


def test_in_a_look_at_a_world_nobody_plays_who_has_left_it(tmp_path: Path) -> None:
    async def begin() -> None:
        async with glade(tmp_path) as place:
            await place.nexus.enter("bob", "meadow", EntryRequest())
            await place.nexus.enter("ada", "meadow", EntryRequest(steps=2))
            await place.until_events("left", agent="ada")
            await until_tick(place, ticks(place)[-1] + 3)

    asyncio.run(begin())
    forget_states(tmp_path)
    with open_store(str(tmp_path / "nexus.db")) as store:
        record = store.repository.get_run(RUN)
        specs = resolve_specs(replace(RunPlan.from_config(record.config), seats=()), host_with(MEADOW, FAIR))
        position = find_tick(store.repository, record)
        run = asyncio.run(played_to(store.repository, record, specs, position))
    assert run.agent("ada") is None
    assert run.agent("bob") is not None


@pytest.mark.parametrize("outcome", ["recorded", "not recorded"])
@pytest.mark.slow
def test_an_arrival_that_was_never_committed_stays_away_also_after_everything_old_was_pruned(
    tmp_path: Path, outcome: str
) -> None:
    """`not recorded`: as after a kill before that, when the transfer alone tells."""

    async def begin() -> None:
        async with glade(tmp_path, agents=("ada",)) as place:
            await place.nexus.enter("ada", "meadow", EntryRequest(steps=3, goals=("grow",)))
            await place.until_events("left")
            await until_tick(place, ticks(place)[-1] + 3)

    asyncio.run(begin())
    with open_store(str(tmp_path / "nexus.db")) as store:
        # As if the nexus had been killed when it had recorded the arrival of another agent.
        body = next(store.repository.read_events(RUN, kinds=("joined",))).data
        body["entry"]["transfer_id"] = body["receipt"]["transfer_id"] = "transfer-99"
        store.writer.append(RUN, "joined", dumps(body), seat="cid")
        store.writer.flush()
        with NexusStore(store.database).change() as tx:
            columns = "id, agent_id, kind, state, created, data"
            values = "'transfer-99', 'ada', 'enter', 'prepared', '2001-01-01T00:00:00', '{}'"
            tx.connection.execute(sqlalchemy.text(f"INSERT INTO transfer ({columns}) VALUES ({values})"))
    forget_states(tmp_path)
    asyncio.run(goes_on(tmp_path))
    with open_store(str(tmp_path / "nexus.db")) as store:
        assert [e.data for e in store.repository.read_events(RUN, kinds=("withdrawn",))] == [
            {"transfer": "transfer-99"}
        ]
        if outcome == "not recorded":
            with store.database.write() as connection:
                connection.execute(
                    sqlalchemy.text("UPDATE event SET kind = 'other' WHERE kind IN ('arrived', 'withdrawn')")
                )
        assert prune(store.database, 0.0).transfers > 0
    forget_states(tmp_path)
    asyncio.run(goes_on(tmp_path))
    forget_states(tmp_path)
    looked_at(tmp_path)


def test_a_world_that_is_resumed_can_be_viewed_before_its_first_new_tick(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test() -> None:
        async with glade(tmp_path, agents=()) as place:
            await until_tick(place, 3)
        waits, go = asyncio.Event(), asyncio.Event()

        async def held(self: passages.WorldPassages, episode: int) -> None:
            waits.set()
            await go.wait()

        monkeypatch.setattr(passages.WorldPassages, "take", held)
        async with glade(tmp_path, agents=()) as place:
            await waits.wait()
            frame = await Frames(place.nexus).of_run(RUN)
            assert frame.remark == "This game has no view."  # rather than that nobody is in it
            go.set()

    asyncio.run(test())


def test_a_choice_that_is_resolved_after_its_world_failed_counts_in_the_session_that_is_closed(tmp_path: Path) -> None:
    bad, game = tmp_path / "bad", living_neighbours.GAMES["raise"]

    async def test() -> None:
        policies = {"ada": {"*": Policy("digger"), "nexus": Policy("digger")}}
        host = host_with(game, living_neighbours.DIGGER)
        worlds = (KeptWorld("glade", game.name, {"folder": str(tmp_path)}),)
        async with nexus_at(tmp_path, policies, host=host, games=(), worlds=worlds, pace=100.0, clock=Hasty()) as place:
            place.nexus.nexus_store.listen(lambda event: bad.unlink() if event.kind == "game_failed" else None)
            bad.touch()
            ada = await place.nexus.enter("ada", game.name, EntryRequest())
            (left,) = await place.until_events("left", agent="ada")
            assert (left.body["reason"], left.body["steps"]) == ("world_failed", 1)
            await place.until(lambda: events(place, "departed"))
            assert list(hub_checks.problems(place.nexus.store.database)) == []
            # One, or two if it had chosen again when its world failed.
            logged = place.nexus.store.repository.count_events(ada.session.run_id, "step", seat="ada")
            assert logged in (1, 2)
            with place.nexus.nexus_store.look() as tx:
                closed = tx.session(ada.session.id)
                assert (closed.steps, closed.stats["done"]) == (logged, {"action:plant": logged})
                assert tx.agent("ada").lifetime_steps == logged

    asyncio.run(test())


def test_an_arrival_that_a_fault_of_the_database_stopped_before_its_commit_is_withdrawn_and_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, tries = passages.commit_enter, []

    def locked_once(*given: Any) -> Any:
        tries.append(given)
        if len(tries) == 1:
            raise StorageLockedError("Another program has locked the database.")
        return commit(*given)

    async def begin() -> None:
        async with glade(tmp_path, agents=("ada",)) as place:
            await until_tick(place, 3)
            monkeypatch.setattr(passages, "commit_enter", locked_once)
            place.nexus.entrance.request_enter("ada", "meadow", EntryRequest(steps=3))
            for visit in place.nexus.live.controls.values():
                visit.stop()
            (left,) = await place.until_events("left", agent="ada")
            assert (left.body["reason"], left.body["steps"]) == ("step_limit", 3)
            told = [(e.kind, e.seat) for e in events(place, "joined", "arrived", "withdrawn", "departed")]
            assert [kind for kind, _ in told] == ["joined", "withdrawn", "joined", "arrived", "departed"]
            assert {seat for _, seat in told} == {"ada"}
            assert [e.step for e in events(place, "step")] == [0, 1, 2]
            await until_tick(place, ticks(place)[-1] + 2)
        assert len(tries) == 2

    asyncio.run(begin())
    for _ in range(2):
        forget_states(tmp_path)
        looked_at(tmp_path)
        asyncio.run(goes_on(tmp_path))


def test_ticks_between_a_withdrawn_arrival_and_its_second_attempt_can_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, tries = passages.commit_enter, []

    async def begin() -> None:
        async with glade(tmp_path, agents=("ada",)) as place:

            def locked_once(*given: Any) -> Any:
                tries.append(given)
                if len(tries) == 1:
                    # Then the world goes on without it for a while.
                    asyncio.get_running_loop().call_soon(place.nexus.pause, "ada")
                    raise StorageLockedError("Another program has locked the database.")
                return commit(*given)

            await until_tick(place, 3)
            monkeypatch.setattr(passages, "commit_enter", locked_once)
            place.nexus.entrance.request_enter("ada", "meadow", EntryRequest(steps=3))
            for visit in place.nexus.live.controls.values():
                visit.stop()
            await place.until(lambda: events(place, "withdrawn"))
            await until_tick(place, len(ticks(place)) + 2)
            place.nexus.resume("ada")
            await place.until_events("left", agent="ada")

    asyncio.run(begin())
    assert len(tries) == 2
    with open_store(str(tmp_path / "nexus.db")) as store:
        told = list(store.repository.read_events(RUN, kinds=("joined", "tick")))
        first, second = [event.seq for event in told if event.kind == "joined"]
        between = [event for event in told if event.kind == "tick" and first < event.seq < second]
        assert len(between) >= 2
    forget_states(tmp_path)
    looked_at(tmp_path)


@pytest.mark.slow
def test_an_agent_that_the_nexus_refused_after_the_world_had_let_it_in_keeps_no_restart_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: object) -> None:
        raise AgentPausedError("It was paused on its way.")

    async def begin() -> None:
        async with glade(tmp_path, agents=("ada",)) as place:
            await until_tick(place, 3)
            with monkeypatch.context() as patched:
                patched.setattr(passages, "commit_enter", refuse)
                with pytest.raises(AgentPausedError):
                    await place.nexus.enter("ada", "meadow", EntryRequest(goals=("grow",)))
            await until_tick(place, ticks(place)[-1] + 3)
            assert [e.kind for e in events(place, "joined", "departed")] == ["joined", "departed"]

    asyncio.run(begin())
    for _ in range(2):
        forget_states(tmp_path)
        looked_at(tmp_path)
        asyncio.run(goes_on(tmp_path))


@pytest.mark.parametrize("decider", ["planter", "clumsy", "quitter"])
@pytest.mark.slow
def test_agents_with_goals_that_came_and_left_in_any_way_are_repeated_at_each_restart(
    tmp_path: Path, decider: str
) -> None:
    async def begin() -> None:
        async with glade(tmp_path, decider=decider) as place:
            await place.nexus.enter("bob", "meadow", EntryRequest(steps=6, goals=("rest", "be kind")))
            await place.nexus.enter("ada", "meadow", EntryRequest(goals=("grow",), steps=None))
            await place.until_events("left", agent="bob")
            place.nexus.store.repository.add_to_inbox(RUN, {"rain": 9})
            await until_tick(place, ticks(place)[-1] + 3)

    asyncio.run(begin())
    for _ in range(2):
        forget_states(tmp_path)
        looked_at(tmp_path)
        asyncio.run(goes_on(tmp_path, decider=decider))


@pytest.mark.parametrize(("how", "recorded"), [("exit_game", False), ("jack_out", False), ("jack_out", True)])
def test_an_agent_called_home_while_it_thinks_about_having_left_keeps_no_restart_and_no_look_waiting(
    tmp_path: Path, how: str, recorded: bool
) -> None:
    """`recorded`: its removal is recorded, too."""
    thinks = asyncio.Event()

    class Thinker(Planter):
        """Plants, leaves by choice, and thinks about that until it is cancelled or the test lets it go on."""

        go = asyncio.Event()

        def decide(self, observation: Observation) -> Action:
            action = super().decide(observation)
            return Action(how) if action.name == "rest" else action

        async def reflect(self, result: ActionResult) -> None:  # type: ignore[override]  # either is permitted
            if result.done:
                thinks.set()
                await self.go.wait()

    async def begin() -> None:
        host = host_with(MEADOW, AgentSpec("thinker", "Thinks.", Thinker, abilities=("snapshot",)))
        policies = {"ada": {"*": Policy("thinker"), "nexus": Policy("thinker")}}
        async with nexus_at(tmp_path, policies, host=host, games=(), worlds=(GLADE,), pace=100.0) as place:
            await place.nexus.enter("ada", "meadow", EntryRequest())
            await thinks.wait()
            if recorded:
                place.nexus.store.writer.append(RUN, "left", "{}", seat="ada", episode=0, step=2)
            assert place.nexus.recall("ada")
            for _ in range(TURNS):
                await asyncio.sleep(0)
            Thinker.go.set()
            await place.until_events("left", agent="ada")
            await until_tick(place, len(ticks(place)) + 2)

    asyncio.run(begin())
    for _ in range(2):
        forget_states(tmp_path)
        looked_at(tmp_path)
        asyncio.run(goes_on(tmp_path, decider="planter"))


@pytest.mark.parametrize("where", ["let in", "out of its seat", "let out"])
@pytest.mark.slow
def test_a_world_that_is_stopped_while_somebody_comes_or_goes_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """It is stopped at the moment at which the world and the seats of its run don't match."""
    keep_each_state(monkeypatch)
    there = asyncio.Event()

    def stops_after(owner: object, name: str, run: OpenRun) -> None:
        inner = getattr(owner, name)

        async def carried_out(*given: Any, **named: Any) -> Any:
            done = await inner(*given, **named)
            there.set()
            if where == "let out":  # the task that plays its seat has not gone on yet
                run.controls.stop()
            else:
                await asyncio.Event().wait()
            return done

        monkeypatch.setattr(owner, name, carried_out)

    async def begin() -> None:
        async with glade(tmp_path, agents=("ada",), decider="person") as place:
            await until_tick(place, 3)
            run = place.nexus.kept.open[0].passages.run
            if where == "let in":
                stops_after(passages, "enter_world", run)
            coming = asyncio.create_task(place.nexus.enter("ada", "meadow", EntryRequest(steps=3)))
            if where == "out of its seat":
                stops_after(LocalWorld, "close_seat", run)
            elif where == "let out":
                stops_after(passages.WorldPassages, "_let_out", run)
            await there.wait()
        coming.cancel()

    asyncio.run(begin())
    monkeypatch.undo()
    asyncio.run(goes_on(tmp_path))
    looked_at(tmp_path)


@pytest.mark.parametrize("decider", ["planter", "restless"])
@pytest.mark.slow
def test_the_state_is_kept_after_the_ticks_whoever_is_there_and_a_restart_repeats_only_what_came_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, decider: str
) -> None:
    keep_each_state(monkeypatch)

    async def begin() -> int:
        async with glade(tmp_path, decider=decider) as place:
            await until_tick(place, 5)
            await place.nexus.enter("ada", "meadow", EntryRequest(goals=("grow",)))
            await until_tick(place, ticks(place)[-1] + 20)
            states = place.nexus.store.repository.kept_states(RUN)
            newest = max(state.step or 0 for state, whole in states if whole or decider == "restless")
            assert newest >= ticks(place)[-1] - 2
        return ticks(place)[-1]

    async def again(before: int) -> None:
        async with glade(tmp_path, agents=(), decider=decider) as place:
            await until_tick(place, before + 3)
            world = cast(Any, place.nexus.kept.open[0].passages.run.world).adapter
            repeated = world.ticks_carried_out - (ticks(place)[-1] - before)
            # An agent whose own state can't be saved decides again what it decided.
            assert repeated <= 3 if decider == "planter" else repeated >= 20
            stay = place.nexus.live.sessions["ada"]
            steps = [e for e in events(place, "step") if e.seat == "ada"]
            assert abs(stay.stats.steps - len(steps)) <= 1

    before = asyncio.run(begin())
    asyncio.run(again(before))
    looked_at(tmp_path)


@pytest.mark.slow
def test_a_world_that_can_not_be_repeated_goes_back_to_its_last_whole_tick_and_its_agents_are_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown = Meadow.advance

    async def otherwise(meadow: Meadow) -> Tick:
        tick = await grown(meadow)
        return replace(tick, summary="A newer version.") if tick.number == 6 else tick

    async def begin() -> int:
        async with glade(tmp_path, worlds=(KeptWorld("glade", "fair"),), agents=("ada",)) as place:
            with place.nexus.nexus_store.change() as tx:
                thing = PortableItem("t-1:thing", "thing", "tool", 1, origin="kit")
                tx.mint_item("ada", thing, game="kit", session="", transfer_id="t-1")
            await place.nexus.enter("ada", "fair", EntryRequest(goals=("grow",)))
            await until_tick(place, 10)
            place.nexus.store.repository.add_to_inbox(RUN, {"rain": 40})
            await place.until(lambda: events(place, "influence"))
            await until_tick(place, ticks(place)[-1] + 2)
        return ticks(place)[-1]

    async def again(before: int) -> None:
        async with glade(tmp_path, worlds=(KeptWorld("glade", "fair"),), agents=()) as place:
            (told,) = await place.until_events("world_rewound")
            assert (told.body["world"], told.body["tick"], told.body["before"]) == ("glade", 5, before)
            await place.until(lambda: len(ticks(place)) > before + 3)
            assert ticks(place)[:before] == list(range(1, before + 1))  # what was abandoned stays
            assert ticks(place)[before : before + 3] == [6, 7, 8]
            (left,) = place.events("left", agent="ada")
            assert left.body["reason"] == "world_failed"
            with place.nexus.nexus_store.look() as tx:
                (mine,) = [r for r in tx.items("ada") if r.item.item_id == "t-1:thing"]
                assert (tx.agent("ada").place, mine.place) == ("nexus", "escrow")
            assert len(events(place, "influence")) == 2  # it rains again
            assert place.nexus.breaker.of("fair").status == "available"
            assert not place.events("game_failed")
            assert "went back from tick" in told.sentence()
            with place.nexus.nexus_store.look() as tx:
                (item,) = overview._failed(tx)
            assert (item["id"], item["what"]) == ("glade", told.sentence())
        assert not hub_checks.problems(place.nexus.store.database)

    before = asyncio.run(begin())
    forget_states(tmp_path)
    monkeypatch.setattr(Meadow, "advance", otherwise)
    asyncio.run(again(before))
    looked_at(tmp_path)

    async def once_more() -> None:
        async with glade(tmp_path, worlds=(KeptWorld("glade", "fair"),), agents=()) as place:
            await until_tick(place, len(ticks(place)) + 3)
            assert len(place.events("world_rewound")) == 1

    asyncio.run(once_more())


def test_a_world_whose_record_is_not_gone_through_to_its_end_goes_back_also_while_an_agent_leaves(
    tmp_path: Path,
) -> None:
    """The recorded look of somebody who is not there is waited for by all who are."""

    async def begin() -> int:
        async with glade(tmp_path, decider="quitter") as place:
            await place.nexus.enter("ada", "meadow", EntryRequest())
            await place.until(lambda: any(event.seat == "ada" for event in events(place, "step")))
            await place.nexus.enter("bob", "meadow", EntryRequest())  # and acts after ada has left
            await place.until_events("left", agent="bob")
            await until_tick(place, ticks(place)[-1] + 2)
        return ticks(place)[-1]

    async def again(before: int) -> None:
        async with glade(tmp_path, agents=()) as place:
            (told,) = await place.until_events("world_rewound")
            assert 1 <= told.body["tick"] < told.body["before"] == before
            await place.until(lambda: len(ticks(place)) > before + 2)
            with place.nexus.nexus_store.look() as tx:
                assert [tx.agent(agent).place for agent in ("ada", "bob")] == ["nexus", "nexus"]

    before = asyncio.run(begin())
    forget_states(tmp_path)
    with open_store(str(tmp_path / "nexus.db")) as store:
        recorded = list(store.repository.read_events(RUN))
        chosen = max(event.seq for event in recorded if (event.kind, event.seat) == ("chosen", "ada"))
        home = next(event.seq for event in recorded if (event.kind, event.seat) == ("departed", "ada"))
        between = next(event.seq for event in recorded if chosen < event.seq < home and event.kind == "story")
        with store.database.write() as connection:
            look = "UPDATE event SET kind = 'observation', seat = 'ghost' WHERE run_id = :run AND seq = :seq"
            connection.execute(sqlalchemy.text(look), {"run": RUN, "seq": between})
    asyncio.run(again(before))


class Patient(SystemClock):
    """Lets nobody wait for minutes before it may ring."""

    rings = asyncio.Event()
    waiting: ClassVar[list[float]] = []

    async def sleep(self, seconds: float) -> None:
        if seconds < WORLD_TIMEOUT:
            await super().sleep(seconds)
            return
        Patient.waiting.append(seconds)
        await Patient.rings.wait()


def test_a_departure_for_which_its_seat_is_not_ready_is_given_minutes_and_then_the_world_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent's last choice is recorded after it left, so the departure and the seat wait for each other."""
    monkeypatch.setattr(played, "SystemClock", Patient)
    monkeypatch.setattr(Patient, "rings", asyncio.Event())
    monkeypatch.setattr(Patient, "waiting", [])

    async def begin() -> int:
        async with glade(tmp_path, decider="quitter") as place:
            await place.nexus.enter("ada", "meadow", EntryRequest())
            await place.until_events("left", agent="ada")
            await until_tick(place, ticks(place)[-1] + 3)
        return ticks(place)[-1]

    async def again(before: int) -> None:
        async with glade(tmp_path, agents=()) as place:
            await place.until(lambda: Patient.waiting)
            passing = len(events(place))
            for _ in range(100 * TURNS):
                await asyncio.sleep(0)
            assert len(events(place)) == passing
            assert not place.events("world_rewound")
            Patient.rings.set()
            (told,) = await place.until_events("world_rewound")
            assert "does not reach" in told.body["error"]
            assert 1 <= told.body["tick"] < told.body["before"] == before
            await place.until(lambda: len(ticks(place)) > before + 2)
            assert not place.events("game_failed")

    before = asyncio.run(begin())
    Patient.waiting.clear()
    forget_states(tmp_path)
    with open_store(str(tmp_path / "nexus.db")) as store:
        recorded = list(store.repository.read_events(RUN))
        home = next(event.seq for event in recorded if (event.kind, event.seat) == ("departed", "ada"))
        last = [event.seq for event in recorded if event.seat == "ada" and event.kind in ("chosen", "step")][-2:]
        later = [event.seq for event in recorded if event.seq > home and event.kind == "story"][:2]
        move = sqlalchemy.text("UPDATE event SET seq = :to WHERE run_id = :run AND seq = :seq")
        with store.database.write() as connection:
            for one, other in zip(last, later, strict=True):
                for seq, to in ((one, 10**6), (other, one), (10**6, other)):
                    connection.execute(move, {"run": RUN, "seq": seq, "to": to})
    asyncio.run(again(before))
    assert set(Patient.waiting) == {180.0}


def test_a_world_goes_on_when_an_agent_came_for_the_first_time_after_its_last_totals(tmp_path: Path) -> None:
    async def begin() -> None:
        async with glade(tmp_path, agents=(), snapshot_every=5) as place:
            await until_tick(place, 7)

    asyncio.run(begin())
    with open_store(str(tmp_path / "nexus.db")) as store:
        newest = store.repository.last_event(RUN, "totals")
        assert newest is not None
        plan = RunPlan.from_config(store.repository.get_run(RUN).config)
        plan = replace(plan, seats=(SeatPlan("ada", "planter"),))
        totals = read_totals(store.repository, newest, plan.tallies())
        assert totals.tallies["ada"].steps == 0
        assert totals.tallies["world"].steps >= 5


@pytest.mark.slow
def test_an_agent_whose_decider_can_not_be_created_any_more_leaves_after_what_it_did(tmp_path: Path) -> None:
    async def begin() -> None:
        async with glade(tmp_path) as place:
            await place.nexus.enter("ada", "meadow", EntryRequest(goals=("grow",)))
            await until_tick(place, 9)

    async def again() -> None:
        policies: dict[str, Any] = {}
        broken = replace(PLANTER, name="planter", factory=broken_factory)
        host = host_with(MEADOW, FAIR, broken)
        async with nexus_at(tmp_path, policies, host=host, worlds=(GLADE,), games=("echo",), pace=100.0) as place:
            before = len(ticks(place))
            (left,) = await place.until_events("left", agent="ada")
            await until_tick(place, before + 3)
            with place.nexus.nexus_store.look() as tx:
                assert (tx.agent("ada").state, tx.agent("ada").place) == ("paused", "nexus")
            assert left.body["steps"] > 3
            assert not place.events("world_rewound", "game_failed")

    asyncio.run(begin())
    forget_states(tmp_path)
    asyncio.run(again())
    forget_states(tmp_path)
    asyncio.run(goes_on(tmp_path))
    looked_at(tmp_path)


def broken_factory(context: Context) -> Planter:
    raise UsageError("Its model is not there.")


def test_what_can_not_be_entered_is_said_in_a_sentence(tmp_path: Path) -> None:
    async def test() -> None:
        async with glade(tmp_path) as place:
            with pytest.raises(UsageError, match=r"no world 'dell'.*glade"):
                await place.nexus.enter("ada", "meadow", EntryRequest(world="dell"))
            with pytest.raises(UsageError, match="leave out world and seat"):
                await place.nexus.enter("ada", "echo", EntryRequest(seat="anna"))
            await place.nexus.enter("ada", "meadow", EntryRequest(seat="rose"))
            with pytest.raises(UsageError, match="'rose' already has a seat"):
                await place.nexus.enter("bob", "meadow", EntryRequest(seat="rose"))
        async with glade(tmp_path / "other", worlds=(), games=("meadow",)) as place:
            with pytest.raises(GameUnavailableError, match="--world"):
                await place.nexus.enter("ada", "meadow", EntryRequest())

    (tmp_path / "other").mkdir()
    asyncio.run(test())


@pytest.mark.parametrize(
    ("text", "world"),
    [
        ("village=sandbox:village", KeptWorld("village", "sandbox:village")),
        ("sandbox:village", KeptWorld("village", "sandbox:village")),
        ("a=meadow,ends=7,x=1=2", KeptWorld("a", "meadow", {"ends": "7", "x": "1=2"})),
    ],
)
def test_a_world_is_named_in_one_word(text: str, world: KeptWorld) -> None:
    assert KeptWorld.parse(text) == world


@pytest.mark.parametrize("text", ["", "a=", "A B=meadow", "a=meadow,x", "a=meadow,=1"])
def test_a_word_that_names_no_world_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="world"):
        KeptWorld.parse(text)
