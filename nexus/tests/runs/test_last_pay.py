"""What a seat is paid that never came to move: in runs, resumed runs, worlds in workers and worlds over HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from rounds_kit import Standoff
from several_seats import SEEN, Log, agent, play
from test_far_blame import Town
from test_workers import in_pool

from wsap_core.protocol import Action
from wsap_core.references import load_adapter_spec
from wsap_core.worlds import GAME_OVER
from wsap_nexus.hub.games.remote_games import read_spec
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.worlds.port import LocalWorld, WorldPort
from wsap_nexus.worlds.remote.http_lines import HttpLines
from wsap_nexus.worlds.remote.remote_world import RemoteWorld
from wsap_nexus.worlds.remote.serve_world import world_app
from wsap_nexus.worlds.workers.pool import WorkerPool

KIT = Path(__file__).parents[3] / "tests/kit/rounds_kit.py"
SPEC = load_adapter_spec(Standoff)
SEATS = Standoff.seats
PLAN = RunPlan("game", tuple(SeatPlan(name, "agent") for name in SEATS), seed=3)


def rewards(log: Log) -> dict[str, list[float]]:
    return {seat: [json.loads(e.body)["step"]["result"]["reward"] for e in log.of("step", seat)] for seat in SEATS}


@pytest.mark.parametrize(
    ("passes", "expected"),
    [(0, {"ann": [2], "bob": [-1], "cid": [-1]}), (1, {"ann": [-1], "bob": [2], "cid": [-1]})],
)
def test_a_run_pays_seats_that_were_not_asked_wherever_it_was_cut(
    passes: int, expected: dict[str, list[float]]
) -> None:
    agents = {
        seat: agent("a", lambda context, asked, seen: "pass" if seen.status["passed"] < passes else "take")
        for seat in SEATS
    }
    whole = Log()
    hashes = play(whole, PLAN, SPEC, agents)
    assert rewards(whole) == expected
    assert hashes == whole.hashes()
    assert [seat for seat in SEATS if SEEN[seat]] == list(SEATS[: passes + 1])  # who was asked
    for length in range(1, len(whole.events) + 1):
        log = whole.cut(length)
        assert play(log, PLAN, SPEC, agents) == hashes, length
        assert rewards(log) == expected


async def take_at_once(world: WorldPort) -> dict[str, tuple[str, float, bool]]:
    """Have the first seat end the game, and return what each seat did, what it was paid, and whether it is done."""
    await world.begin(1)
    done: dict[str, tuple[str, float, bool]] = {}

    async def one(name: str) -> None:
        seat = await world.open_seat(name)
        await seat.observe()
        outcome = await seat.step(GAME_OVER if seat.ended else Action("take"))
        done[name] = (outcome.action.name, outcome.result.reward, seat.done and not seat.ended)

    async with asyncio.timeout(60):
        await asyncio.gather(*map(one, SEATS))
    return done


PAID = {"ann": ("take", 2.0, True), "bob": ("game_over", -1.0, True), "cid": ("game_over", -1.0, True)}


def test_a_world_in_this_process_and_one_over_http_pay_them() -> None:
    async def test() -> None:
        assert await take_at_once(LocalWorld(SPEC, 1, {})) == PAID
        town = Town()
        town.app = world_app(SPEC)
        spec = read_spec(await town.ask("GET", "/"), town)
        lines = HttpLines(spec, "w-1", town, lambda error: None)
        assert await take_at_once(RemoteWorld(spec, 1, {}, pool=lines)) == PAID

    asyncio.run(test())


def test_a_world_in_a_worker_pays_them() -> None:
    async def test(pool: WorkerPool) -> None:
        assert await take_at_once(RemoteWorld(SPEC, 1, {}, factory=f"{KIT}:Standoff", pool=pool)) == PAID

    in_pool(test)
