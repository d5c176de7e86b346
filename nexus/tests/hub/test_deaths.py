"""Bodies that die in their sleep: the agent is told and decides, and a world with nobody alive in it is not kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import hub_checks
import hub_kit
import pytest
from life_kit import Place, at_desk, host_with, nexus_at

from wsap_core.errors import UsageError
from wsap_core.protocol import Action, AvatarState, DeathEvent, PortableItem
from wsap_core.seams.context import Context
from wsap_nexus.errors import DiedAsleepError
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, SessionRecord
from wsap_nexus.store.upkeep.prune import measure, prune

pytestmark = pytest.mark.every_database

crafter = pytest.importorskip("wsap_crafter")

LONG = 300
"""Decisions elsewhere after which no body that was left in Crafter's open is alive; its README counts 40 of 40."""


def play(scene: Callable[[], Any]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(300):
            await scene()

    asyncio.run(bounded())


@asynccontextmanager
async def with_a_sleeper(path: Path, *, checked: bool = True) -> Any:
    """Give a nexus whose agent ida has left a body asleep in Crafter's open, and has been elsewhere for long.

    `checked` is false where the log does not tell everything any more in the end.
    """
    async with nexus_at(path, {"ida": {"*": EXTERNAL}}, host=host_with(), games=("crafter",)) as place:
        await place.nexus.enter("ida", "crafter", EntryRequest())
        await leave(place.nexus, Action("noop"), Action("jack_out", {"mode": "dormant"}))
        with place.nexus.nexus_store.change() as tx:
            assert [b.avatar.state for b in tx.avatars("ida")] == [AvatarState.DORMANT]
            tx.update_agent("ida", lifetime_steps=tx.agent("ida").lifetime_steps + LONG)
        yield place
    assert not checked or hub_checks.problems(place.nexus.store.database, settled=True) == []


async def leave(nexus: Nexus, *actions: Action) -> SessionRecord:
    leaving = nexus.await_exit("ida")
    for action in actions:
        seat, _ = await nexus.live.external.observation("ida")
        await seat.act(action)
    return await leaving


def body_of(place: Place) -> Any:
    with place.nexus.nexus_store.look() as tx:
        (body,) = tx.avatars("ida")
    return body


def test_who_comes_back_to_a_body_that_died_asleep_is_told_and_stays_in_the_nexus(tmp_path: Path) -> None:
    async def scene() -> None:
        async with with_a_sleeper(tmp_path) as place:
            with pytest.raises(DiedAsleepError, match=r"avatar-1 died .*new_world \(lose_inventory") as refused:
                await place.nexus.enter("ida", "crafter", EntryRequest())
            assert (refused.value.code, refused.value.http_status) == ("DIED_ASLEEP", 409)
            with place.nexus.nexus_store.look() as tx:
                assert tx.agent("ida").place == "nexus"
                assert len(tx.sessions(agent_id="ida")) == 1
                assert tx.open_transfers() == []
                assert tx.has_state(body_of(place).world_id)
            assert body_of(place).avatar.state is AvatarState.DESTROYED
            (died,) = place.events("died")
            assert (died.agent_id, died.session_id) == ("ida", None)
            desk = at_desk(place.nexus, "ida")
            around = desk.observe()
            assert any("It can respawn: new_world" in event.description for event in around.recent_events)
            assert around.games[0].avatars == ("avatar-1 (destroyed)",)
            details = await desk.act(Action("game_details", {"game": "crafter"}))
            assert "It can respawn: new_world" in details.message

    play(scene)


def test_it_decides_to_live_again_in_that_body(tmp_path: Path) -> None:
    async def scene() -> None:
        async with with_a_sleeper(tmp_path) as place:
            with pytest.raises(DiedAsleepError):
                await place.nexus.enter("ida", "crafter", EntryRequest())
            world = body_of(place).world_id
            with pytest.raises(UsageError, match="new_world"):
                await place.nexus.enter("ida", "crafter", EntryRequest(avatar="avatar-1", respawn="a spell"))
            await place.nexus.enter("ida", "crafter", EntryRequest(avatar="avatar-1", respawn="new_world"))
            assert place.events("entered")[-1].body["respawned"] is True
            seen = (await place.nexus.live.external.observation("ida"))[1]
            assert (seen.avatar.death_count, seen.avatar.inventory) == (1, {})
            session = await leave(place.nexus, Action("jack_out", {"mode": "suspend"}))
            assert session.world_id == world
            assert len(place.events("died")) == 1

    play(scene)


@pytest.mark.slow
def test_it_decides_to_begin_anew_in_another_body(tmp_path: Path) -> None:
    async def scene() -> None:
        async with with_a_sleeper(tmp_path) as place:
            with pytest.raises(DiedAsleepError):
                await place.nexus.enter("ida", "crafter", EntryRequest())
            dead = body_of(place).world_id
            stay = await place.nexus.enter("ida", "crafter", EntryRequest())
            assert stay.session.world_id != dead
            with place.nexus.nexus_store.look() as tx:
                states = {b.world_id: b.avatar.state for b in tx.avatars("ida")}
            assert states == {dead: AvatarState.DESTROYED, stay.session.world_id: AvatarState.BOUND}

    play(scene)


def test_who_said_how_to_live_again_before_going_is_not_asked(tmp_path: Path) -> None:
    async def scene() -> None:
        async with with_a_sleeper(tmp_path) as place:
            world = body_of(place).world_id
            stay = await place.nexus.enter("ida", "crafter", EntryRequest(respawn="new_world"))
            assert stay.session.world_id == world
            assert len(place.events("died")) == 1
            assert (await place.nexus.live.external.observation("ida"))[1].avatar.death_count == 1

    play(scene)


def test_what_it_brought_along_is_still_in_its_keeping(tmp_path: Path) -> None:
    async def scene() -> None:
        async with with_a_sleeper(tmp_path) as place:
            with place.nexus.nexus_store.change() as tx:
                tx.mint_item("ida", PortableItem("gem-1", "Gem", "material", 3), game="crafter", session="")
            with pytest.raises(DiedAsleepError):
                await place.nexus.enter("ida", "crafter", EntryRequest())
            with place.nexus.nexus_store.look() as tx:
                assert [r.item.item_id for r in tx.items("ida", place="escrow")] == ["gem-1"]

    play(scene)


def test_the_death_is_the_same_after_the_nexus_was_stopped_and_started(tmp_path: Path) -> None:
    async def before() -> None:
        async with with_a_sleeper(tmp_path) as place:
            with pytest.raises(DiedAsleepError):
                await place.nexus.enter("ida", "crafter", EntryRequest())

    async def after() -> None:
        async with nexus_at(tmp_path, {}, host=host_with(), games=("crafter",)) as place:
            assert body_of(place).avatar.state is AvatarState.DESTROYED
            stay = await place.nexus.enter("ida", "crafter", EntryRequest(avatar="avatar-1"))
            assert place.events("entered")[-1].body["respawned"] is True
            assert stay.session.world_id == body_of(place).world_id

    play(before)
    play(after)


# --- worlds with nobody alive in them ----------------------------------------------------------------


class NoWayBack(hub_kit.Quarry):
    """A quarry where whoever climbs or sleeps dies, and whose dead stay dead."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._deadly = 100

    def handle_death(self, avatar_id: str) -> DeathEvent:
        return replace(super().handle_death(avatar_id), respawn_options=())

    def admit(self, avatar_id: str, entry: Any) -> Any:
        if self._state["body"] == "dormant":
            self._state["health"] = 0
        return super().admit(avatar_id, replace(entry, steps_away=max(1, entry.steps_away)))


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Any]:
    game = replace(hub_kit.QUARRY, factory=NoWayBack)
    with open_store(str(tmp_path / "nexus.db")) as store:
        nexus = Nexus(hub_kit.host(quarry=game), store, Settings(games=("quarry",)))
        with nexus.nexus_store.change() as tx:
            tx.register("ida", policies={"*": EXTERNAL})
        yield nexus
        assert hub_checks.problems(store.database, settled=True) == []


def test_a_world_whose_dead_can_not_live_again_is_not_kept(mortal: Nexus) -> None:
    async def scene() -> None:
        await mortal.start()
        await mortal.enter("ida", "quarry", EntryRequest())
        session = await leave(mortal, Action("climb"))
        assert session.reason == "death"
        await mortal.enter("ida", "quarry", EntryRequest())
        asleep = await leave(mortal, Action("jack_out", {"mode": "dormant"}))
        with pytest.raises(DiedAsleepError, match="can't respawn"):
            await mortal.enter("ida", "quarry", EntryRequest())
        with mortal.nexus_store.look() as tx:
            assert [tx.has_state(s.world_id) for s in (session, asleep)] == [False, False]
        with pytest.raises(UsageError, match="no longer exists"):
            await mortal.enter("ida", "quarry", EntryRequest(avatar=asleep.world_id))
        await mortal.stop()

    play(scene)


@pytest.mark.parametrize(("days_later", "kept"), [(29, True), (31, False)])
def test_a_world_with_only_a_dead_body_is_forgotten_when_it_is_old(
    tmp_path: Path, days_later: float, kept: bool
) -> None:
    async def scene() -> None:
        async with with_a_sleeper(tmp_path, checked=False) as place:
            with pytest.raises(DiedAsleepError):
                await place.nexus.enter("ida", "crafter", EntryRequest())
            # A world that somebody sleeps in is kept, however old.
            await place.nexus.enter("ida", "crafter", EntryRequest())
            asleep = await leave(place.nexus, Action("jack_out", {"mode": "dormant"}))
            with place.nexus.nexus_store.look() as tx:
                (dead,) = [b.world_id for b in tx.avatars("ida") if b.avatar.state is AvatarState.DESTROYED]
            database, now = place.nexus.store.database, time.time() + days_later * 86_400
            assert measure(database, 30, now=now).worlds == (0 if kept else 1)
            assert prune(database, 30, now=now).worlds == (0 if kept else 1)
            with place.nexus.nexus_store.look() as tx:
                assert (tx.has_state(dead), tx.has_state(asleep.world_id)) == (kept, True)
                assert tx.world(dead).id == dead
            if not kept:
                with pytest.raises(UsageError, match="no longer exists"):
                    await place.nexus.enter("ida", "crafter", EntryRequest(avatar=dead))

    play(scene)
