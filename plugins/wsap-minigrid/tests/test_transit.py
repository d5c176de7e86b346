"""What comes into MiniGrid from elsewhere, what leaves it, and what skills are worth."""

from __future__ import annotations

import pytest
from minigrid.core.world_object import Ball

from wsap_core.protocol import AvatarSpec, AvatarState, Entry, PortableItem
from wsap_minigrid.plugin import TRANSFER_RULES


def carry(category: str, tier: int = 4, **hints: str) -> PortableItem:
    return PortableItem(f"old {category}", f"old {category}", category, tier, {}, "crafter", hints)


def test_a_pickaxe_from_elsewhere_breaks_one_locked_door_open_and_is_gone(scene) -> None:
    here = scene()
    receipt = here.world.admit("avatar-1", Entry("t1", "ann", items=[carry("tool", crafter="stone_pickaxe")]))
    assert receipt.admitted == ("old tool",)
    assert here.world.observe().inventory == {"tool": 1}
    result = here.before_a_locked_door("grey").do("toggle")
    assert "improvise" in result.achievements
    assert result.message == "You unlocked and opened the grey door with your tool, which broke."
    assert result.observation.inventory == {}
    assert here.world.release("avatar-1", "t2").lost == {"old tool": "broken on a locked door"}


@pytest.mark.parametrize("category", ["weapon", "armor", "consumable", "currency", "material"])
def test_what_is_of_no_use_is_refused_with_a_reason(scene, category: str) -> None:
    receipt = scene().world.admit("avatar-1", Entry("t1", "ann", items=[carry(category)]))
    assert receipt.admitted == ()
    assert "rooms" in receipt.refused[f"old {category}"]


def test_a_key_goes_and_comes_back_as_itself(scene) -> None:
    here = scene()
    here.world._won.update({"purple key": 1, "red ball": 1})
    package = here.world.release("avatar-1", "t1")
    assert [(i.item_id, i.name, i.category) for i in package.items] == [
        ("t1:1", "purple key", "key_item"),
        ("t1:2", "red ball", "material"),
    ]
    assert here.world.observe().inventory == {}
    other = scene(seed=5)
    receipt = other.world.admit("avatar-1", Entry("t2", "ann", items=package.items))
    assert receipt.refused == {}
    assert other.world.observe().inventory == {"purple key": 1, "red ball": 1}  # what is brought along can be used
    assert other.before_a_locked_door("purple").do("toggle").success
    assert other.world.release("avatar-1", "t3").items == package.items


def test_a_full_pack_takes_no_more(scene) -> None:
    keys = [PortableItem(f"key-{n}", "key", "key_item", 1) for n in range(8)]
    receipt = scene().world.admit("avatar-1", Entry("t1", "ann", items=keys))
    assert len(receipt.admitted) == 6
    assert set(receipt.refused.values()) == {"the pack is full"}


def test_what_is_brought_along_is_lost_in_the_lava(scene) -> None:
    here = scene()
    here.world.admit("avatar-1", Entry("t1", "ann", items=[carry("tool")]))
    here.world.die("lava")
    package = here.world.release("avatar-1", "t2")
    assert package.items == ()
    assert package.lost == {"old tool": "lost when the avatar died"}


def test_each_skill_changes_what_the_body_can_do(scene) -> None:
    plain, skilled = scene().world, scene().world
    receipt = skilled.admit("avatar-1", Entry("t1", "ann", {rule.domain: 1.0 for rule in TRANSFER_RULES}))
    assert set(receipt.bonuses_applied) == {rule.id for rule in TRANSFER_RULES}
    before, after = plain.observe(), skilled.observe()
    assert (len(before.local_map), len(after.local_map)) == (7, 9)
    assert after.status["steps_left"] == before.status["steps_left"] * 3 // 2
    assert after.inventory == {"lockpick": 1}
    keys = [PortableItem(f"key-{n}", "key", "key_item", 1) for n in range(12)]
    assert len(skilled.admit("avatar-1", Entry("t2", "ann", items=keys)).admitted) == 9


def test_who_is_good_at_puzzles_perceives_what_is_behind_a_door(scene) -> None:
    here = scene().before_a_locked_door("red")
    here.env.grid.set(3, 1, Ball("blue"))
    assert [e.name for e in here.world.observe().nearby_entities] == ["locked red door"]
    here.world.admit("avatar-1", Entry("t1", "ann", {"puzzle_solving": 0.6}))
    assert [e.name for e in here.world.observe().nearby_entities] == ["locked red door", "blue ball"]


def test_a_lockpick_opens_one_door_and_does_not_leave_with_the_agent(scene) -> None:
    here = scene()
    here.world.admit("avatar-1", Entry("t1", "ann", {"crafting": 0.3}))
    assert here.before_a_locked_door("green").do("toggle").success
    assert not here.before_a_locked_door("green").do("toggle").success
    assert here.world.release("avatar-1", "t2").items == ()


def test_a_body_that_was_despawned_makes_room_for_one_without_its_bonuses(scene) -> None:
    here = scene()
    here.world.admit("avatar-1", Entry("t1", "ann", {"exploration": 1.0}))
    here.world.jack_out("ann", "despawn")
    avatar = here.world.create_avatar("bob", AvatarSpec())
    assert (avatar.avatar_id, avatar.state) == ("avatar-2", AvatarState.UNBOUND)
    assert len(here.world.observe().local_map) == 7
