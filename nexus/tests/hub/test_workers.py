"""Worlds in worker processes: the same as anywhere else, whatever happens to the process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import select
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unruly_time import let_time_pass, put_unruly, until_at_it, until_begun

from wsap_core.errors import WireError, WorldError
from wsap_core.host import PluginHost
from wsap_core.loading import portable_reference
from wsap_core.protocol import Action, AvatarSpec, Entry, Observation
from wsap_core.protocol.wire import dumps
from wsap_core.references import load_adapter_spec
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.runs.record.trajectory import step_line
from wsap_nexus.worlds.port import LocalWorld, WorldPort
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.workers.blame import Blamed, BlameFile
from wsap_nexus.worlds.workers.frames import FrameReader, frame
from wsap_nexus.worlds.workers.link import OutputLog
from wsap_nexus.worlds.workers.pool import WorkerPool, WorkerTimeouts

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
HOST = PluginHost.discovered()
WALK = ("move_left", "move_up", "do", "noop", "move_right", "move_down", "do")


@pytest.fixture
def unruly(tmp_path: Path) -> AdapterSpec:
    return _unruly(tmp_path, "Unruly")


def _unruly(folder: Path, name: str) -> AdapterSpec:
    return load_adapter_spec(f"{put_unruly(folder)}:{name}")


def in_pool(test: Callable[[WorkerPool], Awaitable[None]], size: int = 1, deadline: float = 30.0, **more: Any) -> None:
    """Run a test with workers that are ended after it."""

    async def run() -> None:
        pool = WorkerPool(size, WorkerTimeouts(deadline, more.pop("memory", None)), **more)
        try:
            await test(pool)
        finally:
            await pool.close()

    asyncio.run(run())


def world_in(pool: WorkerPool, spec: AdapterSpec, seed: int = 5, **more: Any) -> RemoteWorld:
    return RemoteWorld(spec, seed, {}, factory=str(portable_reference(spec.factory)), pool=pool, **more)


async def sat_down(face: WorldPort, seat: str = "ada") -> Any:
    await face.begin(5)
    return await face.open_seat(seat)


def kill_workers(pool: WorkerPool) -> None:
    for link in pool.links:
        if link.pid is not None and not link.gone:
            with contextlib.suppress(ProcessLookupError):  # gone already, which is noticed later
                os.kill(link.pid, signal.SIGKILL)


async def crafter_stay(face: WorldPort, steps: int, before_call: Callable[[], None] = lambda: None) -> list[str]:
    """Live through a stay in Crafter with skills and an end in good order; return its lines and what it ends with."""
    await face.begin(5)
    made = await face.create_avatar("ada", AvatarSpec("Ada"))
    assert made is not None
    receipt = await face.admit(made.avatar_id, Entry("t-1", "ada", {"crafting": 0.9}))
    seat = await face.open_seat("ada")
    lines = [dumps(receipt), seat.game_description, dumps(seat.action_space)]
    for number in range(steps):
        before_call()
        lines.append(dumps(await seat.observe()))
        before_call()
        outcome = await seat.step(Action(WALK[number * 5 // 3 % len(WALK)]))
        lines.append(step_line("ada", outcome.action, outcome.result))
        if outcome.result.done:
            break
    before_call()
    lines.append(dumps(await face.render()))
    left = seat.leave("dormant")
    lines.append(dumps(await left if isinstance(left, Awaitable) else left))
    lines.append(dumps(await face.release(made.avatar_id, "t-2")))
    lines.append(dumps(list(await face.avatars("ada"))))
    return lines


TRAP = """
import asyncio
from wsap_core import ActionDef, ActionSpace, Observation


class Face:
    game_description = "A trap."
    action_space = ActionSpace((ActionDef("step", "Step in."),))

    def observe(self):
        return Observation()

    async def act(self, action):
        await asyncio.Event().wait()


class Trap(Face):
    wsap_spec = {"abilities": ("multi-seat",), "seats": (2, 2), "timing": "simultaneous"}

    def reset(self):
        return Observation()

    def seat(self, agent_id):
        return Face()
"""


@pytest.mark.slow
def test_a_world_that_all_its_seats_wait_for_without_an_end_has_failed(tmp_path: Path) -> None:
    (tmp_path / "trap.py").write_text(TRAP, encoding="utf-8")
    spec = load_adapter_spec(f"{tmp_path / 'trap.py'}:Trap")

    async def test(pool: WorkerPool) -> None:
        world = world_in(pool, spec)
        await world.begin(5)
        ada, bob = [await world.open_seat(name) for name in ("ada", "bob")]
        first = asyncio.create_task(ada.step(Action("step")))
        # It waits for the other, who has not decided yet.
        assert not (await asyncio.wait({first}, timeout=3 * pool.timeouts.deadline))[0]
        assert world.asked is not None
        assert world.asked[0] == "resolve of 'ada'"
        with pytest.raises(WorldFailedError, match="all seats waited for it"):
            await bob.step(Action("step"))
        with pytest.raises(WorldFailedError, match="all seats waited for it"):
            await first
        await world.close()

    in_pool(test, deadline=1.0)


# --- the same as anywhere else ---------------------------------------------------------------------


@pytest.mark.slow
def test_crafter_goes_the_same_way_in_a_worker_as_in_this_process() -> None:
    spec = HOST.games.get("crafter")
    expected = asyncio.run(crafter_stay(LocalWorld(spec, 5, {}), 120))

    async def test(pool: WorkerPool) -> None:
        assert await crafter_stay(world_in(pool, spec), 120) == expected

    in_pool(test)


@pytest.mark.slow
def test_an_observation_of_a_type_that_is_not_known_here_keeps_its_canonical_text() -> None:
    spec = HOST.games.get("crafter")
    expected = asyncio.run(crafter_stay(LocalWorld(spec, 5, {}), 10))

    async def test(pool: WorkerPool) -> None:
        world = world_in(pool, replace(spec, wire_types=()))
        assert await crafter_stay(world, 10) == expected
        seen = await (await sat_down(world_in(pool, replace(spec, wire_types=())))).observe()
        assert type(seen) is Observation
        assert seen.extras["$type"] == "CrafterObservation"

    in_pool(test)


@pytest.mark.slow
@posix
@pytest.mark.parametrize("seed", range(2))
def test_crafter_goes_the_same_way_when_its_worker_is_killed_at_any_moment(seed: int) -> None:
    spec = HOST.games.get("crafter")
    expected = asyncio.run(crafter_stay(LocalWorld(spec, 5, {}), 90))
    chance = random.Random(seed)

    async def test(pool: WorkerPool) -> None:
        killed = 0

        def maybe() -> None:
            nonlocal killed
            if chance.random() < 0.05:
                killed += 1
                # At once, so that the next call finds it dead, or while that call is under way.
                asyncio.get_running_loop().call_later(chance.choice((0, 0.0003, 0.001)), kill_workers, pool)

        world = world_in(pool, spec, snapshot_every=20)
        assert await crafter_stay(world, 90, maybe) == expected
        assert killed
        assert world.rebuilt

    in_pool(test)


@posix
@pytest.mark.slow
def test_a_world_of_two_seats_is_brought_back_with_a_move_that_waits_for_the_other() -> None:
    spec = HOST.games.get("matrix")

    async def play(face: WorldPort, in_between: Callable[[], None]) -> list[str]:
        await face.begin(3)
        row, column = await face.open_seat("row"), await face.open_seat("column")
        lines = []
        for number in range(6):
            lines += [dumps(await seat.observe()) for seat in (row, column)]
            first = asyncio.create_task(row.step(Action(("cooperate", "defect")[number % 2])))
            await asyncio.sleep(0)
            in_between()
            second = await column.step(Action(("cooperate", "defect")[number // 2 % 2]))
            for name, outcome in (("row", await first), ("column", second)):
                lines.append(step_line(name, outcome.action, outcome.result))
        return lines

    async def test(pool: WorkerPool) -> None:
        expected = await play(LocalWorld(spec, 3, {}), lambda: None)
        world = world_in(pool, spec, seed=3, snapshot_every=3)
        assert await play(world, lambda: kill_workers(pool)) == expected
        assert world.rebuilt == 6

    in_pool(test)


@posix
@pytest.mark.slow
def test_no_state_is_saved_between_what_a_seat_sees_and_what_it_does() -> None:
    spec = HOST.games.get("matrix")

    async def play(face: WorldPort, kill: Callable[[], None]) -> list[str]:
        await face.begin(3)
        row, column = await face.open_seat("row"), await face.open_seat("column")
        lines = []
        for number in range(5):
            for seat in (row, column):
                await seat.observe()
                # Whatever was to be saved is saved by now.
                await face.avatars(seat.agent_id)
            if number == 3:
                kill()
            outcomes = await asyncio.gather(row.step(Action("defect")), column.step(Action("cooperate")))
            lines += [step_line("", outcome.action, outcome.result) for outcome in outcomes]
        return lines

    async def test(pool: WorkerPool) -> None:
        expected = await play(LocalWorld(spec, 3, {}), lambda: None)
        world = world_in(pool, spec, seed=3, snapshot_every=1)
        assert await play(world, lambda: kill_workers(pool)) == expected
        assert world.rebuilt == 1
        assert world.last_state is not None

    in_pool(test)


@posix
@pytest.mark.slow
def test_a_move_that_was_taken_back_stays_taken_back_when_the_world_is_brought_back() -> None:
    spec = HOST.games.get("matrix")

    async def play(face: WorldPort, in_between: Callable[[], None]) -> list[str]:
        await face.begin(3)
        row, column = await face.open_seat("row"), await face.open_seat("column")
        await row.observe()
        await column.observe()
        waiting = asyncio.create_task(row.step(Action("cooperate")))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        left = row.leave("despawn")
        lines = [dumps(await left if isinstance(left, Awaitable) else left)]
        in_between()
        outcome = await column.step(Action("defect"))
        return [*lines, step_line("column", outcome.action, outcome.result), dumps(await column.observe())]

    async def test(pool: WorkerPool) -> None:
        expected = await play(LocalWorld(spec, 3, {}), lambda: None)
        assert await play(world_in(pool, spec, seed=3), lambda: None) == expected
        assert await play(world_in(pool, spec, seed=3), lambda: kill_workers(pool)) == expected

    in_pool(test)


@posix
@pytest.mark.slow
def test_a_game_that_cannot_be_saved_is_brought_back_from_its_beginning(tmp_path: Path) -> None:
    spec = _unruly(tmp_path, "Unsaved")
    assert "snapshot" not in spec.abilities

    async def test(pool: WorkerPool) -> None:
        world, local = world_in(pool, spec), LocalWorld(spec, 5, {})
        seat, other = await sat_down(world), await sat_down(local)
        for number in range(150):
            if number in (40, 149):
                kill_workers(pool)
            assert (await seat.step(Action("go"))).result == (await other.step(Action("go"))).result
        assert world.rebuilt == 2
        assert not world.can_snapshot

    in_pool(test)


@posix
@pytest.mark.slow
def test_what_happened_since_the_last_saved_state_stays_short(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        world = world_in(pool, unruly, snapshot_every=10)
        seat = await sat_down(world)
        for _ in range(100):
            await seat.observe()
            await seat.step(Action("go"))
            assert len(world._line.journal.events) <= 50
        kill_workers(pool)
        assert (await seat.observe()).status["asked"] == "go:100"

    in_pool(test)


# --- games that misbehave -------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_game_that_prints_and_reads_spoils_no_message_and_is_logged_up_to_a_limit(
    tmp_path: Path, unruly: AdapterSpec
) -> None:
    async def test(pool: WorkerPool) -> None:
        seat = await sat_down(world_in(pool, unruly))
        outcome = await seat.step(Action("print", {"text": "loud and clear"}))
        assert outcome.result.message == "Done."
        assert (await seat.step(Action("read"))).result.message == "Read '' and b''."
        for _ in range(30):
            await seat.step(Action("print", {"text": "x" * 100_000}))

    in_pool(test, logs=tmp_path / "logs")
    old, new = tmp_path / "logs" / "worker-1.log.1", tmp_path / "logs" / "worker-1.log"
    assert new.stat().st_size <= 1_000_000
    assert old.stat().st_size <= 1_000_000
    assert b"straight to the descriptor" in new.read_bytes()


@pytest.mark.slow
def test_a_call_whose_worker_died_is_made_again_once_and_counts_once(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        failures: list[WorldFailedError] = []
        world = world_in(pool, unruly, on_failure=failures.append)
        seat = await sat_down(world)
        await seat.step(Action("go"))
        outcome = await seat.step(Action("crash_once"))
        assert outcome.result.observation.status["asked"] == "crash_once:1 go:1"
        assert outcome.result.observation.step == 2
        assert [str(f) for f in failures] == ["The game 'unruly' failed: its process ended with status 3."]

    in_pool(test)


@pytest.mark.slow
def test_a_game_that_crashes_again_fails_and_harms_no_other_in_its_worker(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        told: list[WorldFailedError] = []
        bad, good = world_in(pool, unruly, on_failure=told.append), world_in(pool, HOST.games.get("echo"))
        seat, other = await sat_down(bad), await sat_down(good)
        before = await other.step(Action("say", {"text": "still here"}))
        with pytest.raises(WorldFailedError, match=r"'unruly' failed: its process ended with status 3\."):
            await seat.step(Action("crash"))
        assert await other.observe() == before.result.observation
        assert (bad.failures, good.failures, pool.started) == (2, 0, 3)
        assert len(told) == 1, "it is one failure, repeated"
        with pytest.raises(WorldFailedError):
            await seat.observe()
        await bad.close()
        again = await sat_down(world_in(pool, unruly))
        assert (await again.step(Action("go"))).result.success

    in_pool(test)


@pytest.mark.slow
def test_a_game_that_hangs_is_ended_and_held_to_blame_and_others_go_on(unruly: AdapterSpec, tmp_path: Path) -> None:
    async def test(pool: WorkerPool) -> None:
        bad, good = world_in(pool, unruly), world_in(pool, unruly)
        seat, other = await sat_down(bad), await sat_down(good)
        await other.step(Action("go"))
        hanging = asyncio.create_task(seat.step(Action("hang_once")))
        await until_at_it(tmp_path)
        waiting = asyncio.create_task(other.step(Action("go")))
        await let_time_pass(pool)
        assert (await waiting).result.observation.status["asked"] == "go:2"
        assert (await hanging).result.observation.status["asked"] == "hang_once:1"
        # The one that hung is alone in a worker, and so is the other.
        assert (bad.failures, good.failures, pool.started) == (1, 0, 3)

    in_pool(test)


@pytest.mark.slow
def test_a_call_that_waits_for_nothing_is_given_up_though_the_worker_lives(unruly: AdapterSpec, tmp_path: Path) -> None:
    async def test(pool: WorkerPool) -> None:
        world = world_in(pool, unruly)
        seat = await sat_down(world)
        waiting = asyncio.create_task(seat.step(Action("wait")))
        for _ in range(2):  # it is tried once more
            await until_at_it(tmp_path)
            link = pool.links[0]
            await until_begun(link)
            link.silence = 0.0  # it goes on giving signs of life
            pool.look(15.0)
            assert link.why_killed is None
            link.silence = 0.0
            pool.look(15.5)
            await link.ended
            assert link.why_killed == "a call was not answered within 30 s"
        with pytest.raises(WorldFailedError, match="a call was not answered within 30 s"):
            await waiting
        assert world.failures == 2

    in_pool(test)


def test_a_seat_that_waits_for_another_is_not_taken_for_a_hanging_game() -> None:
    async def test(pool: WorkerPool) -> None:
        world = world_in(pool, HOST.games.get("matrix"))
        row, column = await sat_down(world, "row"), await world.open_seat("column")
        waiting = asyncio.create_task(row.step(Action("defect")))
        link = pool.links[0]
        await until_begun(link)
        for _ in range(1000):
            link.silence = 0.0  # it goes on giving signs of life
            pool.look(1.0)
        assert (await column.step(Action("defect"))).result.success
        assert (await waiting).result.success
        assert pool.started == 1

    in_pool(test, deadline=2.0)


@pytest.mark.slow
def test_a_worker_that_is_silent_is_ended_even_when_nobody_asks_it_anything(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        seat = await sat_down(world_in(pool, unruly))
        link = pool.links[0]
        pool.look(31.0)
        assert link.why_killed is None
        pool.look(31.0)
        await link.ended
        assert link.why_killed == "it did not respond for 30 s"
        assert (await seat.step(Action("go"))).result.observation.status["asked"] == "go:1"

    in_pool(test)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the system does not say how much memory is in use")
def test_a_game_that_holds_too_much_memory_is_ended_and_brought_back_smaller(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        world = world_in(pool, unruly, snapshot_every=1)
        seat = await sat_down(world)
        while not world.failures:
            await seat.step(Action("leak"))
        outcome = await seat.step(Action("go"))
        assert outcome.result.observation.status["asked"].startswith("go:1 leak:")

    in_pool(test, memory=400 * 2**20, deadline=5.0)


@pytest.mark.parametrize(("deed", "why"), [("raise", "raised KeyError: 'something it forgot'"), ("exit", "SystemExit")])
def test_a_game_that_raises_keeps_its_worker_and_says_why(unruly: AdapterSpec, deed: str, why: str) -> None:
    async def test(pool: WorkerPool) -> None:
        seat = await sat_down(world_in(pool, unruly))
        with pytest.raises(WorldFailedError, match=why):
            await seat.step(Action(deed))
        assert pool.started == 1

    in_pool(test)


@posix
@pytest.mark.slow
def test_a_game_that_is_left_to_chance_can_not_be_brought_back_and_says_so(unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        world = world_in(pool, unruly)
        seat = await sat_down(world)
        await seat.step(Action("chance"))
        kill_workers(pool)
        with pytest.raises(WorldError, match="gave a different reply to the repeated resolve of 'ada'"):
            await seat.step(Action("go"))
        await world.close()

    in_pool(test)


def test_a_game_that_cannot_be_loaded_fails_with_the_reason(tmp_path: Path, unruly: AdapterSpec) -> None:
    (tmp_path / "unruly.py").write_text("raise RuntimeError('half a file')", encoding="utf-8")

    async def test(pool: WorkerPool) -> None:
        with pytest.raises(WorldFailedError, match="half a file"):
            await world_in(pool, unruly).begin(1)

    in_pool(test)


# --- the end of it -----------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waits for a process of others as Linux can")
@pytest.mark.parametrize("deed", ["go", "hang"])
@pytest.mark.slow
def test_workers_end_when_the_nexus_is_killed_even_in_an_endless_loop(tmp_path: Path, deed: str) -> None:
    _unruly(tmp_path, "Unruly")
    script = f"""
import asyncio, sys
from pathlib import Path
sys.path.append({str(Path(__file__).parents[1] / "kit")!r})
from unruly_time import until_at_it
from wsap_core.protocol import Action
from wsap_core.references import load_adapter_spec
from wsap_core.loading import portable_reference
from wsap_nexus.worlds.workers.pool import WorkerPool
from wsap_nexus.worlds.remote.remote_world import RemoteWorld

async def main():
    spec = load_adapter_spec({str(tmp_path / "unruly.py")!r} + ":Unruly")
    pool = WorkerPool(1)
    world = RemoteWorld(spec, 1, {{}}, factory=portable_reference(spec.factory), pool=pool)
    await world.begin(1)
    seat = await world.open_seat("ada")
    acting = asyncio.create_task(seat.step(Action({deed!r})))
    await (acting if {deed!r} == "go" else until_at_it(Path({str(tmp_path)!r})))
    print(pool.links[0].pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as nexus:
        assert nexus.stdout is not None
        worker = os.pidfd_open(int(nexus.stdout.readline()))
        nexus.kill()
    ended = select.select([worker], [], [], 300)[0]
    os.close(worker)
    assert ended, "the worker is still there"


def test_closing_the_pool_ends_its_workers(unruly: AdapterSpec) -> None:
    async def run() -> None:
        pool = WorkerPool(2)
        for _ in range(2):
            await sat_down(world_in(pool, unruly))
        links = pool.links
        assert len(links) == 2
        await pool.close()
        assert all(link.gone and link.why_killed is None for link in links)

    asyncio.run(run())


# --- the parts ------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.binary(max_size=300)), max_size=8), st.integers(1, 50))
def test_frames_come_out_as_they_went_in_whatever_pieces_they_come_in(
    sent: list[tuple[int, bytes]], piece: int
) -> None:
    stream = b"".join(frame(number, content) for number, content in sent)
    reader, got = FrameReader(), []
    for start in range(0, len(stream), piece):
        got += reader.feed(stream[start : start + piece])
    assert got == sent


def test_a_frame_that_says_it_is_endless_is_refused_at_once() -> None:
    with pytest.raises(WireError):
        FrameReader().feed(b"\xff" * 12)


def test_the_mark_stands_at_a_world_while_its_code_runs_and_at_none_while_it_waits() -> None:
    async def run() -> None:
        mark = BlameFile.new()
        seen: list[int] = []
        gate = asyncio.Event()

        async def game() -> str:
            seen.append(mark.world)
            await gate.wait()
            seen.append(mark.world)
            return "over"

        async def asked() -> str:
            return await Blamed(game(), mark, 7)

        task = asyncio.create_task(asked())
        await asyncio.sleep(0)
        seen.append(mark.world)
        gate.set()
        assert await task == "over"
        assert [*seen, mark.world] == [7, 0, 7, 0]
        mark.close()
        assert not mark.path.exists()

    asyncio.run(run())


def test_the_output_log_keeps_the_newest_and_survives_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    log = OutputLog(tmp_path / "logs" / "w.log", limit=100)
    for number in range(50):
        log.write(f"line {number:04}\n".encode())
    kept = (tmp_path / "logs" / "w.log.1").read_bytes() + (tmp_path / "logs" / "w.log").read_bytes()
    assert kept.endswith(b"line 0049\n")
    assert 100 <= len(kept) <= 200
    (tmp_path / "file").touch()
    OutputLog(tmp_path / "file" / "below" / "w.log").write(b"lost")
