"""Workers on a Ray cluster of two nodes on one machine: the same as on the machine of the nexus, whatever is lost."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import bad_neighbours
import hub_checks
import pytest
from test_failures import Field, live
from test_neighbours import misbehave, until_gone
from test_neighbours import sat_down as sat_down_in_quarry
from test_neighbours import world_in as quarry_in
from test_workers import crafter_stay, kill_workers, sat_down, world_in
from unruly_time import let_time_pass, put_unruly, until_at_it

from wsap_core.cli import main
from wsap_core.errors import MissingServiceError, UsageError
from wsap_core.host import PluginHost
from wsap_core.protocol import Action
from wsap_core.references import load_adapter_spec
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import WorldFailedError
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EntryRequest
from wsap_nexus.worlds.port import LocalWorld
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.workers.carriers.cluster import differences, installed, ray_cluster, refuse_unreachable
from wsap_nexus.worlds.workers.pool import WorkerPool, WorkerTimeouts

pytestmark = pytest.mark.xdist_group("ray")

warned = pytest.mark.filterwarnings("ignore")  # Ray's own warnings
AGENTS = tuple(f"agent-{number}" for number in range(8))


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(MissingServiceError, match=r"--workers ray needs Ray; install it with: .*nexus\[ray\]"),
        ray_cluster(),
    ):
        pass


def test_other_workers_than_a_number_or_ray_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nexus", "start", "--workers", "rays"]) == 2
    assert "'rays' is not a whole number from 0 to 64, nor is it ray." in capsys.readouterr().err


def test_what_is_of_another_version_on_a_node_is_named() -> None:
    here = installed()
    assert here["wsap-nexus"]
    assert differences(here, here) == ""
    assert differences(here, {**here, "wsap-nexus": "0.0.1"}) == f"wsap-nexus is 0.0.1, and here {here['wsap-nexus']}"
    assert differences({**here, "wsap-here": "1"}, {**here, "wsap-there": "2"}) == ""


def test_an_address_at_which_nobody_listens_is_refused_at_once() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        for named in (address, f"ray://{address}"):
            with pytest.raises(UsageError, match=f"There is no Ray cluster at {named}, which RAY_ADDRESS names: "):
                refuse_unreachable(named)
        mute.listen()
        refuse_unreachable(address)
    refuse_unreachable("")


# --- on a cluster ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder in which games on the cluster note what they have started."""
    return tmp_path_factory.mktemp("started")


@pytest.fixture(scope="module")
def cluster(started: Path) -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="needs Ray, in wsap-nexus[ray]")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BAD_NEIGHBOURS", str(started))  # the games there have the environment of their node
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
        ray.init(made.address, log_to_driver=False)
        try:
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


@pytest.fixture
def unruly(tmp_path: Path) -> AdapterSpec:
    return load_adapter_spec(f"{put_unruly(tmp_path)}:Unruly")


def in_cluster(test: Callable[[WorkerPool], Awaitable[None]], **more: Any) -> None:
    """Run a test with workers on the cluster, which are ended after it."""

    async def run() -> None:
        with ray_cluster() as machines:
            pool = WorkerPool(machines, WorkerTimeouts(memory=more.pop("memory", None)), **more)
            try:
                await test(pool)
            finally:
                await pool.close()

    asyncio.run(run())


@pytest.mark.slow
@warned
@pytest.mark.parametrize("kills", [(), (7, 100, 101, 180)], ids=["undisturbed", "killed"])
def test_it_goes_the_same_way_there_as_in_this_process(cluster: Any, tmp_path: Path, kills: tuple[int]) -> None:
    spec = PluginHost.discovered().games.get("crafter")
    expected = asyncio.run(crafter_stay(LocalWorld(spec, 5, {}), 120))
    calls, due = 0, 0

    async def test(pool: WorkerPool) -> None:
        def maybe() -> None:
            nonlocal calls, due
            calls += 1
            due += calls in kills
            if due and any(link.pid is not None for link in pool.links):  # one that begins has no process yet
                kill_workers(pool)
                due -= 1

        world = world_in(pool, spec, snapshot_every=20)
        assert await crafter_stay(world, 120, maybe) == expected
        assert bool(world.rebuilt) == bool(kills)
        (link,) = pool.links
        assert link.where.startswith("node ")
        assert f"--- on {link.where}\n" in (tmp_path / f"{link.name}.log").read_text()

    in_cluster(test, logs=tmp_path)


@pytest.mark.slow
@warned
def test_what_a_game_prints_comes_into_the_log(cluster: Any, tmp_path: Path, unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        seat = await sat_down(world_in(pool, unruly))
        await seat.step(Action("print", {"text": "from afar"}))
        await pool.close()
        assert "from afar" in (tmp_path / "worker-1.log").read_text()

    in_cluster(test, logs=tmp_path)


@pytest.mark.slow
@warned
def test_a_game_that_hangs_is_killed_and_has_failed_if_it_does_it_again(
    cluster: Any, tmp_path: Path, unruly: AdapterSpec
) -> None:
    async def test(pool: WorkerPool) -> None:
        failures: list[str] = []
        world = world_in(pool, unruly, on_failure=lambda error: failures.append(str(error)))
        seat = await sat_down(world)
        hanging = asyncio.create_task(seat.step(Action("hang_once")))
        await until_at_it(tmp_path)
        await let_time_pass(pool)
        assert (await hanging).result.success
        assert failures == ["The game 'unruly' failed: it did not respond for 30 s."]
        hanging = asyncio.create_task(seat.step(Action("hang")))
        for _ in range(2):
            await until_at_it(tmp_path)
            await let_time_pass(pool)
        with pytest.raises(WorldFailedError, match="it did not respond for 30 s"):
            await hanging

    in_cluster(test)


@pytest.mark.slow
@warned
def test_a_game_that_ends_its_process_has_failed_if_it_does_it_again(cluster: Any, unruly: AdapterSpec) -> None:
    async def test(pool: WorkerPool) -> None:
        seat = await sat_down(world_in(pool, unruly))
        with pytest.raises(WorldFailedError, match="'unruly' failed: its process ended with status 3"):
            await seat.step(Action("crash"))

    in_cluster(test)


@pytest.mark.slow
@warned
def test_memory_is_limited_there(cluster: Any) -> None:
    async def test(pool: WorkerPool) -> None:
        seat = await sat_down_in_quarry(quarry_in(pool, bad_neighbours.GAMES["eater"]))
        with pytest.raises(WorldFailedError, match=r"used \d+ MiB of memory, more than the limit of 200\."):
            await misbehave(seat)

    in_cluster(test, memory=200 * 2**20)


@pytest.mark.slow
@warned
def test_a_game_that_is_not_on_the_node_says_where_it_is_missing(cluster: Any, tmp_path: Path) -> None:
    spec = PluginHost.discovered().games.get("crafter")

    async def test(pool: WorkerPool) -> None:
        world = RemoteWorld(spec, 5, {}, factory="wsap_not_there.game:Game", pool=pool)
        with pytest.raises(WorldFailedError, match=r"On node .*: The module 'wsap_not_there.game' can't be imported"):
            await world.begin(5)

    in_cluster(test)


@pytest.mark.slow
@warned
def test_nothing_on_the_cluster_outlives_the_nexus(cluster: Any, started: Path) -> None:
    script = f"""
import asyncio, sys
sys.path += {[str(Path(__file__).parents[1] / "kit"), str(Path(__file__).parent)]!r}
import bad_neighbours
from test_neighbours import misbehave, sat_down, world_in
from wsap_nexus.worlds.workers.carriers.cluster import ray_cluster
from wsap_nexus.worlds.workers.pool import WorkerPool

async def main():
    with ray_cluster() as machines:
        pool = WorkerPool(machines)
        seat = await sat_down(world_in(pool, bad_neighbours.GAMES["daemon"]))
        await misbehave(seat)
        print(pool.links[0].pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""
    environ = {**os.environ, "RAY_ADDRESS": cluster.address}
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", script], env=environ, **pipes) as nexus:
        said = nexus.stdout.readline()
        nexus.kill()
        assert said.strip().isdigit(), nexus.stderr.read().decode()
    pids = [int(said), *(int(path.name) for path in started.iterdir())]
    assert len(pids) == 2
    assert not until_gone(pids)


@pytest.mark.slow
@warned
def test_worlds_go_on_elsewhere_when_a_node_is_lost(cluster: Any, tmp_path: Path) -> None:
    lost = cluster.add_node(num_cpus=2)
    outcomes: list[Any] = []

    async def play(field: Field, at: Callable[[int], None]) -> None:
        steps = 0

        def count(stay: object, step: object) -> None:
            nonlocal steps
            steps += 1
            at(steps)

        field.nexus.on_step(count)
        field.register(*AGENTS)
        stays = [await field.enter(agent, "crafter", EntryRequest(steps=30)) for agent in AGENTS]
        closed = [await field.closed(stay.session) for stay in stays]
        runs = [field.nexus.store.repository.get_run(session.run_id) for session in closed]
        outcomes.append(
            [
                (session.reason, session.steps, (run.summary or {})["trajectory_hash"])
                for session, run in zip(closed, runs, strict=True)
            ]
        )
        assert not field.happened("game_failed")
        assert not field.happened("world_crashed")

    async def undisturbed(field: Field) -> None:
        await play(field, lambda steps: None)

    async def disturbed(field: Field) -> None:
        pool = field.nexus.placement.pool
        assert pool is not None
        ends: list[asyncio.Task[None]] = []

        def lose(steps: int) -> None:
            if steps == 60:
                assert any(lost.node_id[:8] in link.where for link in pool.links)
                losing = asyncio.to_thread(cluster.remove_node, lost, allow_graceful=False)
                ends.append(asyncio.ensure_future(losing))

        await play(field, lose)
        await asyncio.gather(*ends)
        assert ends
        assert not any(lost.node_id[:8] in link.where for link in pool.links)

    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    live(tmp_path / "here", undisturbed)
    with ray_cluster() as machines:
        assert machines.size == 4
        live(tmp_path / "there", disturbed, machines=machines)
    assert outcomes[0] == outcomes[1]
    for name in ("here", "there"):
        with open_store(str(tmp_path / name / "nexus.db")) as store:
            assert hub_checks.problems(store.database) == []
