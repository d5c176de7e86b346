"""A person can bring an agent home by one command, whatever has become of its session, its game or their records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hub_checks
import hub_kit
import pytest
from life_kit import Place, nexus_at
from warm import begin_python

from wsap_core.host import PluginHost, Registration
from wsap_core.protocol import Action, ActionResult, ActionSpace, Goal, Observation, PortableItem
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_nexus.agents import portable
from wsap_nexus.agents.portable import RemovalRefusedError
from wsap_nexus.errors import NotInWorldError
from wsap_nexus.hub.transit import patience
from wsap_nexus.server.bodies import requests
from wsap_nexus.server.routes import transit
from wsap_nexus.store.entities import EntryRequest, Policy

# Any, in this module: rows.

ROPE = PortableItem("rope-1", "rope", "tool", 1, origin="crafter")


class Failing:
    """Digs twice, and fails at the third decision, whenever it is asked."""

    def __init__(self, context: Context) -> None:
        pass

    def initialize(self, game_desc: str, action_space: ActionSpace) -> None: ...

    def decide(self, observation: Observation) -> Action:
        if observation.step >= 2:
            raise RuntimeError("the agent has lost its mind")
        return Action("dig")

    def reflect(self, result: ActionResult) -> None: ...

    def plan(self, goals: Sequence[Goal]) -> list[str]:
        return []


class Boasting(hub_kit.Quarry):
    """A quarry whose achievements have names that no database takes."""

    def act(self, action: Action) -> ActionResult:
        return replace(super().act(action), achievements=("gem" * 100,))


class Refusing(hub_kit.Quarry):
    """A quarry that fails whenever somebody wants to leave it."""

    def jack_out(self, agent_id: str, mode: str = "dormant") -> Any:
        raise RuntimeError("nobody leaves")


def host(quarry: AdapterSpec) -> PluginHost:
    found = hub_kit.host(quarry=quarry)
    found.agents.add(Registration(AgentSpec("failing", "Fails.", Failing), "kit", "tests"))
    return found


async def stuck(place: Place, game: str = "quarry") -> None:
    """Have ann fail in the quarry, so that nobody plays her session."""
    await place.nexus.enter("ann", game, EntryRequest())
    await place.until_events("agent_failed", agent="ann")
    await place.until(lambda: place.nexus.failures.stuck("ann") is not None)


async def paused(place: Place) -> None:
    place.nexus.pause("ann")
    with place.nexus.nexus_store.change() as tx:
        tx.update_agent("ann", state="active")  # so that she enters, and is held before her first decision
    await place.nexus.enter("ann", "quarry", EntryRequest())
    place.nexus.pause("ann")


def damage(place: Place, kind: str, values: str = "body = x'00ff', codec = 'raw', dictionary = NULL") -> None:
    place.nexus.store.writer.flush()
    with place.nexus.store.database.write() as connection:
        found = connection.exec_driver_sql(f"UPDATE event SET {values} WHERE kind = ?", (kind,))
        assert found.rowcount or kind == "snapshot"


async def without_a_readable_step(place: Place) -> None:
    await stuck(place)
    damage(place, "step")


async def without_a_readable_start(place: Place) -> None:
    await stuck(place)
    damage(place, "start")
    damage(place, "snapshot")


async def packed_badly(place: Place) -> None:
    await stuck(place)
    damage(place, "step", "codec = 'unheard of'")


async def offline(place: Place) -> None:
    await stuck(place)
    place.nexus.set_game_status("quarry", "offline", "being mended")


STATES: dict[str, Callable[[Place], Any]] = {
    "stuck": stuck,
    "paused": paused,
    "unreadable-step": without_a_readable_step,
    "unreadable-start": without_a_readable_start,
    "packed-badly": packed_badly,
    "offline": offline,
}


async def recall(place: Place) -> None:
    """Do what `wsap nexus agents recall` asks of a nexus."""
    closed = await transit._leave(place.nexus, requests.ExitRequest(agent_id="ann", force=True))
    assert closed.closed is not None


async def resume(place: Place) -> None:
    failed = len(place.events("agent_failed"))
    place.nexus.resume("ann")
    await place.until(lambda: len(place.events("agent_failed")) > failed or where(place)[0] == "nexus")


async def remove(place: Place) -> None:
    told = "bring it back first: wsap nexus agents recall ann"
    with pytest.raises(RemovalRefusedError, match=told), place.nexus.nexus_store.change() as tx:
        portable.remove(tx, "ann")


def where(place: Place) -> tuple[str, list[tuple[str, str]]]:
    with place.nexus.nexus_store.look() as tx:
        return tx.agent("ann").place, [(row.item.item_id, row.place) for row in tx.items("ann")]


def at(
    path: Path, *, quarry: AdapterSpec = hub_kit.QUARRY, new: bool = True, games: tuple[str, ...] | None = None
) -> Any:
    agents = {"ann": {"nexus": Policy("external"), "*": Policy("failing")}} if new else {}
    return nexus_at(path, agents, host=host(quarry), games=games or ("quarry", "echo"))


async def comes_home(place: Place) -> None:
    """Have ann come home if she is not, and see that she and her rope are in one place, and go on."""
    if where(place)[0] == "world":
        await recall(place)
    at_last, items = where(place)
    assert at_last == "nexus"
    assert [item for item, _ in items].count("rope-1") == 1
    assert dict(items)["rope-1"] in ("escrow", "world")
    with pytest.raises(NotInWorldError):
        await recall(place)
    assert hub_checks.problems(place.nexus.store.database) == []
    with place.nexus.nexus_store.change() as tx:
        portable.remove(tx, "ann")


def give_rope(place: Place) -> None:
    with place.nexus.nexus_store.change() as tx:
        tx.mint_item("ann", ROPE, game="crafter", session="")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["recall", "resume", "remove", "restart", "uninstall"])
@pytest.mark.parametrize("state", STATES)
def test_an_agent_comes_home_from_every_state_by_recall_after_any_other_command(
    tmp_path: Path, state: str, command: str
) -> None:
    async def scene() -> None:
        async with asyncio.timeout(120):
            async with at(tmp_path) as place:
                give_rope(place)
                await STATES[state](place)
                assert where(place)[0] == "world"
                if command not in ("restart", "uninstall"):
                    await {"recall": recall, "resume": resume, "remove": remove}[command](place)
                    await comes_home(place)
                    return
            games = ("echo",) if command == "uninstall" else None
            async with at(tmp_path, new=False, games=games) as place:
                await comes_home(place)

    asyncio.run(scene())


@pytest.mark.parametrize("quarry", [Boasting, Refusing], ids=["boasting", "refusing"])
def test_an_agent_comes_home_from_a_game_whose_leaving_fails_again_and_again(
    tmp_path: Path, quarry: type[hub_kit.Quarry]
) -> None:
    async def scene() -> None:
        async with asyncio.timeout(120):
            async with at(tmp_path, quarry=replace(hub_kit.QUARRY, factory=quarry)) as place:
                give_rope(place)
                await place.nexus.enter("ann", "quarry", EntryRequest(steps=2))
                await place.until(lambda: where(place)[0] == "nexus")
                (closed,) = place.events("left", agent="ann")
                assert (closed.body["reason"], closed.body["steps"]) == ("world_failed", 2)
                await comes_home(place)

    asyncio.run(scene())


GAME = """
import sys
from dataclasses import replace
sys.path.insert(0, sys.argv[1])
import hub_kit
from wsap_nexus.worlds.remote.serve_world import serve_world
serve_world(replace(hub_kit.QUARRY, name="far-quarry"), port=0)
"""


@pytest.mark.slow
@pytest.mark.parametrize("again", [False, True], ids=["at-once", "after-a-restart"])
def test_an_agent_comes_home_from_a_game_whose_process_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    monkeypatch.setattr(patience, "INSISTED", 0.5)  # the game never answers again
    process = begin_python(GAME, str(Path(__file__).parents[1] / "kit"))
    assert process.stdout is not None
    url = process.stdout.readline().split()[-1]

    async def scene() -> None:
        async with asyncio.timeout(240):
            async with at(tmp_path) as place:
                give_rope(place)
                await place.nexus.remote_games.join(url, None, frozenset())
                await stuck(place, "far-quarry")
                process.kill()
                process.communicate()
                if not again:
                    await comes_home(place)
                    return
            async with at(tmp_path, new=False) as place:
                await comes_home(place)

    try:
        asyncio.run(scene())
    finally:
        process.kill()
        process.communicate()
