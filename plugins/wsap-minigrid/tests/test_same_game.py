"""The levels are MiniGrid's own: the same seed and the same actions give what the original gives."""

from __future__ import annotations

import random
from typing import Any

import gymnasium
import pytest

from wsap_core import Action, Context
from wsap_core.seams.context import derive_seed
from wsap_minigrid.adapter import MiniGridAdapter
from wsap_minigrid.plugin import LEVELS

NUMBERS = {"turn_left": 0, "turn_right": 1, "forward": 2, "pickup": 3, "drop": 4, "toggle": 5}


@pytest.mark.parametrize("level", range(1, 9))
def test_a_level_goes_as_in_the_original(level: int) -> None:
    name, env_id = list(LEVELS.items())[level - 1]
    world = MiniGridAdapter(Context(seed=11, config={"level": level}))
    original: Any = gymnasium.make(env_id).unwrapped
    original.reset(seed=derive_seed(11, "level", 0, level - 1))
    player = random.Random(level)
    moves = 0
    while not world.done and world.observe().location.region == name and moves < 150:
        assert world.observe().current_goals[0].description == original.mission
        assert world.observe().location.coordinates == tuple(map(int, original.agent_pos))
        assert world.observe().facing == ["east", "south", "west", "north"][original.agent_dir]
        chosen = player.choice([a.name for a in world.observe().available_actions or () if a.available])
        result = world.act(Action(chosen))
        _, reward, over, late, _ = original.step(NUMBERS[chosen])
        assert result.success
        assert result.reward == reward
        assert (world.done or world.observe().location.region != name) == (over or late)
        moves += 1
    assert moves > 5


def test_what_is_refused_would_have_changed_nothing_in_the_original() -> None:
    world = MiniGridAdapter(Context(seed=3))
    original: Any = gymnasium.make(LEVELS["key"]).unwrapped
    original.reset(seed=derive_seed(3, "level", 0, 0))
    player, refused = random.Random(5), 0
    for _ in range(120):
        chosen = player.choice(list(NUMBERS))
        before = original.hash(size=32)
        world_could = world.act(Action(chosen)).success
        if world_could:
            _, _, over, _, _ = original.step(NUMBERS[chosen])
            if over:
                break
            continue
        refused += 1
        original.step(NUMBERS[chosen])
        assert original.hash(size=32) == before
    assert refused > 20


def test_the_map_shows_what_the_original_lets_see_and_nothing_beyond() -> None:
    world = MiniGridAdapter(Context(seed=7, config={"level": 7}))
    player = random.Random(2)
    for _ in range(60):
        seen, env = world.observe(), world._env
        image = env.gen_obs()["image"]  # 7 by 7, turned so that the player looks up; 0 is not seen
        image[3, 6] = 0  # where the player is, and shown as what is in its hand
        kinds = {4: "door", 5: "key", 6: "ball", 7: "box"}
        visible = sorted(kinds[int(kind)] for kind in image[:, :, 0].ravel() if int(kind) in kinds)
        assert sorted(entity.type for entity in seen.nearby_entities) == visible
        floor = sum(int(kind) == 1 for kind in image[:, :, 0].ravel())
        assert sum(row.count(".") for row in seen.local_map) == floor
        world.act(Action(player.choice([a.name for a in seen.available_actions or () if a.available])))
