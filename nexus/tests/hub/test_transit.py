"""Coming and going through a real world: deaths, sleep, rosters, resumption, and worlds that tell untruths."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import hub_checks
import hub_kit
import pytest

from wsap_core.errors import UsageError, WorldError
from wsap_core.protocol import Action, ActionResult, AvatarState, Entry, PortableItem, Receipt, TransitPackage
from wsap_core.seams.context import Context
from wsap_core.specs import AdapterSpec
from wsap_nexus.errors import RosterFullError
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.hub.play import sessions
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.store.entities import EXTERNAL, EntryRequest, SessionRecord

pytestmark = pytest.mark.every_database


class Killed(BaseException):
    """What no code catches on purpose."""


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with open_store(str(tmp_path / "nexus.db"), environ={"WSAP_HOME": str(tmp_path)}) as opened:
        yield opened


@asynccontextmanager
async def running(store: Store, game: AdapterSpec = hub_kit.QUARRY) -> AsyncIterator[Nexus]:
    """Give a nexus with one agent, ada, that is decided for from here."""
    nexus = Nexus(hub_kit.host(quarry=game), store, Settings(games=("quarry",), snapshot_every=3))
    with nexus.nexus_store.change() as tx:
        tx.register("ada", policies={"*": EXTERNAL})
    await nexus.start()
    try:
        yield nexus
    finally:
        await nexus.stop()
        assert hub_checks.problems(store.database, settled=True) == []


async def drop(nexus: Nexus) -> None:
    """Let go of a nexus without letting it do anything more."""
    nexus.live.stopping = True
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    nexus.store.writer.flush()  # the log's thread lives on
    nexus._lock.release()


async def act(nexus: Nexus, *names: str) -> ActionResult:
    """Have ada do something, one thing after the other."""
    for name in names:
        action, _, mode = name.partition(" ")
        seat, _ = await nexus.live.external.observation("ada")
        result = await seat.act(Action(action, {"mode": mode} if mode else {}))
    return result


async def leave(nexus: Nexus, *names: str) -> SessionRecord:
    """Have ada do something that ends its stay, and return the closed session."""
    leaving = nexus.await_exit("ada")
    await act(nexus, *names)
    return await leaving


def play(scene: Callable[[], Any]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await scene()

    asyncio.run(bounded())


def test_a_death_is_told_as_one_and_the_body_lives_again_when_it_is_asked_for(store: Store) -> None:
    async def scene() -> None:
        async with running(store, hub_kit.deadly(100)) as nexus:
            await nexus.enter("ada", "quarry", EntryRequest(steps=50))
            session = await leave(nexus, "dig", "climb")
            assert (session.reason, session.steps) == ("death", 2)
            with nexus.nexus_store.look() as tx:
                (died,) = tx.events(kinds=("died",))
                (body,) = tx.avatars("ada")
            assert died.body["death_cause"] == "fall"
            assert body.avatar.state is AvatarState.DESTROYED
            stay = await nexus.enter("ada", "quarry", EntryRequest(avatar="digger-1", respawn="camp"))
            assert stay.session.world_id == body.world_id
            seen = (await nexus.live.external.observation("ada"))[1]
            assert seen.avatar.death_count == 1
            await leave(nexus, "jack_out suspend")

    play(scene)


def test_a_body_is_not_brought_back_in_a_way_that_there_is_not(store: Store) -> None:
    async def scene() -> None:
        async with running(store, hub_kit.deadly(100)) as nexus:
            await nexus.enter("ada", "quarry", EntryRequest())
            await leave(nexus, "climb")
            with pytest.raises((WorldError, UsageError), match="prayer"):
                await nexus.enter("ada", "quarry", EntryRequest(avatar="digger-1", respawn="prayer"))

    play(scene)


@pytest.mark.parametrize(("mode", "slept"), [("dormant", True), ("suspend", False)])
def test_time_passes_for_a_body_that_sleeps_and_for_none_that_is_suspended(
    store: Store, mode: str, slept: bool
) -> None:
    async def scene() -> None:
        async with running(store) as nexus:
            await nexus.enter("ada", "quarry", EntryRequest())
            await leave(nexus, f"jack_out {mode}")
            await nexus.enter("ada", "quarry", EntryRequest(avatar="new"))
            await leave(nexus, *["dig"] * 7, "jack_out despawn")
            await nexus.enter("ada", "quarry", EntryRequest())
            with nexus.nexus_store.look() as tx:
                notes = tx.events(kinds=("entered",))[-1].body["notes"]
            # Seven times it dug, and leaving is a decision, too.
            assert notes == (["You slept for 8."] if slept else [])
            await leave(nexus, "jack_out suspend")

    play(scene)


def test_an_agent_has_as_many_living_bodies_as_the_game_allows(store: Store) -> None:
    async def scene() -> None:
        async with running(store) as nexus:
            for _ in range(2):
                await nexus.enter("ada", "quarry", EntryRequest(avatar="new"))
                await leave(nexus, "jack_out dormant")
            with pytest.raises(RosterFullError, match="2 living avatars"):
                await nexus.enter("ada", "quarry", EntryRequest(avatar="new"))
            stay = await nexus.enter("ada", "quarry", EntryRequest(avatar="quarry-000002"))
            assert stay.session.world_id == "quarry-000002"
            await leave(nexus, "jack_out despawn")
            await nexus.enter("ada", "quarry", EntryRequest(avatar="new"))
            await leave(nexus, "jack_out suspend")

    play(scene)


def test_a_body_in_danger_can_not_be_left_by_choice_and_can_be_left_by_force(store: Store) -> None:
    async def scene() -> None:
        async with running(store, hub_kit.deadly(0)) as nexus:
            await nexus.enter("ada", "quarry", EntryRequest())
            refused = await act(nexus, "climb", "jack_out dormant")
            assert (refused.success, refused.done) == (False, False)
            session = await nexus.exit("ada")
            assert session.reason == "kicked"
            await nexus.enter("ada", "quarry", EntryRequest())
            assert (await act(nexus, "jack_out dormant")).success is False  # it hangs where it hung
            await leave(nexus, "rest", "jack_out dormant")

    play(scene)


def test_what_was_decided_is_all_that_is_decided_when_the_exit_condition_held_before_a_crash(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scene() -> None:
        def killed(*_: object) -> None:
            raise Killed

        async with running(store) as nexus:
            before = nexus
            await nexus.enter("ada", "quarry", EntryRequest(exit_when="step >= 4"))
            monkeypatch.setattr(sessions, "commit_exit", killed)
            await act(nexus, "dig", "dig", "rest")
            playing = list(nexus.sessions.tasks.values())
            seat, _ = await nexus.live.external.observation("ada")
            acting = asyncio.ensure_future(seat.act(Action("dig")))
            await asyncio.wait(playing)
            await asyncio.gather(acting, *playing, return_exceptions=True)
            monkeypatch.undo()
            await drop(nexus)
            async with running(store) as nexus:
                # Waits through the resumed stay, which decides nothing more, for the nexus.
                await nexus.live.external.observation("ada")
                with nexus.nexus_store.look() as tx:
                    (session,) = tx.sessions()
                assert (session.reason, session.steps) == ("condition", 4)
            before._lock.acquire()

    play(scene)


@pytest.mark.parametrize("spawn", ["safe", "random"])
def test_a_stay_in_a_world_that_can_not_be_saved_goes_on_as_it_was(store: Store, spawn: str) -> None:
    forgetful = replace(hub_kit.QUARRY, abilities=("seed", "avatars", "transit"))

    async def scene() -> None:
        async with running(store, forgetful) as nexus:
            before = nexus
            await nexus.enter("ada", "quarry", EntryRequest(spawn=spawn))
            seen = (await act(nexus, "dig", "dig", "dig", "forge")).observation
            await drop(nexus)
            async with running(store, forgetful) as nexus:
                again = (await nexus.live.external.observation("ada"))[1]
                assert again == seen
                await leave(nexus, "jack_out dormant")
                with nexus.nexus_store.look() as tx:
                    (body,) = tx.avatars("ada")
                assert body.avatar.state is AvatarState.DESTROYED  # its world is no more
            before._lock.acquire()

    play(scene)


class Liar(hub_kit.Quarry):
    """Gives out what is elsewhere, writes off what was never there, and makes things that can't be."""

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        package = super().release(avatar_id, transfer_id)
        claims = [
            *package.items,
            *package.items,
            PortableItem("session-00000001-leave:1", "pick", "tool"),
            PortableItem(f"{transfer_id}:9", "god", "deity"),
        ]
        return replace(package, items=tuple(claims), lost={**package.lost, "what:1": "gone", "escrowed:1": "gone"})


def test_the_books_win_where_a_world_tells_untruths_and_the_agent_leaves_all_the_same(store: Store) -> None:
    async def scene() -> None:
        async with running(store, replace(hub_kit.QUARRY, factory=Liar)) as nexus:
            with nexus.nexus_store.change() as tx:
                tx.mint_item("ada", PortableItem("escrowed:1", "coin", "currency"), game="quarry", session="")
            for _ in range(2):
                await nexus.enter("ada", "quarry", EntryRequest())
                session = await leave(nexus, *["dig"] * 6, "jack_out suspend")
                assert session.reason == "jack_out"
            with nexus.nexus_store.look() as tx:
                items = {r.item.item_id: r.place for r in tx.items("ada")}
                refused = tx.events(kinds=("items_refused",))
            assert items["escrowed:1"] == "escrow"
            assert len(items) > 1
            assert set(items.values()) == {"escrow"}
            assert {"what:1", "escrowed:1", "session-00000001-leave:9"} <= refused[0].body["items"].keys()

    play(scene)


class Giver(hub_kit.Quarry):
    """Tells of a bonus that its visitor is not due."""

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        return replace(super().admit(avatar_id, entry), bonuses_applied={"pick": {"picks": 1}})


class Forgetter(hub_kit.Quarry):
    """Says nothing of what was brought along."""

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        return Receipt(entry.transfer_id)


@pytest.mark.parametrize(("factory", "complaint"), [(Giver, "bonus 'pick'"), (Forgetter, "each item")])
def test_a_world_whose_receipt_can_not_be_is_not_entered_and_nothing_has_changed(
    store: Store, factory: Callable[[Context], Any], complaint: str
) -> None:
    async def scene() -> None:
        async with running(store, replace(hub_kit.QUARRY, factory=factory)) as nexus:
            with nexus.nexus_store.change() as tx:
                tx.mint_item("ada", PortableItem("escrowed:1", "pick", "tool"), game="quarry", session="")
            with pytest.raises(WorldError, match=complaint):
                await nexus.enter("ada", "quarry", EntryRequest())
            with nexus.nexus_store.look() as tx:
                assert tx.agent("ada").place == "nexus"
                assert [r.place for r in tx.items("ada")] == ["escrow"]
                assert (tx.worlds(), tx.avatars("ada"), tx.sessions()) == ([], [], [])

    play(scene)


def test_only_bonuses_that_were_applied_are_listed(store: Store) -> None:
    def entered(nexus: Nexus) -> Sequence[dict[str, Any]]:
        with nexus.nexus_store.look() as tx:
            return [event.body["bonuses"] for event in tx.events(kinds=("entered",))]

    async def scene() -> None:
        async with running(store) as nexus:
            await nexus.enter("ada", "quarry", EntryRequest())
            await leave(nexus, "jack_out suspend")
            with nexus.nexus_store.change() as tx:
                from wsap_nexus.store.entities import SkillGain

                tx.add_gain("ada", "other", "", SkillGain("crafting", "achievement:x", 1, 0.2, 0.2))
            for _ in range(2):
                await nexus.enter("ada", "quarry", EntryRequest())
                await leave(nexus, "jack_out suspend")
            assert entered(nexus) == [{}, {"pick": {"picks": 1}}, {}]

    play(scene)
