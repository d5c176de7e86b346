"""What an entry can ask of MiniGrid: a harder or easier beginning, another place, a lockpick."""

from __future__ import annotations

from wsap_core import Action, AvatarSpec, Context
from wsap_core.protocol import Entry
from wsap_minigrid.adapter import NAMES, MiniGridAdapter
from wsap_minigrid.plugin import TERMS


def entered(seed: int = 3, difficulty: str = "normal", level: int = 2, **wanted: str) -> MiniGridAdapter:
    world = MiniGridAdapter(Context(seed=seed, config={"level": level}))
    avatar = world.create_avatar("ann", AvatarSpec("Ann", **wanted))
    world.admit(avatar.avatar_id, Entry("in", "ann", difficulty=difficulty))
    assert world.jack_in("ann", avatar.avatar_id).success
    return world


def level_of(world: MiniGridAdapter) -> str | None:
    return world.observe().location.region


def test_the_difficulty_chooses_the_first_level_of_each_episode() -> None:
    first = {name: entered(difficulty=name) for name in ("easy", "normal", "hard")}
    assert {name: level_of(world) for name, world in first.items()} == {
        "easy": NAMES[0], "normal": NAMES[1], "hard": NAMES[4],
    }  # fmt: skip
    first["hard"].reset()
    assert level_of(first["hard"]) == NAMES[4]
    again = MiniGridAdapter(Context(seed=8, config={"level": 2}))
    again.restore(first["hard"].snapshot())
    again.reset()
    assert level_of(again) == NAMES[4]


def test_a_difficulty_does_not_begin_a_level_again_that_is_being_played() -> None:
    world = entered()
    world.act(Action("turn_left"))
    world.jack_out("ann", "suspend")
    world.admit("avatar-1", Entry("again", "ann", difficulty="hard"))
    assert (level_of(world), world.steps) == (NAMES[1], 1)


def test_a_random_spawn_is_elsewhere_and_the_same_for_a_seed() -> None:
    def spots(spawn: str) -> list[tuple[object, object]]:
        seen = [entered(seed, spawn_location=spawn, level=7).observe() for seed in range(8)]
        return [(each.location.coordinates, each.facing) for each in seen]

    assert spots("random") == spots("random")
    assert sum(a != b for a, b in zip(spots("random"), spots("safe"), strict=True)) >= 6


def spot(world: MiniGridAdapter) -> tuple[object, ...]:
    seen = world.observe()
    return seen.location.coordinates, seen.facing, level_of(world)


def test_a_world_restored_between_the_body_and_the_entry_goes_on_alike() -> None:
    for spawn in ("random", "safe"):
        for seed in range(8):
            worlds = [MiniGridAdapter(Context(seed=seed)) for _ in range(3)]
            one, fresh, used = worlds
            one.create_avatar("ann", AvatarSpec("Ann", spawn_location=spawn))
            used.create_avatar("bob", AvatarSpec("Bob", spawn_location="random"))
            fresh.restore(one.snapshot())
            used.restore(one.snapshot())
            for world in worlds:
                world.admit("avatar-1", Entry("in", "ann", difficulty="hard"))
            assert spot(one) == spot(fresh) == spot(used), (spawn, seed)
            assert one.snapshot() == fresh.snapshot() == used.snapshot()


def test_a_body_is_not_scattered_because_the_one_before_was() -> None:
    def later(spawn: str) -> tuple[object, ...]:
        world = entered(spawn_location=spawn, level=1)
        world.act(Action("turn_left"))
        world.jack_out("ann", "despawn")
        avatar = world.create_avatar("bet", AvatarSpec("Bet"))
        world.admit(avatar.avatar_id, Entry("in", "bet", difficulty="hard"))
        return spot(world)

    assert later("random") == later("safe")


def test_a_loadout_of_a_lockpick_opens_a_locked_door() -> None:
    assert entered(starting_loadout="lockpick").observe().inventory["lockpick"] == 1
    assert "lockpick" not in entered().observe().inventory


def test_every_declared_value_changes_the_beginning() -> None:
    usual = entered(level=2).snapshot()
    names = {"spawn": "spawn_location", "loadout": "starting_loadout", "difficulty": "difficulty"}
    for term, values in TERMS.items():
        for value in values:
            assert entered(level=2, **{names[term]: value}).snapshot() != usual, (term, value)
