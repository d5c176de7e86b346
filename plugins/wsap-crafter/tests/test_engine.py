"""The reproducible engine against the original game."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys

import numpy as np
import pytest
from crafter import constants, objects
from opensimplex import OpenSimplex

from wsap_crafter.simulation.engine import CrafterEngine
from wsap_crafter.simulation.noise import noise3_many
from wsap_crafter.simulation.random_stream import GameRandom


@pytest.mark.parametrize("seed", [0, 1, 42, 2**31 - 2])
def test_random_numbers_are_those_of_numpy(seed):
    ours, theirs = GameRandom(seed), np.random.RandomState(seed)
    chooser = random.Random(seed)
    for _ in range(3000):
        if chooser.random() < 0.5:
            assert ours.uniform() == theirs.uniform()
        else:
            high = chooser.choice([1, 2, 3, 4, 5, 64, 144, 1000, 2**31 - 1])
            assert ours.randint(0, high) == theirs.randint(0, high)


def test_a_dumped_random_stream_goes_on_where_it_was():
    stream = GameRandom(7)
    for _ in range(1000):
        stream.uniform()
    other = GameRandom(0)
    other.load(*stream.dump())
    assert [stream.randint(0, 4) for _ in range(700)] == [other.randint(0, 4) for _ in range(700)]


@pytest.mark.parametrize("seed", [0, 3, 99])
def test_noise_is_bit_for_bit_that_of_the_library(seed):
    simplex = OpenSimplex(seed)
    # The first grid has points where the noise is zero except for rounding, and its sign matters.
    points = [(x / 7, y / 7, 5.0) for x in range(0, 64, 7) for y in range(0, 64, 7)]
    points += [(x / 3, y / 15, 8.0) for x in range(0, 64, 3) for y in range(0, 64, 5)]
    chooser = random.Random(seed)
    points += [tuple(chooser.uniform(-20, 20) for _ in range(3)) for _ in range(1500)]
    x, y, z = np.array(points).T.copy()
    expected = [simplex.noise3(*point) for point in points]
    assert noise3_many(simplex, x, y, z).tolist() == expected


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2, 17, 123456, 2**31 - 1])
def test_a_seed_gives_the_world_of_the_original(seed, original, game_state):
    theirs, ours = original(seed), CrafterEngine(seed)
    theirs.reset()
    ours.reset()
    assert game_state(ours) == game_state(theirs)


@pytest.mark.slow
def test_later_episodes_of_a_seed_are_those_of_the_original_too(original, game_state):
    theirs, ours = original(5), CrafterEngine(5)
    for _ in range(2):
        theirs.reset()
        ours.reset()
    assert game_state(ours) == game_state(theirs)
    ours.reset(5)
    theirs = original(5)
    theirs.reset()
    assert game_state(ours) == game_state(theirs)


def test_a_game_that_was_just_made_is_in_its_first_episode_until_something_happens(game_state):
    engine = CrafterEngine(5)
    engine.reset()
    begun, world = game_state(engine), engine.player
    engine.reset(5)
    assert engine.player is world  # the world was not generated again
    for happen in (lambda: engine.step("move_left"), lambda: engine.player.inventory.update(wood=3)):
        happen()
        engine.reset(5)
        assert engine.player is not world
        assert game_state(engine) == begun
        world = engine.player


def _sticky(chooser, step, game):
    """Walk around: most actions repeat the last one."""
    return None if step and chooser.random() < 0.7 else chooser.choice(constants.actions)


_CRAFTING = ("place_table", "move_up", "place_furnace", "make_iron_pickaxe", "make_iron_sword", "move_left")


def _busy(chooser, step, game):
    """Craft everything now and then, fight, and cross the map."""
    x, y = game.player.pos.tolist()
    for action, (dx, dy) in _SIDES.items():
        if isinstance(game.world[x + dx, y + dy][1], objects.Zombie | objects.Skeleton | objects.Cow):
            return "do" if tuple(game.player.facing) == (dx, dy) else action
    if 0 < step % 250 <= len(_CRAFTING):
        return _CRAFTING[step % 250 - 1]
    if step % 3 == 0:
        return chooser.choice([a for a in constants.actions if a not in ("noop", "sleep")])
    return chooser.choice([*_SIDES, "do", "do", None])


_SIDES = {"move_left": (-1, 0), "move_right": (1, 0), "move_up": (0, -1), "move_down": (0, 1)}


def _keep_alive(game, step):
    """Give the player the items to live long and craft everything."""
    player = game.player
    for vital in ("health", "food", "drink", "energy"):
        player.inventory[vital] = 9
    for item in ("wood", "stone", "coal", "iron", "sapling"):
        player.inventory[item] = max(player.inventory[item], 4)
    if step % 400 == 200:
        player.inventory["energy"] = 2
    if step >= 500:
        player.inventory["iron_pickaxe"] = player.inventory["iron_sword"] = 1
    player._last_health = game._last_health = 9


def _march(game, step):
    """Put the player in turn on grass, in caves and by the water, on a free cell."""
    world = game.world
    ground = world._mat_ids[("grass", "path", "sand")[step // 250 % 3]]
    free = np.argwhere((world._mat_map == ground) & (world._obj_map == 0))
    if len(free):
        world.move(game.player, free[step * 7919 % len(free)])


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "policy", "steps"), [(0, _sticky, 1000), (3, _busy, 1500), (11, _busy, 2000)])
def test_a_trajectory_is_that_of_the_original_object_for_object(seed, policy, steps, original, game_state):
    theirs, ours = original(seed, length=0), CrafterEngine(seed, length=0)
    theirs.reset()
    ours.reset()
    chooser = random.Random(seed)
    action = "noop"
    for step in range(steps):
        if step % 50 == 0:
            for game in (theirs, ours):
                _keep_alive(game, step)
                if policy is _busy and step % 250 == 0:
                    _march(game, step)
        action = policy(chooser, step, ours) or action
        assert theirs.act(action) == ours.step(action).reward
        if step % 25 == 0 or step == steps - 1:
            assert game_state(ours) == game_state(theirs)
    draws = [theirs.world.random.uniform() for _ in range(3)]
    assert [ours.world.random.uniform() for _ in range(3)] == draws
    if policy is _busy:
        late = ("make_iron_pickaxe", "make_iron_sword", "collect_stone", "defeat_zombie", "defeat_skeleton")
        assert [name for name in late if not ours.player.achievements[name]] == []


def test_dead_objects_are_forgotten():
    engine = CrafterEngine(2, length=0)
    engine.reset()
    chooser = random.Random(2)
    for step in range(4000):
        if step % 50 == 0:
            _keep_alive(engine, step)
        engine.step(chooser.choice(constants.actions))
    alive = sum(obj is not None for obj in engine.world.slots)
    assert len(engine.world.slots) < 2 * alive + 40


_PROGRAM = """
import hashlib, json, random
from wsap_core import Action, Context
from wsap_crafter.adapter import CrafterAdapter
world = CrafterAdapter(Context(seed=21))
digest = hashlib.sha256()
chooser = random.Random(4)
for _ in range(700):
    result = world.act(Action(chooser.choice(world.action_space.names)))
    line = [result.success, result.message, result.reward, result.observation.to_structured()]
    digest.update(json.dumps(line, sort_keys=True).encode())
    if result.done:
        world.reset()
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_the_same_seed_and_actions_give_the_same_trajectory_in_another_process():
    hashes = set()
    for hash_seed in ("0", "1", "31337"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True
        )
        hashes.add(done.stdout.strip())
    assert len(hashes) == 1
    assert len(hashes.pop()) == 64


def test_this_trajectory_is_the_same_on_every_machine():
    engine = CrafterEngine(21)
    engine.reset()
    chooser = random.Random(4)
    digest = hashlib.sha256()
    for _ in range(400):
        report = engine.step(chooser.choice(constants.actions))
        where = [obj.pos.tolist() for obj in engine.world.objects]
        digest.update(json.dumps([report.reward, where]).encode())
        if engine.done:
            engine.reset()
    assert digest.hexdigest() == "74676858567cc3effc40472efe9496338033e811303c96b1a000a731333cae2b"
