"""The agent that plays by rules solves what MiniGrid sets it."""

from __future__ import annotations

import pytest

from wsap_core import Context
from wsap_minigrid.adapter import MiniGridAdapter
from wsap_minigrid.finder import Finder
from wsap_minigrid.plugin import LEVELS


@pytest.mark.slow
def test_it_solves_all_levels_of_ten_seeds_without_a_refused_action() -> None:
    world = MiniGridAdapter(Context(seed=0))
    for seed in range(100, 110):
        world.reset(seed)
        finder = Finder()
        finder.initialize(world.game_description, world.action_space)
        solved = []
        while not world.done:
            result = world.act(finder.decide(world.observe()))
            assert result.success, result.message
            solved += [name for name in result.achievements if name.startswith("solve_")]
        assert solved == [f"solve_{name}" for name in LEVELS], seed


def test_it_walks_around_lava() -> None:
    for seed in range(30):
        world = MiniGridAdapter(Context(seed=seed, config={"level": 2}))
        finder = Finder()
        while world.observe().location.region == "lava":
            result = world.act(finder.decide(world.observe()))
            assert not result.done, seed
