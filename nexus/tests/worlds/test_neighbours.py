"""Games in workers: what one does to its process harms no other game."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import bad_neighbours
import hub_kit
import pytest
from unruly_time import let_time_pass, put_unruly, until_at_it

from wsap_core.loading import portable_reference
from wsap_core.protocol import Action, AvatarSpec, Entry, PortableItem
from wsap_core.references import load_adapter_spec
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EntryRequest, Policy
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.workers import processes
from wsap_nexus.worlds.workers.pool import IDLE, KILLS, WorkerPool, WorkerTimeouts

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="keepers need fork")
linux = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="adopts orphans, and waits for them, as Linux can")
PATIENCE = 300
"""Seconds to wait for another process."""


@pytest.fixture
def unruly(tmp_path: Path) -> AdapterSpec:
    return load_adapter_spec(f"{put_unruly(tmp_path)}:Unruly")


def in_pool(test: Callable[[WorkerPool], Awaitable[None]], size: int = 1, **timeouts: Any) -> None:
    async def run() -> None:
        pool = WorkerPool(size, WorkerTimeouts(**timeouts))
        try:
            await test(pool)
        finally:
            await pool.close()

    asyncio.run(run())


def world_in(pool: WorkerPool, spec: AdapterSpec, **more: Any) -> RemoteWorld:
    return RemoteWorld(spec, 5, {}, factory=str(portable_reference(spec.factory)), pool=pool, **more)


async def sat_down(world: RemoteWorld) -> Any:
    """Return a seat in a new world; in a quarry its avatar can act."""
    await world.begin(5)
    if "avatars" in world.spec.abilities:
        made = await world.create_avatar("ada", AvatarSpec("Ada"))
        assert made is not None
        await world.admit(made.avatar_id, Entry("t-1", "ada", {}))
    return await world.open_seat("ada")


async def misbehave(seat: Any) -> None:
    """Take steps up to the one in which a bad game does what it does, and on."""
    for _ in range(bad_neighbours.STEP + 3):
        await seat.observe()
        await seat.step(Action("rest"))


def until_gone(pids: list[int]) -> list[int]:
    """Wait until processes have ended, and return those that have not."""
    ends = time.monotonic() + PATIENCE
    left = []
    for pid in pids:
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        if not select.select([handle], [], [], max(0.0, ends - time.monotonic()))[0]:
            left.append(pid)
        os.close(handle)
    return left


# --- who lives with whom ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_game_that_hangs_holds_no_world_of_another_game(tmp_path: Path, unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        seat, other = await sat_down(world_in(pool, unruly)), await sat_down(world_in(pool, hub_kit.QUARRY))
        hanging = asyncio.create_task(seat.step(Action("hang_once")))
        await until_at_it(tmp_path)
        for _ in range(20):
            assert (await other.step(Action("rest"))).result.success
        assert all(link.why_killed is None for link in pool.links)
        assert not hanging.done()
        await let_time_pass(pool)
        assert (await hanging).result.success

    in_pool(test, size=1)


@pytest.mark.slow
def test_worlds_of_one_game_share_workers_and_games_do_not(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        for spec in (unruly, hub_kit.QUARRY, unruly, hub_kit.QUARRY, unruly):
            await sat_down(world_in(pool, spec))
        assert sorted((link.game, len(link.worlds)) for link in pool.links) == [
            ("quarry", 2), ("unruly", 1), ("unruly", 2),
        ]  # fmt: skip

    in_pool(test, size=3)


@pytest.mark.slow
def test_a_superfluous_worker_without_a_world_is_ended_after_a_while(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        world = world_in(pool, unruly)
        await sat_down(world)
        seat = await sat_down(world_in(pool, hub_kit.QUARRY))
        idle = next(link for link in pool.links if link.game == "unruly")
        await world.close()
        for seconds in (IDLE / 2, IDLE / 2, 1.0):
            assert len(pool.links) == 2
            for link in pool.links:
                link.silence = 0.0  # they go on giving signs of life
            pool.look(seconds)
        assert [link.game for link in pool.links] == ["quarry"]
        await idle.ended
        assert idle.why_killed is None
        assert (await seat.step(Action("rest"))).result.success

    in_pool(test, size=1)


@pytest.mark.slow
def test_a_world_that_was_at_work_is_brought_back_alone_and_the_others_together(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        worlds = [world_in(pool, unruly) for _ in range(3)]
        bad, *good = [await sat_down(world) for world in worlds]
        with pytest.raises(WorldFailedError, match="its process ended with status 3"):
            await bad.step(Action("crash"))
        for seat in good:
            assert (await seat.step(Action("go"))).result.success
        assert [world.failures for world in worlds] == [2, 0, 0]
        assert [world.rebuilt for world in worlds[1:]] == [1, 1]  # ended together with it once, and not again
        assert {len(link.worlds) for link in pool.links} == {2, 1} or [len(x.worlds) for x in pool.links] == [2]

    in_pool(test)


@pytest.mark.slow
def test_other_worlds_of_a_game_are_moved_when_one_holds_their_worker(tmp_path: Path, unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        bad, good = world_in(pool, unruly), world_in(pool, unruly)
        seat, other = await sat_down(bad), await sat_down(good)
        await other.step(Action("go"))
        (link,) = pool.links
        hanging = asyncio.create_task(seat.step(Action("hang_once")))
        await until_at_it(tmp_path)
        waiting = asyncio.create_task(other.step(Action("go")))
        while not link.calls or len(link.worlds) > 1:
            pool.look(11.0 if link.silence == 0 else 0.0)
            await asyncio.sleep(0.01)
        assert (await waiting).result.observation.status["asked"] == "go:2"
        assert link.why_killed is None
        assert (bad.failures, good.failures, good.rebuilt) == (0, 0, 1)
        await let_time_pass(pool)
        assert (await hanging).result.observation.status["asked"] == "hang_once:1"
        assert (await other.step(Action("go"))).result.observation.status["asked"] == "go:3"

    in_pool(test)


# --- whose fault it is ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_world_whose_process_is_killed_from_outside_now_and_then_is_not_to_blame(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        world = world_in(pool, unruly)
        seat = await sat_down(world)
        for number in range(KILLS - 1):
            (link,) = [link for link in pool.links if not link.gone]
            step = asyncio.create_task(seat.step(Action("go")))
            await asyncio.sleep(0)
            assert link.pid is not None
            os.kill(link.pid, signal.SIGKILL)
            assert (await step).result.observation.status["asked"] == f"go:{number + 1}"
            await link.ended
            await seat.observe()
        assert world.failures == 0

    in_pool(test)


@pytest.mark.slow
def test_a_game_whose_process_is_killed_again_and_again_between_calls_fails_in_the_end(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        failures: list[str] = []
        seat = await sat_down(world_in(pool, unruly, on_failure=lambda error: failures.append(str(error))))
        for number in range(KILLS):
            assert (await seat.step(Action("go"))).result.observation.status["asked"] == f"go:{number + 1}"
            assert not failures
            (link,) = pool.links
            assert link.pid is not None
            os.kill(link.pid, signal.SIGKILL)
            await link.ended
        assert failures == ["The game 'unruly' failed: its process was ended by SIGKILL."]
        assert (await seat.step(Action("go"))).result.success

    in_pool(test)


@pytest.mark.slow
@linux
def test_memory_is_limited_while_a_game_acts_and_the_error_names_the_game() -> None:
    async def test(pool: WorkerPool) -> None:
        seat = await sat_down(world_in(pool, bad_neighbours.GAMES["eater"]))
        with pytest.raises(
            WorldFailedError, match=r"'bad-eater' failed: it used \d+ MiB of memory, more than the limit of 200\."
        ):
            await misbehave(seat)

    in_pool(test, memory=200 * 2**20)


@pytest.mark.slow
@linux
def test_the_memory_of_what_a_game_has_started_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAD_NEIGHBOURS", str(tmp_path))

    async def test(pool: WorkerPool) -> None:
        seat = await sat_down(world_in(pool, bad_neighbours.GAMES["eatingchild"]))
        with pytest.raises(WorldFailedError, match="more than the limit of 200"):
            await misbehave(seat)

    in_pool(test, memory=200 * 2**20)
    pids = [int(path.name) for path in tmp_path.iterdir()]
    assert len(pids) == 8  # four in each try
    assert not until_gone(pids)


@pytest.mark.slow
@linux
def test_a_game_that_starts_ever_more_processes_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAD_NEIGHBOURS", str(tmp_path))

    async def test(pool: WorkerPool) -> None:
        seat = await sat_down(world_in(pool, bad_neighbours.GAMES["crowd"]))
        with pytest.raises(WorldFailedError, match=r"started \d+ processes, more than the limit of 256\."):
            await misbehave(seat)

    in_pool(test)
    assert not until_gone([int(path.name) for path in tmp_path.iterdir()])


@pytest.mark.skipif(not processes.HAS_PROC, reason="the system does not say how much memory processes share")
def test_memory_that_a_process_shares_with_its_children_counts_once() -> None:
    script = """
import os, sys, time
held = b"x" * (100 * 2**20)
for _ in range(3):
    if os.fork() == 0:
        time.sleep(1000)
print(flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        parent.stdout.readline()
        family = [parent.pid, *processes.descendants(parent.pid)]
        assert len(family) == 4
        used = processes.memory_of(family, 150 * 2**20)
        processes.kill(family)
    assert 100 * 2**20 < used < 200 * 2**20


# --- what it leaves ------------------------------------------------------------------------------------------


@pytest.mark.slow
@linux
@pytest.mark.parametrize("kind", ["forks", "killsparent", "stopsparent"])
def test_nothing_that_a_game_has_started_outlives_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("BAD_NEIGHBOURS", str(tmp_path))
    workers: list[int] = []

    async def test(pool: WorkerPool) -> None:
        seat = await sat_down(world_in(pool, bad_neighbours.GAMES[kind]))
        task = asyncio.create_task(misbehave(seat))
        while not task.done():
            workers.extend(link.pid for link in pool.links if link.pid is not None)
            if kind == "stopsparent":
                pool.look(1.0)
            await asyncio.sleep(0.05)
        with pytest.raises(WorldFailedError, match=f"'bad-{kind}' failed"):
            await task

    in_pool(test)
    started = [int(path.name) for path in tmp_path.iterdir()]
    assert len(started) == (2 * 19 if kind == "forks" else 0)
    assert not until_gone([*started, *set(workers)])


@linux
@pytest.mark.parametrize("how", ["SIGKILL to the nexus", "a stop of the pool"])
@pytest.mark.parametrize("kind", ["daemon", pytest.param("deaf", marks=pytest.mark.slow)])
def test_nothing_that_a_game_has_started_outlives_the_nexus(tmp_path: Path, how: str, kind: str) -> None:
    script = f"""
import asyncio, sys
sys.path += [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[1] / "kit")!r}]
import bad_neighbours
from test_neighbours import misbehave, sat_down, world_in
from wsap_nexus.worlds.workers.pool import WorkerPool

async def main():
    pool = WorkerPool(1)
    seat = await sat_down(world_in(pool, bad_neighbours.GAMES[{kind!r}]))
    task = asyncio.create_task(misbehave(seat))
    link = pool.links[0]
    while not (task.done() or ({kind!r} == "deaf" and link.mark.world and link.silence > 2)):
        await asyncio.sleep(0.05)
    print(link.pid, flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    await pool.close()

asyncio.run(main())
"""
    environ = {**os.environ, "BAD_NEIGHBOURS": str(tmp_path)}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script], env=environ, **pipes) as nexus:
        worker = int(nexus.stdout.readline())
        started = [int(path.name) for path in tmp_path.iterdir()]
        assert len(started) == (1 if kind == "daemon" else 0)
        if how.startswith("SIGKILL"):
            nexus.kill()
        else:
            nexus.stdin.write(b"\n")
            nexus.stdin.flush()
            assert nexus.wait(PATIENCE) == 0
    assert not until_gone([worker, *started])


# --- all of it in a nexus ---------------------------------------------------------------------------------------


async def let_time_pass_for(pool: WorkerPool, game: str, hangs: Path) -> None:
    """Have the time of a call pass for the worker of a game, and for no other, whenever it has said that it hangs."""

    def times() -> int:
        return hangs.stat().st_size

    passed = times()
    while True:
        await asyncio.sleep(0.02)
        links = [link for link in pool.links if link.game == game and link.mark.world and not link.is_ending]
        if links and times() > passed:
            passed += 1
            links[-1].silence += 2 * pool.timeouts.deadline
            pool.look(0.0)


WHY = {
    "json": "damaged its process",
    "exits": "its process ended with status 0",
    "overflow": "its process was ended by SIGSEGV",
    "killed": "its process was ended by SIGKILL",
    "killsgroup": "its process was ended by SIGKILL",
    "closes": "its process ended",
}
"""What is said of a kind's failure."""


@linux
@pytest.mark.slow
@pytest.mark.parametrize("kinds", [bad_neighbours.FAILING[first::4] for first in range(4)], ids="-".join)
def test_agents_of_another_game_notice_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]
) -> None:
    """Of one bad game after the other."""
    started, hangs = tmp_path / "started", tmp_path / "hangs"
    monkeypatch.setenv("BAD_NEIGHBOURS", str(started))
    monkeypatch.setenv("BAD_HANGS", str(hangs))
    started.mkdir()
    hangs.touch()
    settings = Settings(
        games=("quarry", *(f"bad-{kind}" for kind in kinds)),
        workers=1,
        timeouts=WorkerTimeouts(memory=300 * 2**20),
        lobby_seconds=0.05,
        pace=20.0,
    )

    async def run() -> None:
        with open_store(str(tmp_path / "nexus.db"), environ={"WSAP_HOME": str(tmp_path)}) as store:
            nexus = Nexus(hub_kit.host(more=tuple(bad_neighbours.GAMES.values())), store, settings)
            quiet = Policy("digger", {"leaves": 0.0, "climbs": 0.0})
            with nexus.nexus_store.change() as tx:
                for agent in ("ada", *kinds):
                    tx.register(agent, policies={"nexus": Policy("external"), "*": quiet})
                for guest in kinds:
                    sword = PortableItem(f"sword-of-{guest}", "Sword", "weapon", 3, {}, "quarry")
                    tx.mint_item(guest, sword, game="quarry", session="")
            failures: list[tuple[str | None, str]] = []
            home, acted = {kind: asyncio.Event() for kind in kinds}, asyncio.Event()

            def hear(event: Any) -> None:
                if event.kind == "game_failed":
                    failures.append((event.game, str(event.body["error"])))
                if event.kind == "left" and event.agent_id in home:
                    home[event.agent_id].set()

            nexus.nexus_store.listen(hear)
            nexus.on_step(lambda stay, step: acted.set() if stay.session.agent_id == "ada" else None)
            await nexus.start()
            try:
                stay = await nexus.enter("ada", "quarry", EntryRequest())
                acted.clear()
                async with asyncio.timeout(PATIENCE):
                    await acted.wait()
                workers = workers_of(nexus, "quarry")
                assert len(workers) == 1
                for kind in kinds:
                    failures.clear()
                    await fails(nexus, kind, home[kind], hangs)
                    acted.clear()
                    async with asyncio.timeout(PATIENCE):
                        await acted.wait()
                    with nexus.nexus_store.look() as tx:
                        assert tx.session(stay.session.id).closed is None, kind
                        assert tx.agent(kind).place == "nexus", kind
                        assert {record.place for record in tx.items(kind)} <= {"world", "escrow"}, kind
                    assert len(failures) == 1, (kind, failures)  # however often it was repeated
                    assert {name for name, _ in failures} == {f"bad-{kind}"}
                    assert all(f"'bad-{kind}'" in error for _, error in failures)
                    assert all(WHY.get(kind, "") in error for _, error in failures), failures
                    assert workers_of(nexus, "quarry") == workers, kind
                    assert nexus.breaker.of("quarry").status == "available", kind
            finally:
                await nexus.stop()

    asyncio.run(run())
    assert not until_gone([int(path.name) for path in started.iterdir()])


def workers_of(nexus: Nexus, game: str) -> list[int | None]:
    """Return the processes in which worlds of a game are."""
    assert nexus.placement.pool is not None
    return [link.pid for link in nexus.placement.pool.links if link.game == game]


async def fails(nexus: Nexus, kind: str, home: asyncio.Event, hangs: Path) -> None:
    """Have a guest enter a bad game, and wait until it has come home from there."""
    assert nexus.placement.pool is not None
    passing = asyncio.create_task(let_time_pass_for(nexus.placement.pool, f"bad-{kind}", hangs))
    try:
        await nexus.enter(kind, f"bad-{kind}", EntryRequest(steps=30))
        async with asyncio.timeout(PATIENCE):
            await home.wait()
    finally:
        passing.cancel()
