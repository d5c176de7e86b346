"""A small game written with `OneBodyGame` keeps every promise, and loses and doubles nothing of what agents carry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from wsap_check import GameAdapterTests
from wsap_core import Action, Context
from wsap_core.authoring.grid import chart, compass, offset
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.factories import load
from wsap_core.protocol import AvatarSpec, AvatarState, Entry, PortableItem
from wsap_core.references import load_adapter_spec

GAME = f"{Path(__file__).with_name('orchard.py')}:Orchard"
"""By its file, so that another process finds it, too."""
Orchard = load(load_adapter_spec(GAME).factory)


class TestOrchard(GameAdapterTests):
    @pytest.fixture
    def game(self) -> object:
        return GAME


def orchard() -> Any:
    world = Orchard()
    world.create_avatar("ann", AvatarSpec(name="Ann", appearance={"hat": "straw"}))
    world.jack_in("ann", "avatar-1")
    return world


def saw(number: int) -> PortableItem:
    return PortableItem(f"saw-{number}", "saw", "tool", 3)


def test_a_second_agent_finds_the_only_body_taken() -> None:
    with pytest.raises(UsageError, match="has one body"):
        orchard().create_avatar("bob", AvatarSpec())


def test_a_sleeping_body_is_told_what_happened_and_a_suspended_one_has_missed_nothing() -> None:
    told = {}
    for mode in ("dormant", "suspend"):
        world = orchard()
        assert world.jack_out("ann", mode).success
        told[mode] = world.admit("avatar-1", Entry("t1", "ann", steps_away=60)).notes
    assert told == {"dormant": ("Apples have fallen for 60 steps.",), "suspend": ()}


def test_who_is_in_danger_is_not_let_out() -> None:
    world = orchard()
    world._apples = 13
    left = world.jack_out("ann", "dormant")
    assert not left.success
    assert "wasps" in left.message
    assert world.body.state is AvatarState.BOUND
    assert world.jack_out("ann", "dormant", force=True).success
    assert world.body.state is AvatarState.DORMANT


def test_an_agent_that_leaves_is_told_what_came_of_its_session_alone() -> None:
    world = orchard()
    world.act(Action("shake"))
    world.jack_out("ann", "suspend", force=True)
    world.jack_in("ann", "avatar-1")
    for _ in range(2):
        world.act(Action("shake"))
    left = world.jack_out("ann", "suspend", force=True)
    assert left.session_stats == {"playtime": 2, "reward": 0.0, "achievements": []}


def test_a_session_goes_on_where_a_snapshot_was_taken() -> None:
    world = orchard()
    world.act(Action("shake"))
    assert world.to_json()["session"] == [0, 0.0, []]
    other = Orchard()
    other.restore(world.snapshot())
    assert other.jack_out("ann", "suspend", force=True).session_stats["playtime"] == 1


def test_an_older_format_of_a_games_own_is_upgraded_and_written_anew() -> None:
    class Old(Orchard):
        headers = (b"ORCHARD 1\n",)

    class New(Orchard):
        headers = (b"ORCHARD 2\n", b"ORCHARD 1\n")

        def upgrade(self, header: bytes, data: dict[str, Any]) -> None:
            assert header == b"ORCHARD 1\n"
            data["game"][1] = "upgraded"

    world = New()
    world.restore(Old().snapshot())
    assert world.observe().recent_events[0].description == "upgraded"
    assert world.snapshot().startswith(b"ORCHARD 2\n")
    with pytest.raises(SnapshotError):
        Old().restore(world.snapshot())


def test_a_game_is_told_of_what_changed_between_its_steps() -> None:
    class Watched(Orchard):
        changes = 0

        def changed(self) -> None:
            self.changes += 1

    world = Watched()
    world.create_avatar("ann", AvatarSpec())
    world.admit("avatar-1", Entry("t1", "ann"))
    world.jack_in("ann", "avatar-1")
    assert world.changes == 3
    world.act(Action("shake"))
    assert world.changes == 3
    world.release("avatar-1", "t2")
    world.restore(world.snapshot())
    assert world.changes == 5


def test_bonuses_are_told_once_on_jacking_in_and_end_with_the_avatar() -> None:
    world = Orchard()
    world.create_avatar("ann", AvatarSpec())
    world.admit("avatar-1", Entry("t1", "ann", {"resource_management": 0.7}))
    assert world.jack_in("ann", "avatar-1").bonuses_applied == {"farmer": {"basket": 1}}
    world.jack_out("ann", "suspend")
    assert world.jack_in("ann", "avatar-1").bonuses_applied == {}
    world.jack_out("ann", "despawn")
    world.create_avatar("bob", AvatarSpec())
    assert dict(world.gifts) == {}
    again = world.admit("avatar-2", Entry("t2", "bob", {"resource_management": 0.7}))
    assert again.bonuses_applied == {"farmer": {"basket": 1}}


def test_a_new_body_has_not_what_the_last_one_carried_and_the_last_ones_package_tells_of_it() -> None:
    world = orchard()
    world.admit("avatar-1", Entry("t1", "ann", items=[saw(1)]))
    world.jack_out("ann", "despawn")
    world.create_avatar("ann", AvatarSpec())
    assert world.release("avatar-2", "t2").items == ()
    assert world.release("avatar-1", "t3").lost == {"saw-1": "lost when the avatar was despawned"}


def test_an_item_that_is_no_item_is_refused() -> None:
    wrong = PortableItem("saw-1", "saw", "tool", 3, {"weight": object()})
    odd = PortableItem("saw-2", "saw", "spoon", 3)
    refused = orchard().admit("avatar-1", Entry("t1", "ann", items=[wrong, odd])).refused
    assert "fields" in refused["saw-1"]
    assert "spoon" in refused["saw-2"]


def test_an_item_that_was_used_up_is_not_let_in_a_second_time() -> None:
    world = orchard()
    world.admit("avatar-1", Entry("t1", "ann", items=[saw(1)]))
    assert world.act(Action("saw")).success
    refused = world.admit("avatar-1", Entry("t2", "ann", items=[saw(1)])).refused
    assert refused == {"saw-1": "it no longer exists: broken in the branch"}


def test_a_snapshot_of_another_game_is_refused() -> None:
    class Garden(Orchard):
        game_id = "garden"

    with pytest.raises(SnapshotError, match="not a snapshot of garden"):
        Garden().restore(Orchard().snapshot())


def test_the_map_is_in_the_text_with_a_legend_of_what_is_on_it() -> None:
    text = orchard().observe().to_text()
    assert "|T.|\n|.@|\nT tree, . grass, @ you" in text
    assert "POSSIBLE NOW:\nshake, climb" in text


def test_a_chart_names_nothing_that_is_not_on_it() -> None:
    (block,) = chart(["..", ".."], {".": "grass", "T": "tree"}).blocks
    assert dict(block.legend) == {".": "grass"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("east", "south", "word", "count"),
    [
        (0, 0, "here", "here"),
        (3, 0, "east", "3 east"),
        (0, -2, "north", "2 north"),
        (-1, 1, "southwest", "1 west, 1 south"),
        (5, -1, "east", "5 east, 1 north"),
        (-2, -3, "northwest", "2 west, 3 north"),
    ],
)
def test_where_something_is_in_words(east: int, south: int, word: str, count: str) -> None:
    assert compass(east, south) == word
    assert offset(east, south) == count


class Comings(RuleBasedStateMachine):
    """An agent that comes and goes, plays, dies and lives again, with books of its own on what it carries."""

    @initialize(seed=st.integers(0, 5))
    def begin(self, seed: int) -> None:
        self.world = Orchard(Context(seed=seed))
        self.world.create_avatar("ann", AvatarSpec())
        self.transfers = 0
        self.mine: dict[str, PortableItem] = {f"saw-{n}": saw(n) for n in range(4)}
        self.inside: set[str] = set()
        self.lost: set[str] = set()
        self.fresh: set[str] = set()

    def _transfer(self) -> str:
        self.transfers += 1
        return f"t{self.transfers}"

    @property
    def _body(self) -> str:
        return self.world.body.avatar_id

    @rule(picked=st.sets(st.integers(0, 3)), twice=st.booleans())
    def bring(self, picked: set[int], twice: bool) -> None:
        items = [self.mine.pop(name) for name in sorted(f"saw-{n}" for n in picked) if name in self.mine]
        entry = Entry(self._transfer(), "ann", {"survival": 1.0}, items, steps_away=25)
        receipt = self.world.admit(self._body, entry)
        if twice:
            assert self.world.admit(self._body, entry) == receipt
        assert {*receipt.admitted, *receipt.refused} == {item.item_id for item in items}
        self.inside |= set(receipt.admitted)
        self.mine |= {item.item_id: item for item in items if item.item_id in receipt.refused}

    @rule(twice=st.booleans())
    def leave(self, twice: bool) -> None:
        transfer = self._transfer()
        package = self.world.release(self._body, transfer)
        if twice:
            assert self.world.release(self._body, transfer) == package
        for item in package.items:
            if item.item_id in self.inside:
                self.inside.remove(item.item_id)
                self.mine[item.item_id] = item
            else:
                assert item.item_id.startswith(f"{transfer}:")
                assert item.item_id not in self.fresh
                self.fresh.add(item.item_id)
        assert set(package.lost) <= self.inside
        self.inside -= set(package.lost)
        self.lost |= set(package.lost)

    @rule(names=st.lists(st.sampled_from(["shake", "saw", "climb"]), max_size=6))
    def play(self, names: list[str]) -> None:
        for name in names:
            self.world.act(Action(name))

    @rule()
    def jack_in(self) -> None:
        self.world.jack_in("ann", self._body)

    @rule(mode=st.sampled_from(["dormant", "suspend"]))
    def jack_out(self, mode: str) -> None:
        self.world.jack_out("ann", mode)

    @rule()
    def live_again(self) -> None:
        dead = self.world.body.state is AvatarState.DESTROYED
        assert self.world.respawn(self._body, "anew").success == dead

    @rule()
    def next_episode(self) -> None:
        self.world.reset()

    @rule()
    def put_away_and_fetch(self) -> None:
        other = Orchard(Context(seed=99))
        other.restore(self.world.snapshot())
        assert other.snapshot() == self.world.snapshot()
        assert other.observe() == self.world.observe()
        self.world = other

    @invariant()
    def each_saw_is_in_one_place(self) -> None:
        if not hasattr(self, "world"):
            return
        places = [set(self.mine), self.inside, self.lost]
        assert sorted(name for place in places for name in place) == [f"saw-{n}" for n in range(4)]
        told_later = {name for gone in self.world.items.lost.values() for name in gone}
        assert self.inside == set(self.world.items.kept) | told_later
        assert self.world.observe().inventory.get("saw", 0) == len(self.inside - told_later)


TestComings = Comings.TestCase
TestComings.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
