"""Dormant bodies, and the passing of time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from wsap_core import Action, Context
from wsap_core.protocol import AvatarSpec, AvatarState, Entry, PortableItem
from wsap_crafter.adapter import CrafterAdapter


def left(scene, mode="dormant", ground="grass", **config):
    """Return a scene with only Ann's body, which she has left."""
    made = scene(0, **config).empty(ground).stand(32, 32)
    made.adapter.create_avatar("ann", AvatarSpec(name="Ann"))
    made.look()
    made.adapter.jack_in("ann", "avatar-1")
    assert made.adapter.jack_out("ann", mode).success
    return made


def wake(made, steps, number=1, *items):
    return made.adapter.admit("avatar-1", Entry(f"t{number}", "ann", {}, items, steps))


def test_a_dormant_body_sleeps_through_the_steps_that_its_agent_was_away(scene):
    made = left(scene, ground="sand")
    made.carry(energy=2)
    receipt = wake(made, 40)
    assert receipt.notes == ("Your body slept for 40 steps.",)
    seen = made.adapter.jack_in("ann", "avatar-1").initial_observation
    assert (seen.step, seen.sleeping) == (40, False)
    assert seen.status["energy"] > 2  # restored by sleeping
    assert [event.description for event in seen.recent_events] == ["Your body slept for 40 steps."]
    assert made.adapter.act(Action("move_left")).message == "You walk west."


@pytest.mark.parametrize("mode", ["suspend", "dormant"])
def test_a_suspended_body_is_out_of_time_and_so_is_one_whose_agent_did_nothing_elsewhere(mode, scene):
    made = left(scene, mode)
    before = made.adapter.observe()
    assert wake(made, 100 if mode == "suspend" else 0).notes == ()
    assert made.adapter.observe() == before


def test_time_passes_once_for_a_transfer(scene):
    made = left(scene, ground="sand")
    wake(made, 25)
    assert wake(made, 25).notes == ("Your body slept for 25 steps.",)
    assert made.adapter.observe().step == 25
    wake(made, 5, 2)
    assert made.adapter.observe().step == 30


def test_the_world_goes_on_for_a_day_at_most_and_never_to_the_end_of_the_episode(scene):
    made = left(scene, ground="sand")
    wake(made, 100_000)
    assert made.adapter.observe().step == 300
    short = left(scene, ground="sand", length=50)
    wake(short, 100)
    assert short.adapter.observe().step == 49
    assert short.adapter.jack_in("ann", "avatar-1").success
    assert not wake(short, 100, 2).notes
    last = short.adapter.act(Action("noop"))
    assert (last.success, last.done) == (True, True)


def test_how_long_the_world_goes_on_is_an_option(scene):
    made = left(scene, ground="sand", longest_sleep=20)
    wake(made, 100)
    assert made.adapter.observe().step == 20


@pytest.mark.parametrize(
    ("walls", "warned"),
    [
        (("stone", "stone", "stone", "stone"), False),
        (("stone", "water", "tree", "table"), False),
        (("stone", "stone", "stone", "path"), True),
        (("stone", "stone", "Plant", "stone"), True),
    ],
)
def test_who_leaves_a_body_where_things_can_reach_it_is_told(walls, warned, scene):
    made = scene(0).empty().stand(32, 32)
    for kind, place in zip(walls, ((31, 32), (33, 32), (32, 31), (32, 33)), strict=True):
        made.put(kind, *place)
    made.adapter.create_avatar("ann", AvatarSpec(name="Ann"))
    made.look()
    made.adapter.jack_in("ann", "avatar-1")
    assert ("in the open" in made.adapter.jack_out("ann", "dormant").message) is warned


@pytest.mark.parametrize("seed", range(6))
def test_a_body_walled_in_with_stone_lives_through_a_day_of_the_world(seed, scene):
    made = scene(seed)
    x, y = made.player.pos.tolist()
    for dx, dy in ((-1, 0), (1, 0), (0, -1), (0, 1)):
        made.put("stone", x + dx, y + dy)
    made.adapter.create_avatar("ann", AvatarSpec(name="Ann"))
    made.look()
    made.adapter.jack_in("ann", "avatar-1")
    assert made.adapter.jack_out("ann", "dormant", force=True).success
    wake(made, 300)
    assert made.adapter.jack_in("ann", "avatar-1").success


def test_a_sleeper_goes_hungry_as_the_game_has_it_and_earns_nothing(scene):
    made = left(scene, ground="sand")
    made.carry(energy=3)
    wake(made, 300)
    seen = made.adapter.observe()
    assert seen.status["food"] < 9
    assert seen.status["drink"] < 9
    # It fell asleep and woke up rested more than once, which would have unlocked an achievement.
    assert seen.achievements_unlocked == ()
    made.adapter.jack_in("ann", "avatar-1")
    after = made.adapter.act(Action("noop"))
    assert after.achievements == ()
    assert after.reward <= 0.1


def test_the_agent_can_still_earn_waking_up_itself(scene):
    made = left(scene, ground="sand")
    made.carry(energy=8)
    wake(made, 100)
    made.adapter.jack_in("ann", "avatar-1")
    made.carry(energy=8, food=9, drink=9)
    earned = [name for _ in range(40) for name in made.adapter.act(Action("sleep")).achievements]
    assert earned == ["wake_up"]


def test_a_body_may_wake_up_hurt(scene):
    made = left(scene, ground="sand")
    made.put("Zombie", 33, 32)
    made.look()
    receipt = wake(made, 6)
    health = made.adapter.observe().status["health"]
    assert 0 < health < 9
    assert len(receipt.notes) == 2
    assert "A zombie hit you for" in receipt.notes[1]
    assert [e.type for e in made.adapter.observe().recent_events][:2] == ["info", "damage"]


def test_a_body_that_died_asleep_is_told_dead_and_lives_again_by_respawning(scene):
    made = left(scene, ground="sand")
    sword = PortableItem("sword", "sword", "weapon", 8)
    made.adapter.admit("avatar-1", Entry("t0", "ann", {}, (sword,)))
    for place in ((33, 32), (31, 32), (32, 31), (32, 33)):
        made.put("Zombie", *place)
    made.look()
    late = PortableItem("late", "pick", "tool", 1)
    receipt = wake(made, 300, 1, late)
    assert receipt.notes[-1] == "It died in its sleep."
    assert (receipt.admitted, receipt.refused) == ((), {"late": "the body is dead"})
    refused = made.adapter.jack_in("ann", "avatar-1")
    step = made.adapter.observe().step
    assert not refused.success
    assert refused.avatar.state is AvatarState.DESTROYED
    assert refused.message == (
        f"avatar-1 is destroyed: it died of combat (zombie) at step {step}; respawn it with 'new_world'."
    )
    death = made.adapter.handle_death("avatar-1")
    assert (death.cause, death.killer, dict(death.items_dropped)) == ("combat", "zombie", {"iron_sword": 1})
    assert made.adapter.release("avatar-1", "t2").lost == {"sword": "lost when the avatar died"}
    back = made.adapter.respawn("avatar-1", death.respawn_options[0])
    assert (back.success, back.avatar.death_count, back.avatar.inventory) == (True, 1, {})


def test_a_body_can_die_of_thirst_asleep(scene):
    made = left(scene, ground="sand")
    made.carry(health=1, drink=0)
    wake(made, 300)
    assert made.adapter.handle_death("avatar-1").cause == "thirst"


PROGRAM = """
import hashlib, json
from wsap_core import Action, Context
from wsap_core.protocol import AvatarSpec, Entry
from wsap_crafter.adapter import CrafterAdapter

found = []
for seed in range(4):
    world = CrafterAdapter(Context(seed=seed))
    world.create_avatar("ann", AvatarSpec())
    world.jack_in("ann", "avatar-1")
    for _ in range(40 * seed):
        world.act(Action("move_right"))
    world.jack_out("ann", force=True)
    receipt = world.admit("avatar-1", Entry("t", "ann", {"survival": 1.0}, (), 250))
    found.append([list(receipt.notes), hashlib.sha256(world.snapshot()).hexdigest()])
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_sleep_is_the_same_in_every_process():
    answers = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    ]
    assert answers[0] == answers[1]
    assert any(len(notes) > 1 for notes, _ in json.loads(answers[0]))


def test_a_sleeping_world_can_be_kept_and_restored_before_and_after(scene):
    made = left(scene)
    before = made.adapter.snapshot()
    receipt = wake(made, 120)
    other = CrafterAdapter(Context(seed=8))
    other.restore(before)
    assert other.admit("avatar-1", Entry("t1", "ann", {}, (), 120)) == receipt
    assert other.snapshot() == made.adapter.snapshot()
