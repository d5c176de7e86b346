"""Numbers that a game sends are its own fault, wherever it runs: its agent comes home, and nobody else suffers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import hub_checks
import hub_kit
import lying
import pytest
from life_kit import Place, nexus_at
from warm import begin_python

from wsap_core.errors import WsapError
from wsap_core.host import PluginHost
from wsap_core.protocol import Action, ActionResult
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, SessionRecord

# Any, in this module: whatever a scene gives.

HERE = Path(__file__).parents[1] / "kit"
GAME = """
import sys
sys.path.insert(0, sys.argv[1])
import lying
from wsap_core.protocol import wire
from wsap_core.worlds import seat
from wsap_nexus.worlds.remote.serve_world import serve_world
seat.wrong_in = lambda answer: ""  # a game in another language, say, which judges nothing
wire._WRITERS[float] = lambda v: "NaN" if v != v else "1e999" if v == float("inf") else repr(v)
serve_world(lying.spec(sys.argv[2], "far-quarry"), port=0)
"""


def play(path: Path, host: PluginHost, scene: Callable[[Place], Any], **settings: Any) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(120):
            policies = {agent: {"*": EXTERNAL} for agent in ("ann", "bob")}
            async with nexus_at(path, policies, host=host, **settings) as place:
                await scene(place)
            assert hub_checks.problems(place.nexus.store.database, settled=True) == []

    asyncio.run(bounded())


async def act(place: Place, agent: str, name: str) -> ActionResult:
    seat, _ = await place.nexus.live.external.observation(agent)
    return await seat.act(Action(name))


async def lied_to(place: Place, game: str) -> SessionRecord:
    """Have ann dig, and rest, at which the game lies, and return her session, which that has ended."""
    await place.nexus.enter("ann", game, EntryRequest())
    await act(place, "ann", "dig")
    leaving = place.nexus.live.leaving.wait("ann")
    acting = asyncio.ensure_future(act(place, "ann", "rest"))
    closed = await leaving
    acting.cancel()
    with suppress(asyncio.CancelledError, WsapError):
        await acting
    assert not place.events("agent_failed")
    with place.nexus.nexus_store.look() as tx:
        agent, failures = tx.agent("ann"), tx.world(closed.world_id).failures
    assert (agent.place, agent.state, failures) == ("nexus", "active", 1)
    return closed


@pytest.mark.slow
@pytest.mark.parametrize("lie", lying.SAID)
@pytest.mark.parametrize("workers", [0, 1], ids=["here", "worker"])
def test_a_number_that_cannot_be_kept_fails_the_game_and_brings_its_agent_home(
    tmp_path: Path, lie: str, workers: int
) -> None:
    async def scene(place: Place) -> None:
        closed = await lied_to(place, lie)
        assert (closed.reason, closed.steps) == ("world_failed", 1)
        error = str(closed.stats["error"])
        assert f"'{lie}'" in error
        assert lying.SAID[lie][0].replace("\\", "") in error
        await place.nexus.enter("ann", "echo", EntryRequest())

    play(tmp_path, hub_kit.host(), scene, games=(f"{HERE / 'lying.py'}:{lie.title()}", "echo"), workers=workers)


@pytest.mark.slow
@pytest.mark.parametrize("lie", lying.SAID)
def test_a_game_in_its_own_process_that_judges_nothing_is_judged_by_the_nexus(tmp_path: Path, lie: str) -> None:
    process = begin_python(GAME, str(HERE), lie)
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]

    async def scene(place: Place) -> None:
        await place.nexus.remote_games.join(url, None, frozenset())
        closed = await lied_to(place, "far-quarry")
        assert (closed.reason, closed.steps) == ("world_failed", 1)
        error = str(closed.stats["error"])
        assert "far-quarry" in error
        assert lying.SAID[lie][1] in error

    try:
        play(tmp_path, hub_kit.host(), scene, games=("echo",))
    finally:
        process.kill()
        process.communicate()
