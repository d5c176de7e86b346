"""Agents that bring skills and items to Crafter, and leave with items."""

from __future__ import annotations

import pytest
from crafter import constants

from wsap_core import Action, Context
from wsap_core.authoring.packing import pack, unpack
from wsap_core.errors import SnapshotError, UsageError
from wsap_core.protocol import AvatarSpec, Entry, PortableItem
from wsap_core.protocol.transit import BONUS_KINDS, ITEM_CATEGORIES, SKILL_DOMAINS
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.catalogue import PORTABLE, SKILLS, TRANSFER_RULES
from wsap_crafter.snapshot import MAGIC

MASTER = dict.fromkeys(SKILL_DOMAINS, 1.0)


def with_body(scene, **items):
    """Return a scene on even grass with a new body for Ann."""
    made = scene(0).empty().stand(32, 32).carry(**items)
    made.adapter.create_avatar("ann", AvatarSpec(name="Ann"))
    made.look()
    return made


def entry(number, *items, **fields):
    return Entry(f"t{number}", "ann", fields.pop("skills", {}), items, **fields)


def foreign(item_id, category, tier, **fields):
    return PortableItem(item_id, f"a thing called {item_id}", category, tier, origin="elsewhere", **fields)


def carried(made):
    return dict(made.adapter.observe().inventory)


# --- bonuses ----------------------------------------------------------------------------------


def test_a_skill_at_its_threshold_puts_a_thing_into_the_hand_and_below_it_does_not(scene):
    made = with_body(scene)
    assert made.adapter.admit("avatar-1", entry(1, skills={"combat": 0.29})).bonuses_applied == {}
    assert carried(made) == {}
    receipt = made.adapter.admit("avatar-1", entry(2, skills={"combat": 0.3}))
    assert receipt.bonuses_applied == {"combat-wood-sword": {"wood_sword": 1}}
    assert carried(made) == {"wood_sword": 1}
    assert made.adapter.observe().avatar.equipment == {"sword": "wood_sword"}


@pytest.mark.slow
def test_every_rule_does_what_it_declares_and_is_listed_with_what_it_changed(scene):
    for rule in TRANSFER_RULES:
        made = with_body(scene, food=5, drink=5)
        before = dict(made.player.inventory)
        skills = {rule.domain: rule.threshold}
        applied = made.adapter.admit("avatar-1", entry(1, skills=skills)).bonuses_applied
        assert applied[rule.id] == {rule.bonus.name: rule.bonus.amount}
        changed = {name: n - before[name] for name, n in made.player.inventory.items() if n != before[name]}
        listed = {}
        for change in applied.values():
            for name, amount in change.items():
                listed[name] = listed.get(name, 0) + amount
        assert changed == listed


def test_a_bonus_stops_at_the_games_limits_and_one_that_changes_nothing_is_not_listed(scene):
    made = with_body(scene, wood=8, food=9, drink=7)
    skills = {"resource_management": 0.3, "survival": 0.5}
    applied = made.adapter.admit("avatar-1", entry(1, skills=skills)).bonuses_applied
    assert applied == {
        "resources-wood": {"wood": 1},
        "survival-sapling": {"sapling": 1},
        "survival-drink": {"drink": 2},
    }
    assert made.player.inventory["wood"] == 9
    made.carry(food=8)
    later = made.adapter.admit("avatar-1", entry(2, skills=skills)).bonuses_applied
    assert later == {"survival-food": {"food": 1}}


def test_an_avatar_has_each_bonus_once_and_another_avatar_has_it_again(scene):
    made = with_body(scene)
    first = made.adapter.admit("avatar-1", entry(1, skills=MASTER)).bonuses_applied
    assert made.adapter.admit("avatar-1", entry(2, skills=MASTER)).bonuses_applied == {}
    made.adapter.jack_in("ann", "avatar-1")
    made.adapter.reset()
    assert made.adapter.admit("avatar-1", entry(3, skills=MASTER)).bonuses_applied == {}
    assert made.adapter.jack_out("ann", "despawn", force=True).success
    made.adapter.create_avatar("ann", AvatarSpec())
    assert made.adapter.admit("avatar-2", entry(4, skills=MASTER)).bonuses_applied == first


def test_all_bonuses_together_unlock_nothing_and_earn_nothing(scene):
    plain, gifted = with_body(scene), with_body(scene)
    assert len(gifted.adapter.admit("avatar-1", entry(1, skills=MASTER)).bonuses_applied) == 7
    assert set(gifted.player.achievements.values()) == {0}
    for made in (plain, gifted):
        made.adapter.jack_in("ann", "avatar-1")
    for _ in range(60):
        one, other = plain.adapter.act(Action("move_left")), gifted.adapter.act(Action("move_left"))
        assert (other.reward, other.achievements) == (one.reward, one.achievements)
    assert gifted.adapter.observe().achievements_unlocked == ()


def test_jacking_in_lists_the_bonuses_applied_since_the_last_time(scene):
    made = with_body(scene)
    applied = made.adapter.admit("avatar-1", entry(1, skills={"survival": 0.4, "combat": 0.5})).bonuses_applied
    assert set(applied) == {"survival-sapling", "combat-wood-sword"}
    assert made.adapter.jack_in("ann", "avatar-1").bonuses_applied == applied
    assert made.adapter.jack_out("ann").success
    assert made.adapter.jack_in("ann", "avatar-1").bonuses_applied == {}


# --- items ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "thing"),
    [
        (foreign("a", "weapon", 1), "wood_sword"),
        (foreign("a", "weapon", 3), "wood_sword"),
        (foreign("a", "weapon", 4), "stone_sword"),
        (foreign("a", "weapon", 10), "iron_sword"),
        (foreign("a", "tool", 5), "stone_pickaxe"),
        (foreign("a", "material", 1), "coal"),
        (foreign("a", "material", 6), "iron"),
        (foreign("a", "material", 7), "diamond"),
        (foreign("a", "material", 5, hints={"crafter": "coal"}), "coal"),
        (foreign("a", "material", 2, hints={"crafter": "diamond"}), "coal"),  # the hint is above its tier
        (foreign("a", "tool", 6, hints={"crafter": "iron_sword"}), "iron_pickaxe"),  # and here of another category
        (foreign("a", "tool", 2, hints={"crafter": "dragon", "elsewhere": "axe"}), "wood_pickaxe"),
    ],
)
def test_an_item_becomes_the_nearest_thing_of_its_kind_and_leaves_as_it_came(item, thing, scene):
    made = with_body(scene)
    receipt = made.adapter.admit("avatar-1", entry(1, item))
    assert (receipt.admitted, receipt.refused) == (("a",), {})
    assert carried(made) == {thing: 1}
    assert made.adapter.release("avatar-1", "t2").items == (item,)
    assert carried(made) == {}


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (foreign("a", "armor", 3), "nothing like an armor"),
        (foreign("a", "key_item", 3), "nothing like a key item"),
        (foreign("a", "weapon", 6), "9 iron sword already"),
        (foreign("a", "weapon", 11), "between 1 and 10"),
        (foreign("a", "spell", 3), "not a category"),
        (foreign("a", "weapon", "best"), "not a portable item"),
        (foreign("a", "weapon", 3, properties={"made of": object()}), "not a portable item"),
    ],
)
def test_what_crafter_can_not_take_is_refused_in_words_and_changes_nothing(item, reason, scene):
    made = with_body(scene, iron_sword=9)
    before = carried(made)
    receipt = made.adapter.admit("avatar-1", entry(1, item))
    assert receipt.admitted == ()
    assert reason in receipt.refused["a"]
    assert carried(made) == before


def test_an_agent_leaves_with_its_best_tools_and_all_ores_and_its_body_keeps_the_rest(scene):
    made = with_body(scene, wood_sword=1, stone_sword=2, stone_pickaxe=1, coal=2, diamond=1, wood=5, sapling=1)
    package = made.adapter.release("avatar-1", "t1")
    assert [(i.item_id, i.name, i.category, i.tier, i.origin) for i in package.items] == [
        ("t1:1", "stone sword", "weapon", 4, "crafter"),
        ("t1:2", "stone pickaxe", "tool", 4, "crafter"),
        ("t1:3", "coal", "material", 3, "crafter"),
        ("t1:4", "coal", "material", 3, "crafter"),
        ("t1:5", "diamond", "material", 8, "crafter"),
    ]
    assert carried(made) == {"wood_sword": 1, "stone_sword": 1, "wood": 5, "sapling": 1}
    back = made.adapter.admit("avatar-1", entry(2, *package.items))
    assert sorted(back.admitted) == sorted(item.item_id for item in package.items)
    assert made.adapter.release("avatar-1", "t3").items == package.items


def test_what_a_bonus_gave_does_not_leave_the_world(scene):
    made = with_body(scene)
    made.adapter.admit("avatar-1", entry(1, skills=MASTER))
    assert carried(made)["stone_sword"] == 1
    assert made.adapter.release("avatar-1", "t2").items == ()
    made.carry(stone_sword=2)
    (sword,) = made.adapter.release("avatar-1", "t3").items
    assert sword.name == "stone sword"


@pytest.mark.slow
def test_everything_portable_leaves_with_a_legal_category_and_tier_and_a_hint_for_the_way_back(scene):
    assert set(PORTABLE) <= set(constants.items)
    for thing, (category, tier) in PORTABLE.items():
        assert category in ITEM_CATEGORIES
        assert 1 <= tier <= 10
        made = with_body(scene, **{thing: 1})
        (item,) = made.adapter.release("avatar-1", "t1").items
        assert item.hints == {"crafter": thing}


def test_what_is_used_up_is_told_when_the_agent_leaves_and_the_worlds_own_goes_first(scene):
    made = with_body(scene, wood=5, iron=1, coal=2)
    made.put("table", 33, 32)
    made.put("furnace", 33, 33)
    made.look()
    made.adapter.admit("avatar-1", entry(1, foreign("ore", "material", 5)))
    made.adapter.jack_in("ann", "avatar-1")
    assert made.adapter.act(Action("make_iron_sword")).success
    assert carried(made)["iron"] == 1
    assert made.adapter.act(Action("make_iron_pickaxe")).success
    package = made.adapter.release("avatar-1", "t2")
    assert package.lost == {"ore": "used up"}
    assert [item.name for item in package.items] == ["iron sword", "iron pickaxe"]
    assert made.adapter.release("avatar-1", "t3").lost == {}


def test_what_was_used_up_stays_so_when_the_world_gives_another(scene):
    made = with_body(scene, wood=5, coal=1, stone_pickaxe=1)
    made.put("table", 33, 32)
    made.put("furnace", 33, 33)
    made.put("iron", 32, 33)
    made.look()
    made.adapter.admit("avatar-1", entry(1, foreign("ore", "material", 5)))
    made.adapter.jack_in("ann", "avatar-1")
    made.adapter.act(Action("make_iron_sword"))
    assert made.adapter.act(Action("do")).message == "You collect 1 iron and have 1."
    package = made.adapter.release("avatar-1", "t2")
    assert package.lost == {"ore": "used up"}
    assert "iron" in [item.name for item in package.items]


def test_death_and_a_new_episode_lose_what_was_brought_along(scene):
    made = with_body(scene)
    made.adapter.admit("avatar-1", entry(1, foreign("sword", "weapon", 8)))
    made.adapter.jack_in("ann", "avatar-1")
    made.put("lava", 33, 32)
    made.look()
    assert made.adapter.act(Action("move_right")).done
    assert made.adapter.handle_death("avatar-1").items_dropped == {"iron_sword": 1}
    refused = made.adapter.admit("avatar-1", entry(2, foreign("other", "weapon", 8))).refused
    assert refused == {"other": "the body is dead"}
    back = made.adapter.respawn("avatar-1", "new_world")
    assert back.initial_observation.inventory == {}
    assert made.adapter.admit("avatar-1", entry(3, foreign("shield", "armor", 1), foreign("pick", "tool", 1))).admitted
    again = made.adapter.admit("avatar-1", entry(4, foreign("sword", "weapon", 8))).refused
    assert again == {"sword": "it no longer exists: lost when the avatar died"}
    made.adapter.reset()
    package = made.adapter.release("avatar-1", "t5")
    assert package.items == ()
    assert package.lost == {
        "sword": "lost when the avatar died",
        "pick": "lost when the episode ended and another world began",
    }


def test_a_despawned_body_lets_its_things_out_until_its_world_is_gone(scene):
    made = with_body(scene)
    made.adapter.admit("avatar-1", entry(1, foreign("a", "weapon", 8), foreign("b", "tool", 1)))
    made.adapter.jack_in("ann", "avatar-1")
    assert made.adapter.jack_out("ann", "despawn").success
    saved = made.adapter.snapshot()
    assert [item.item_id for item in made.adapter.release("avatar-1", "t2").items] == ["a", "b"]
    made.adapter.restore(saved)
    made.adapter.create_avatar("bob", AvatarSpec())
    late = made.adapter.release("avatar-1", "t2")
    assert (late.items, sorted(late.lost)) == ((), ["a", "b"])
    assert made.adapter.release("avatar-2", "t3").lost == {}


def test_an_item_is_taken_in_once(scene):
    made = with_body(scene)
    sword = foreign("sword", "weapon", 8)
    assert made.adapter.admit("avatar-1", entry(1, sword, sword)).admitted == ("sword",)
    assert made.adapter.admit("avatar-1", entry(2, sword)).refused == {"sword": "it is in this world already"}
    assert carried(made) == {"iron_sword": 1}


def test_who_asks_again_gets_the_same_answer_and_nothing_happens_also_after_a_restore(scene):
    made = with_body(scene, diamond=2)
    asked = entry(1, foreign("a", "weapon", 8), foreign("b", "armor", 1), skills=MASTER)
    receipt = made.adapter.admit("avatar-1", asked)
    package = made.adapter.release("avatar-1", "t1")
    before = made.adapter.snapshot()
    other = CrafterAdapter(Context(seed=99))
    other.restore(before)
    for world in (made.adapter, other):
        assert world.admit("avatar-1", asked) == receipt
        assert world.release("avatar-1", "t1") == package
        assert world.snapshot() == before
    assert other.jack_in("ann", "avatar-1") == made.adapter.jack_in("ann", "avatar-1")


def test_a_world_that_is_visited_for_months_keeps_its_snapshots_small(scene):
    made = with_body(scene)
    sizes = []
    for visit in range(300):
        made.adapter.admit("avatar-1", entry(2 * visit, foreign(f"item-{visit}", "weapon", 8)))
        assert len(made.adapter.release("avatar-1", f"t{2 * visit + 1}").items) == 1
        if visit % 100 == 99:
            sizes.append(len(made.adapter.snapshot()))
    assert max(sizes) < 1.05 * min(sizes)


def test_strangers_are_told_so(scene):
    made = with_body(scene)
    with pytest.raises(UsageError, match="has no avatar"):
        made.adapter.admit("avatar-7", entry(1))
    with pytest.raises(UsageError, match="has no avatar"):
        made.adapter.admit("avatar-1", Entry("t1", "bob"))
    with pytest.raises(UsageError, match="no avatar"):
        made.adapter.release("avatar-7", "t1")


# --- snapshots and declarations ---------------------------------------------------------------


def test_a_snapshot_without_a_ledger_is_refused(scene):
    made = with_body(scene, wood=3)
    state = unpack(MAGIC, made.adapter.snapshot(), "crafter")
    assert state["ledger"] is None
    del state["ledger"]
    with pytest.raises(SnapshotError):
        CrafterAdapter(Context(seed=5)).restore(pack(MAGIC, state))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kept", [["iron_sword", {}]]),
        ("kept", [["dragon", {"item_id": "a", "name": "a", "category": "weapon"}]]),
        ("kept", [["diamond", {"item_id": "a", "name": "a", "category": "material"}]]),
        ("given", {"diamond": 3}),
        ("given", {"diamond": -3}),
        ("rules", ["fly"]),
        ("rules", 3),
        ("news", {"fly": 1}),
        ("lost", {"avatar-1": {"a": 3}}),
        ("lost", []),
        ("receipts", [{"transfer_id": 3}]),
        ("packages", [None]),
    ],
)
def test_a_snapshot_whose_books_are_cooked_is_refused(key, value, scene):
    made = with_body(scene)
    made.adapter.admit("avatar-1", entry(1, foreign("a", "weapon", 8), skills=MASTER))
    state = unpack(MAGIC, made.adapter.snapshot(), "crafter")
    assert key in state["ledger"]
    state["ledger"][key] = value
    before = made.adapter.snapshot()
    with pytest.raises(SnapshotError):
        made.adapter.restore(pack(MAGIC, state))
    assert made.adapter.snapshot() == before


def test_rules_and_skills_are_about_the_protocols_domains():
    assert set(SKILLS) < set(SKILL_DOMAINS)
    for rule in TRANSFER_RULES:
        assert rule.domain in SKILL_DOMAINS
        assert 0 < rule.threshold <= 1
        assert rule.bonus.kind in BONUS_KINDS
        assert rule.bonus.name in constants.items
        assert rule.bonus.name != "health"
    assert len({rule.id for rule in TRANSFER_RULES}) == len(TRANSFER_RULES)
