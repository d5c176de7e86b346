"""In all cases, each item that agents carry is in one place: in escrow, in the world, or lost for a reason.

The state machine below keeps its own books of the items handed in and returned, and compares them with the world's
results and with the body's items.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from wsap_core import Action, Context
from wsap_core.protocol import AvatarSpec, AvatarState, Entry, PortableItem
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.rules import GAME_ACTIONS

# The thing that each foreign item must become in Crafter; None if it must be refused.
KINDS = {
    ("weapon", 9): "iron_sword",
    ("weapon", 2): "wood_sword",
    ("tool", 4): "stone_pickaxe",
    ("material", 2): "coal",
    ("material", 5): "iron",
    ("material", 10): "diamond",
    ("armor", 5): None,
}
TOOLS = ["wood_sword", "stone_sword", "iron_sword", "wood_pickaxe", "stone_pickaxe", "iron_pickaxe"]
PORTABLE = [*TOOLS, "coal", "iron", "diamond"]
SKILLS = {"combat": 1.0, "crafting": 0.5, "survival": 0.4}


class Books:
    """The owners of items, as the machine knows them."""

    def __init__(self) -> None:
        self.escrow: dict[str, PortableItem] = {}
        self.inside: dict[str, tuple[str, str]] = {}
        """Item id -> the avatar that took it in, and its thing in Crafter."""
        self.gone: dict[str, str] = {}
        self.items: dict[str, PortableItem] = {}
        """All items that ever existed."""

    def copy(self) -> Books:
        other = Books()
        for name, value in vars(self).items():
            setattr(other, name, dict(value))
        return other


class Conservation(RuleBasedStateMachine):
    """An agent that enters and leaves, plays, dies and despawns, and a world that is saved and restored."""

    @initialize(seed=st.integers(0, 3))
    def begin(self, seed: int) -> None:
        self.world = CrafterAdapter(Context(seed=seed))
        self.world.create_avatar("ann", AvatarSpec())
        self.books = Books()
        self.saved: tuple[bytes, Books] | None = None
        self.numbers = 0
        self.chooser = random.Random(seed)

    @property
    def avatar(self) -> str:
        return self.world.observe().avatar.avatar_id

    @property
    def state(self) -> AvatarState:
        return self.world.observe().avatar.state

    def new_id(self, prefix: str) -> str:
        self.numbers += 1
        return f"{prefix}{self.numbers}"

    def held(self) -> Counter[str]:
        inventory = self.world._engine.player.inventory
        return Counter({thing: inventory[thing] for thing in PORTABLE})

    # --- entering and leaving ---------------------------------------------------------------------

    def find_elsewhere(self, amount: int) -> None:
        for _ in range(amount):
            kind = self.chooser.choice([*sorted(KINDS), ("material", 5)])
            item = PortableItem(self.new_id("item"), "thing", *kind, origin="elsewhere")
            self.books.escrow[item.item_id] = self.books.items[item.item_id] = item

    @rule(
        found=st.integers(2, 7),
        share=st.sampled_from([1.0, 0.6]),
        skilled=st.booleans(),
        away=st.sampled_from([0, 0, 10, 90]),
        twice=st.booleans(),
    )
    def come(self, found: int, share: float, skilled: bool, away: int, twice: bool) -> None:
        self.find_elsewhere(found)
        chosen = [name for name in sorted(self.books.escrow) if self.chooser.random() < share]
        items = [self.books.escrow[name] for name in chosen]
        asked = Entry(self.new_id("in"), "ann", SKILLS if skilled else {}, items, away)
        receipt = self.world.admit(self.avatar, asked)
        after = self.held()
        if twice:
            assert self.world.admit(self.avatar, asked) == receipt
            assert self.held() == after
        assert sorted([*receipt.admitted, *receipt.refused]) == sorted(chosen)
        for name in receipt.admitted:
            item = self.books.escrow.pop(name)
            thing = item.hints.get("crafter") or KINDS[item.category, item.tier]
            assert thing is not None
            self.books.inside[name] = (self.avatar, thing)
        for name, reason in receipt.refused.items():
            assert reason
            item = self.books.escrow[name]
            thing = item.hints.get("crafter") or KINDS.get((item.category, item.tier))
            assert self.state is AvatarState.DESTROYED or thing is None or after[thing] == 9

    @rule(twice=st.booleans())
    def go(self, twice: bool) -> None:
        before, transfer = self.held(), self.new_id("out")
        package = self.world.release(self.avatar, transfer)
        after = self.held()
        if twice:
            assert self.world.release(self.avatar, transfer) == package
            assert self.held() == after
        out = {item.item_id: item for item in package.items}
        assert len(out) == len(package.items) == (before - after).total()
        assert not after - before
        mine = {name for name, (avatar, _) in self.books.inside.items() if avatar == self.avatar}
        old = out.keys() & self.books.items.keys()
        assert old | package.lost.keys() == mine
        assert not old & package.lost.keys()
        for name in sorted(out):
            if name in old:
                assert out[name] == self.books.items[name]
                del self.books.inside[name]
            else:
                assert name.startswith(f"{transfer}:")
                self.books.items[name] = out[name]
            self.books.escrow[name] = out[name]
        for name, reason in package.lost.items():
            assert reason
            self.books.gone[name] = reason
            del self.books.inside[name]

    # --- life ---------------------------------------------------------------------------------------

    @rule(steps=st.integers(1, 15))
    def play(self, steps: int) -> None:
        self.world.jack_in("ann", self.avatar)
        for _ in range(steps):
            self.world.act(Action(self.chooser.choice(GAME_ACTIONS)))

    @precondition(lambda self: self.state is not AvatarState.DESTROYED)
    @rule(thing=st.sampled_from(["iron_sword", "iron_pickaxe"]))
    def forge(self, thing: str) -> None:
        """Use up coal and iron, next to a table and a furnace."""
        world, player = self.world._engine.world, self.world._engine.player
        x, y = player.pos.tolist()
        for material, place in (("table", (x, y + 1)), ("furnace", (x + 1, y))):
            if world[place][1] is None and world[place][0] is not None:
                world[place] = material
        player.inventory.update(wood=9, coal=9, health=9)  # of the world's own
        self.world.jack_in("ann", self.avatar)
        self.world.changed()
        for _ in range(4):
            self.world.act(Action(f"make_{thing}"))

    @precondition(lambda self: self.state is not AvatarState.DESTROYED)
    @rule(ore=st.sampled_from(["coal", "iron", "diamond", "stone"]))
    def dig(self, ore: str) -> None:
        """Mine an ore, if the pickaxe is good enough."""
        world, player = self.world._engine.world, self.world._engine.player
        x, y = (int(p + f) for p, f in zip(player.pos, player.facing, strict=True))
        if world[x, y][0] is not None and world[x, y][1] is None:
            world[x, y] = ore
        self.world.jack_in("ann", self.avatar)
        self.world.changed()
        self.world.act(Action("do"))

    @precondition(lambda self: self.state is AvatarState.BOUND)
    @rule(mode=st.sampled_from(["dormant", "suspend", "despawn"]))
    def leave_the_body(self, mode: str) -> None:
        assert self.world.jack_out("ann", mode, force=True).success

    @precondition(lambda self: self.state is not AvatarState.DESTROYED)
    @rule(leaving=st.booleans())
    def die(self, leaving: bool) -> None:
        self.world.jack_in("ann", self.avatar)
        player = self.world._engine.player
        player.inventory.update(health=1, food=0)
        player._recover = -15
        player.sleeping = False
        assert self.world.act(Action("noop")).done
        if leaving:
            self.go(False)

    @precondition(lambda self: self.state is AvatarState.DESTROYED)
    @rule(how=st.sampled_from(["respawn", "create", "reset"]))
    def live_again(self, how: str) -> None:
        if how == "respawn" and self.world.respawn(self.avatar, "new_world").success:
            return
        if how == "create":
            self.settle_accounts()
            self.world.create_avatar("ann", AvatarSpec())
        else:
            if self.world.handle_death(self.avatar).cause == "despawned":
                self.settle_accounts()
            self.world.reset()
            if not self.world.list_avatars("ann"):
                self.world.create_avatar("ann", AvatarSpec())

    def settle_accounts(self) -> None:
        """Leave with an avatar that is about to be destroyed."""
        self.go(False)

    @rule()
    def begin_a_new_episode(self) -> None:
        if self.state is AvatarState.DESTROYED:
            return
        self.world.reset()

    # --- saved and restored -----------------------------------------------------------------------

    @rule()
    def move_to_another_process(self) -> None:
        data = self.world.snapshot()
        self.world = CrafterAdapter(Context(seed=78))
        self.world.restore(data)
        assert self.world.snapshot() == data

    @rule()
    def save(self) -> None:
        self.saved = (self.world.snapshot(), self.books.copy())

    @precondition(lambda self: self.saved is not None)
    @rule()
    def restore(self) -> None:
        """Restore another world, with the agent's items as of then."""
        data, books = self.saved
        self.world = CrafterAdapter(Context(seed=77))
        self.world.restore(data)
        assert self.world.snapshot() == data
        self.books = books.copy()

    # --- invariants -------------------------------------------------------------------------------

    @invariant()
    def every_item_is_in_one_place(self) -> None:
        places = [self.books.escrow, self.books.inside, self.books.gone]
        assert sum(len(place) for place in places) == len(set().union(*places))
        assert set().union(*places) == set(self.books.items)

    @invariant()
    def the_worlds_books_agree_with_the_inventory(self) -> None:
        ledger = self.world.items
        written_off = {name for gone in ledger.lost.values() for name in gone}
        assert ledger.kept.keys() | written_off == self.books.inside.keys()
        assert not ledger.kept.keys() & written_off
        assert not (self.world._engine.dead and ledger.kept)
        for name, (thing, item) in ledger.kept.items():
            assert thing == self.books.inside[name][1]
            assert item == self.books.items[name]
        if self.state is not AvatarState.DESTROYED or ledger.kept:
            held = self.held()
            brought = Counter(thing for thing, _ in ledger.kept.values())
            assert not brought - held
            assert max(held.values()) <= 9


class TestConservation(Conservation.TestCase):
    """A sample of runs."""

    settings = settings(max_examples=8, stateful_step_count=30, deadline=None)


@pytest.mark.slow
class TestConservationAtLength(Conservation.TestCase):
    """More runs."""

    settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
