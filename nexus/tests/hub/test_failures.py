"""What becomes of agents, their things and their games when a world or an agent fails."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from unruly_time import let_time_pass, put_unruly, until_at_it

from wsap_core.errors import UsageError, WsapError
from wsap_core.host import PluginHost
from wsap_core.protocol import AvatarState, PortableItem
from wsap_nexus.agents.chronicle import news
from wsap_nexus.errors import GameUnavailableError, WorldFailedError
from wsap_nexus.hub.context import PendingFutures
from wsap_nexus.hub.live_session import LiveSession
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.store.entities import EntryRequest, Policy, SessionRecord
from wsap_nexus.store.events import Names, NexusEvent
from wsap_nexus.store.events.agents import DiaryWritten
from wsap_nexus.store.events.base import count
from wsap_nexus.worlds.workers.pool import WorkerTimeouts

pytestmark = pytest.mark.every_database

anywhere = pytest.mark.parametrize("workers", [0, 1], ids=["in-process", "in-a-worker"])
posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")


class Field:
    """A nexus with the unruly game, and agents that do what a file says."""

    def __init__(self, folder: Path, store: Store, **settings: Any) -> None:
        if not (folder / "unruly.py").exists():
            put_unruly(folder)
        self.folder = folder
        self.file = folder / "unruly.py"
        games = (*(f"{self.file}:{name}" for name in ("Unruly", "Unsaved", "Needy", "Broken")), "crafter", "matrix")
        own = {"lobby_seconds": 0.05, "games": games, "snapshot_every": 10, **settings}
        self.nexus = Nexus(PluginHost.discovered(), store, Settings(**own))
        self.events: list[NexusEvent] = []
        self._heard = asyncio.Event()
        self.nexus.nexus_store.listen(self._hear)
        self.nexus.on_step(lambda stay, step: self._heard.set())

    def _hear(self, event: NexusEvent) -> None:
        self.events.append(event)
        self._heard.set()

    def register(self, *agents: str) -> None:
        with self.nexus.nexus_store.change() as tx:
            for agent in agents:
                policies = {"nexus": Policy("external"), "*": Policy(f"{self.file}:Obedient")}
                tx.register(agent, policies={**policies, "crafter": Policy(f"{self.file}:Walker")})

    def say(self, word: str) -> None:
        """Have all agents do that from now on."""
        # In one go: they read it at any time.
        (self.folder / "said").write_text(word)
        (self.folder / "said").replace(self.folder / "say")

    async def enter(self, agent: str, game: str, terms: EntryRequest | None = None) -> LiveSession:
        return await self.nexus.enter(agent, game, terms or EntryRequest())

    async def until(self, holds: Callable[[], object]) -> Any:
        """Wait until something holds that events tell of."""
        while True:
            self._heard.clear()
            found = holds()
            if found:
                return found
            await self._heard.wait()

    async def closed(self, session: SessionRecord) -> SessionRecord:
        def look() -> SessionRecord | None:
            with self.nexus.nexus_store.look() as tx:
                found = tx.session(session.id)
            return found if found.closed else None

        found: SessionRecord = await self.until(look)
        return found

    def happened(self, kind: str, agent: str | None = None) -> list[NexusEvent]:
        return [e for e in self.events if e.kind == kind and agent in (None, e.agent_id)]


def live(folder: Path, test: Callable[[Field], Awaitable[None]], *, stopped: bool = False, **settings: Any) -> None:
    """Run a nexus on the folder's database for as long as a test takes, if that has not `stopped` it."""

    async def run() -> None:
        with open_store(str(folder / "nexus.db"), environ={"WSAP_HOME": str(folder)}) as store:
            field = Field(folder, store, **settings)
            field.register("ada", "bob")
            await field.nexus.start()
            try:
                await test(field)
            finally:
                if not stopped:
                    await field.nexus.stop()

    asyncio.run(run())


def give(field: Field, agent: str, item_id: str) -> None:
    with field.nexus.nexus_store.change() as tx:
        item = PortableItem(item_id, "Sword", "weapon", 3, {}, "crafter")
        tx.mint_item(agent, item, game="crafter", session="")


def places(field: Field, agent: str) -> dict[str, str]:
    with field.nexus.nexus_store.look() as tx:
        return {record.item.item_id: record.place for record in tx.items(agent)}


@anywhere
def test_an_agent_whose_world_fails_is_back_in_the_nexus_with_its_body_suspended(tmp_path: Path, workers: int) -> None:
    async def test(field: Field) -> None:
        stay = await field.enter("ada", "unruly")
        field.say("raise")
        closed = await field.closed(stay.session)
        assert closed.reason == "world_failed"
        assert "something it forgot" in str(closed.stats["error"])
        with field.nexus.nexus_store.look() as tx:
            agent = tx.agent("ada")
            (body,) = tx.avatars("ada", "unruly")
            assert (agent.place, agent.session_id, agent.state) == ("nexus", None, "active")
            assert body.avatar.state is AvatarState.SUSPENDED
            assert not tx.transfers("prepared")
            assert tx.world(closed.world_id).failures == 1
            assert agent.lifetime_steps == closed.steps
        (told,) = field.happened("world_crashed", "ada")
        assert told.body["kept"] is True
        assert told.session_id == closed.id
        assert not field.happened("entry_refused")

    live(tmp_path, test, workers=workers)


async def hold(field: Field, leaving: asyncio.Task[Any]) -> Any:
    """Have a third of the deadline pass for the game that hangs, until an agent is back."""
    assert field.nexus.placement.pool is not None
    while not leaving.done():
        for link in field.nexus.placement.pool.links:
            if link.mark.world:
                link.silence = field.nexus.settings.timeouts.deadline / 2
        await asyncio.sleep(0.02)
    return leaving.result()


@posix
@pytest.mark.slow
def test_an_agent_is_called_home_from_a_game_that_does_not_return(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        give(field, "ada", "sword")
        await field.enter("ada", "unruly")
        field.say("hang")
        await until_at_it(tmp_path)
        closed = await hold(field, asyncio.create_task(field.nexus.exit("ada")))
        assert closed.reason == "kicked"
        with field.nexus.nexus_store.look() as tx:
            (body,) = tx.avatars("ada", "unruly")
            assert (tx.agent("ada").place, body.avatar.state) == ("nexus", AvatarState.SUSPENDED)
        assert places(field, "ada") == {"sword": "escrow"}
        assert not field.happened("game_failed")
        field.say("go")
        stay = await field.enter("ada", "unruly")
        await field.until(lambda: stay.stats.steps > 3)

    live(tmp_path, test, workers=1, timeouts=WorkerTimeouts(deadline=3000.0))


@posix
@pytest.mark.slow
def test_a_nexus_stops_though_a_game_does_not_return_and_the_session_goes_on_after_it(tmp_path: Path) -> None:
    sessions: list[str] = []

    async def hangs(field: Field) -> None:
        stay = await field.enter("ada", "unruly")
        sessions.append(stay.session.id)
        field.say("hang")
        await until_at_it(tmp_path)
        await hold(field, asyncio.create_task(field.nexus.stop()))
        assert not field.happened("game_failed")

    async def goes_on(field: Field) -> None:
        stay = await field.until(lambda: field.nexus.live.sessions.get("ada"))
        assert stay.session.id == sessions[0]
        await field.until(lambda: not stay.catching_up and stay.last)

    timeouts = WorkerTimeouts(deadline=3000.0)
    live(tmp_path, hangs, workers=1, timeouts=timeouts, stopped=True)
    (tmp_path / "say").write_text("go")
    live(tmp_path, goes_on, workers=1, timeouts=timeouts)


def test_a_crash_in_mid_play_is_told_as_one_wherever_it_is_told(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        with field.nexus.nexus_store.change() as tx:
            tx.update_agent("ada", name="Ada")
        stay = await field.enter("ada", "unruly", EntryRequest(steps=100_000))
        field.say("raise")
        closed = await field.closed(stay.session)
        (entry,) = await field.until(lambda: field.happened("diary", "ada"))
        assert isinstance(entry, DiaryWritten)
        assert entry.text.endswith("My session ended: the world failed.")
        (crash,) = field.happened("world_crashed")
        (left,) = field.happened("left")
        names = Names({"ada": "Ada"})
        assert crash.sentence(names).startswith("unruly crashed during Ada's session: ")
        assert left.sentence(names) == f"Ada left unruly after {count(closed.steps, 'decision')}: the world failed"
        with field.nexus.nexus_store.look() as tx:
            (told,) = news(tx, "ada")
        assert told.description.startswith("unruly crashed during your session: ")
        for text in (entry.text, told.description, crash.sentence(names), left.sentence(names)):
            assert "world_failed" not in text
            assert "did not let" not in text

    live(tmp_path, test)


def test_a_world_that_fails_while_an_agent_enters_has_refused_it(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        with pytest.raises(WsapError):
            await field.enter("ada", "broken")
        (refused,) = field.happened("entry_refused", "ada")
        assert refused.sentence(Names({"ada": "Ada"})).startswith("broken did not let Ada in: ")
        assert not field.happened("world_crashed")

    live(tmp_path, test)


@anywhere
@pytest.mark.slow
def test_a_body_from_a_failed_world_is_woken_where_it_was_last_well(tmp_path: Path, workers: int) -> None:
    async def test(field: Field) -> None:
        first = await field.enter("ada", "unruly", EntryRequest(steps=1000))
        await field.until(lambda: first.stats.steps >= 25)
        field.say("raise")
        await field.closed(first.session)
        field.say("go")
        second = await field.enter("ada", "unruly", EntryRequest(steps=1))
        assert second.session.world_id == first.session.world_id
        assert second.session.avatar_id == first.session.avatar_id
        await field.closed(second.session)
        assert second.last is not None
        assert second.last.observation.step == first.stats.steps >= 25

    live(tmp_path, test, workers=workers, pace=500)


@anywhere
@pytest.mark.slow
def test_a_game_that_fails_too_often_is_offline_until_somebody_puts_it_online(tmp_path: Path, workers: int) -> None:
    async def fail_thrice(field: Field) -> None:
        field.say("raise")
        for _ in range(3):
            stay = await field.enter("ada", "unruly")
            await field.closed(stay.session)
        await field.until(lambda: field.happened("game_offline"))
        assert field.nexus.entrance.game_info("unruly").status == "offline"
        with pytest.raises(GameUnavailableError, match="failed 3 times within 10 minutes"):
            await field.enter("ada", "unruly")
        assert (await field.enter("bob", "crafter", EntryRequest(steps=2))).session.game == "crafter"

    async def after_restart(field: Field) -> None:
        assert field.nexus.entrance.game_info("unruly").status == "offline"
        with pytest.raises(GameUnavailableError):
            await field.enter("ada", "unruly")
        field.nexus.set_game_status("unruly", "available", "repaired")
        field.say("go")
        stay = await field.enter("ada", "unruly", EntryRequest(steps=3))
        assert (await field.closed(stay.session)).reason == "step_limit"
        with pytest.raises(UsageError, match="available, maintenance or offline"):
            field.nexus.set_game_status("unruly", "broken")

    live(tmp_path, fail_thrice, workers=workers)
    live(tmp_path, after_restart, workers=workers)


def test_failures_longer_ago_than_the_window_do_not_count(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        now = 1_000_000.0
        field.nexus.nexus_store.wall_clock = lambda: now
        for _ in range(5):
            assert not field.nexus.breaker.count("unruly", "unruly-000001", UsageError("oops"))
            now += 400.0
        assert field.nexus.entrance.game_info("unruly").status == "available"
        assert field.nexus.breaker.count("unruly", "unruly-000001", UsageError("oops")) is False
        assert field.nexus.breaker.count("unruly", "unruly-000001", UsageError("oops")) is True

    live(tmp_path, test)


@pytest.mark.slow
def test_a_game_that_crashes_its_worker_is_counted_and_everybody_else_plays_on(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        other = await field.enter("bob", "crafter", EntryRequest(steps=60))
        stay = await field.enter("ada", "unruly")
        field.say("crash")
        closed = await field.closed(stay.session)
        assert closed.reason == "world_failed"
        assert "ended with status 3" in str(closed.stats["error"])
        # It was tried once more, which is the same failure.
        assert len(field.happened("game_failed")) == 1
        assert (await field.closed(other.session)).reason == "step_limit"
        assert field.nexus.entrance.game_info("crafter").status == "available"

    live(tmp_path, test, workers=1, pace=50)


@pytest.mark.slow
def test_a_game_that_hangs_is_left_behind(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        stay = await field.enter("ada", "unruly")
        field.say("hang")
        assert field.nexus.placement.pool is not None
        for _ in range(2):  # it is tried once more
            await until_at_it(tmp_path)
            await let_time_pass(field.nexus.placement.pool)
        assert (await field.closed(stay.session)).reason == "world_failed"
        with field.nexus.nexus_store.look() as tx:
            assert tx.agent("ada").place == "nexus"

    live(tmp_path, test, workers=1)


def test_when_a_game_is_taken_offline_those_in_its_other_worlds_come_home_in_order(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        stay = await field.enter("ada", "unruly", EntryRequest(steps=100_000))
        field.nexus.set_game_status("unruly", "maintenance", "new version")
        closed = await field.closed(stay.session)
        assert closed.reason == "game_offline"
        with field.nexus.nexus_store.look() as tx:
            (body,) = tx.avatars("ada", "unruly")
            assert body.avatar.state is AvatarState.SUSPENDED
        with pytest.raises(GameUnavailableError, match="maintenance: new version"):
            await field.enter("ada", "unruly")

    live(tmp_path, test, pace=200)


@anywhere
@pytest.mark.slow
def test_things_stay_in_a_failed_world_that_is_kept_and_come_out_of_it_later(tmp_path: Path, workers: int) -> None:
    async def test(field: Field) -> None:
        give(field, "ada", "sword-1")
        stay = await field.enter("ada", "crafter", EntryRequest(steps=100_000))
        assert places(field, "ada") == {"sword-1": "world"}
        error = RuntimeError("a fault in the game")
        if workers:
            # Whoever asks next is told.
            field.nexus.live.ports[stay.session.run_id]._line._die(WorldFailedError(str(error)))  # type: ignore[attr-defined]
        else:
            adapter = field.nexus.live.ports[stay.session.run_id].world.adapter  # type: ignore[attr-defined]

            def act(action: object) -> None:
                raise error

            adapter.act = act
        closed = await field.closed(stay.session)
        assert closed.reason == "world_failed"
        assert places(field, "ada") == {"sword-1": "world"}
        again = await field.enter("ada", "crafter", EntryRequest(steps=1))
        assert again.session.world_id == stay.session.world_id
        await field.closed(again.session)
        assert places(field, "ada")["sword-1"] in ("escrow", "world")

    live(tmp_path, test, workers=workers, pace=300)


def test_things_come_back_from_a_failed_world_that_is_no_more(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        stay = await field.enter("ada", "unsaved")
        with field.nexus.nexus_store.change() as tx:
            tx.mint_item("ada", PortableItem("gem-1", "Gem", "material"), game="unsaved", session=stay.session.id)
            tx.move_items("ada", ["gem-1"], from_place="escrow", to_place="world", to_id=stay.session.world_id)
        field.say("raise")
        await field.closed(stay.session)
        assert places(field, "ada") == {"gem-1": "escrow"}
        with field.nexus.nexus_store.look() as tx:
            (body,) = tx.avatars("ada", "unsaved")
            assert body.avatar.state is AvatarState.DESTROYED

    live(tmp_path, test, pace=200)


@anywhere
@pytest.mark.slow
def test_an_agent_that_fails_is_paused_where_it_is_and_goes_on_when_it_is_resumed(tmp_path: Path, workers: int) -> None:
    async def test(field: Field) -> None:
        stay = await field.enter("ada", "unruly", EntryRequest(steps=40))
        field.say("fail")
        (told,) = await field.until(lambda: field.happened("agent_failed", "ada"))
        assert "no model answers" in told.body["error"]
        with field.nexus.nexus_store.look() as tx:
            agent = tx.agent("ada")
            assert (agent.state, agent.session_id) == ("paused", stay.session.id)
        assert field.nexus.entrance.game_info("unruly").status == "available"
        field.say("go")
        await asyncio.gather(*field.nexus.sessions.tasks.values())
        field.nexus.resume("ada")
        closed = await field.closed(stay.session)
        assert (closed.reason, closed.steps) == ("step_limit", 40)

    live(tmp_path, test, workers=workers, pace=500)


async def duel(field: Field) -> list[SessionRecord]:
    """Sit two agents down at a matrix game; dan does what the file says."""
    with field.nexus.nexus_store.change() as tx:
        for agent, who in (("cleo", f"{field.file}:Steady"), ("dan", f"{field.file}:Moody")):
            tx.register(agent, policies={"nexus": Policy("external"), "*": Policy(who)})
    field.say("cooperate")
    stays = await asyncio.gather(*(field.enter(agent, "matrix") for agent in ("cleo", "dan")))
    return [stay.session for stay in stays]


@anywhere
@pytest.mark.slow
def test_where_one_of_two_agents_fails_the_other_waits_and_both_go_on_when_it_is_resumed(
    tmp_path: Path, workers: int
) -> None:
    async def test(field: Field) -> None:
        sessions = await duel(field)
        field.say("fail")
        await field.until(lambda: field.happened("agent_failed", "dan"))
        with field.nexus.nexus_store.look() as tx:
            assert (tx.agent("cleo").state, tx.agent("dan").state) == ("active", "paused")
        field.say("cooperate")
        await field.until(lambda: field.happened("resumed", "cleo"))
        field.nexus.resume("dan")
        closed = [await field.closed(session) for session in sessions]
        assert {session.reason for session in closed} == {"finished"}
        assert {session.steps for session in closed} == {10}

    live(tmp_path, test, workers=workers, pace=100, lobby_seconds=5.0)


def test_where_an_agent_cannot_even_stand_still_everybody_comes_home(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        sessions = await duel(field)
        field.say("refuse")
        closed = [await field.closed(session) for session in sessions]
        assert {session.reason for session in closed} == {"failed"}
        with field.nexus.nexus_store.look() as tx:
            assert (tx.agent("cleo").state, tx.agent("dan").state) == ("active", "paused")
            assert {tx.agent(agent).place for agent in ("cleo", "dan")} == {"nexus"}
        assert field.nexus.entrance.game_info("matrix").status == "available"
        assert not field.happened("game_failed")

    live(tmp_path, test, pace=100, lobby_seconds=5.0)


@pytest.mark.slow
def test_decisions_in_a_game_of_several_seats_count_although_it_is_offline_when_the_nexus_returns(
    tmp_path: Path,
) -> None:
    sessions: list[SessionRecord] = []

    async def begin(field: Field) -> None:
        sessions.extend(await duel(field))
        await field.until(lambda: all(stay.stats.steps for stay in field.nexus.live.sessions.values()))

    async def go_on(field: Field) -> None:
        closed = [await field.closed(session) for session in sessions]
        assert {session.reason for session in closed} == {"game_offline"}
        assert all(session.steps and session.stats["done"] for session in closed)

    live(tmp_path, begin, pace=20, lobby_seconds=5.0)
    with open_store(str(tmp_path / "nexus.db")) as store:
        Nexus(PluginHost.discovered(), store).breaker.put("matrix", "offline")
    live(tmp_path, go_on, pace=20)


def test_an_agent_that_failed_can_be_fetched_home_though_nobody_plays(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        stay = await field.enter("ada", "unruly")
        field.say("fail")
        await field.until(lambda: field.happened("agent_failed", "ada"))
        await asyncio.gather(
            *field.nexus.sessions.tasks.values(),
            *[t for t in field.nexus.agent_tasks.tasks.values() if "ada" in t.get_name()],
        )
        closed = await field.nexus.exit("ada")
        assert (closed.id, closed.reason) == (stay.session.id, "kicked")
        with field.nexus.nexus_store.look() as tx:
            (body,) = tx.avatars("ada", "unruly")
            assert (tx.agent("ada").place, body.avatar.state) == ("nexus", AvatarState.SUSPENDED)

    live(tmp_path, test, pace=200)


def test_a_game_that_needs_what_only_the_nexus_has_is_played_there(tmp_path: Path) -> None:
    async def test(field: Field) -> None:
        stay = await field.enter("ada", "needy", EntryRequest(steps=3))
        assert (await field.closed(stay.session)).reason == "step_limit"
        assert not field.happened("game_failed")

    live(tmp_path, test, workers=1)


@pytest.mark.slow
@posix
def test_stays_go_the_same_way_when_workers_are_killed_at_any_moment(tmp_path: Path) -> None:
    async def play(field: Field, kill: Callable[[str], None]) -> list[tuple[str | None, int, object, object]]:
        stays = [await field.enter(agent, "crafter", EntryRequest(steps=22)) for agent in ("ada", "bob")]
        # From now on: a world that is still being made would not have answered in between.
        field.nexus.on_step(lambda stay, step: kill(stay.session.id))
        closed = [await field.closed(stay.session) for stay in stays]
        repository = field.nexus.store.repository
        summaries = [repository.get_run(session.run_id).summary or {} for session in closed]
        return [
            (session.reason, session.steps, session.stats["done"], summary["trajectory_hash"])
            for session, summary in zip(closed, summaries, strict=True)
        ]

    outcomes: list[Any] = []

    async def undisturbed(field: Field) -> None:
        outcomes.append(await play(field, lambda stay: None))

    async def disturbed(field: Field) -> None:
        chance, acted = random.Random(7), set[str]()
        pool = field.nexus.placement.pool
        assert pool is not None

        def kill(stay: str) -> None:
            acted.add(stay)
            # A world fails whose process is killed three times without an answer in between.
            if len(acted) == len(field.nexus.live.sessions) and chance.random() < 0.12:
                acted.clear()
                for link in pool.links:
                    if link.pid is not None and not link.gone:
                        with contextlib.suppress(ProcessLookupError):
                            os.kill(link.pid, signal.SIGKILL)

        outcomes.append(await play(field, kill))
        assert pool.started > 3

    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    live(tmp_path / "one", undisturbed)
    live(tmp_path / "two", disturbed, workers=2, max_failures=10**6)
    assert outcomes[0] == outcomes[1]


def test_a_failure_that_nobody_waits_for_any_more_is_no_news() -> None:
    reported: list[object] = []

    async def test() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
        waiting: PendingFutures[int] = PendingFutures()
        waiting.wait("ada")
        waiting.resolve("ada", WorldFailedError("It crashed."))
        gc.collect()

    asyncio.run(test())
    assert reported == []
