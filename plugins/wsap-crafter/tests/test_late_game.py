"""The engine equals the original, object for object, until late in a well-played game."""

from __future__ import annotations

import pytest

from wsap_core import Context
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.survivor import create


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_an_episode_played_well_is_that_of_the_original(seed, original, game_state):
    world, theirs = CrafterAdapter(Context(seed=seed, config={"length": 2500})), original(seed, length=2500)
    theirs.reset()
    mind = create(Context(seed=seed))
    mind.initialize(world.game_description, world.action_space)
    seen, done = world.observe(), False
    while not done:
        action = mind.decide(seen)
        result = world.act(action)
        assert theirs.act(action.name) == result.reward
        if seen.step % 100 == 0 or result.done:
            assert game_state(world._engine) == game_state(theirs)
        mind.reflect(result)
        seen, done = result.observation, result.done
    draws = [theirs.world.random.uniform() for _ in range(3)]
    assert [world._engine.world.random.uniform() for _ in range(3)] == draws
    assert {"make_stone_pickaxe", "place_furnace", "collect_iron"} <= set(seen.achievements_unlocked)
